"""What a run tells its user: statistics, estimates, and the page with its curves."""

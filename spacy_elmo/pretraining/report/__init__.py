"""Reports for the user of a run: statistics, estimates, and the page with its curves."""

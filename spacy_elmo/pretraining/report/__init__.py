"""Reports on a run: statistics of the corpus, and an HTML page with curves."""

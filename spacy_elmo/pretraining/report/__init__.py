"""Reports on a pretraining run: statistics of the corpus, and an HTML page with curves of the training."""

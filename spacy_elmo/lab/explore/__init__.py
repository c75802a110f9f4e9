"""Web page `explore`: similar occurrences of a word, 2-D maps of all occurrences, and predicted words."""

"""Web page `explore`: similar occurrences of a word, maps, and predictions of the language model."""

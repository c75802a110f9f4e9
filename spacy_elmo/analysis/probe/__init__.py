"""What the layers of a biLM know of words: their senses, their parts of speech."""

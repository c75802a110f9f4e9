"""From words to context-free vectors: character ids, the character CNN, the token encoder and its cache."""

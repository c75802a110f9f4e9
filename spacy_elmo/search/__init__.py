"""Search for passages by the similarity of their contextual vectors."""

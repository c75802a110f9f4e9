"""What a biLM knows: scores of text and its best substitutes."""

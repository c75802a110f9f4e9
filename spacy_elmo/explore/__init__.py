"""Web page that shows what a biLM computes: nearest neighbors, maps, substitutes and surprise of words."""

"""Page in the browser that shows a biLM at work: neighbors, maps, substitutes and surprise."""

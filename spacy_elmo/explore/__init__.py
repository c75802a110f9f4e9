"""A page in the browser that shows a biLM at work: neighbours, maps, substitutes and surprise."""

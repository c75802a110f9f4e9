"""Components of packaged pipelines that work with and without ELMo."""

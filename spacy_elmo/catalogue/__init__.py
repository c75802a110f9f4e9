"""The public ELMo models that we know of, and the way to their files. Nothing here runs unless a user asks for it."""

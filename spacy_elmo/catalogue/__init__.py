"""The known public ELMo models, and the download of their files, which happens only on a user's request."""

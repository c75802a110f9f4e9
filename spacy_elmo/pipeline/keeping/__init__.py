"""Where layers are kept: on Docs, between epochs, on disk."""

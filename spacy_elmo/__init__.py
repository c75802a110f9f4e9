"""ELMo for spaCy. spaCy finds everything through the entry points in setup.cfg."""

__version__ = "0.1.0"

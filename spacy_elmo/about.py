"""The version of the package, which both the front door and the rooms behind it import."""

__version__ = "0.1.0"

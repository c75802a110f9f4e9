"""Settings of the whole suite."""

from hypothesis import settings

# The first example pays for imports and warm-up, and machines are shared: a deadline would test the machine.
settings.register_profile("default", deadline=None)
settings.load_profile("default")

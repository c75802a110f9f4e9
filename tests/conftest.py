"""Settings of the whole suite."""

import signal

import pytest
from hypothesis import settings

from tests.browser import browser  # noqa: F401

# The first example pays for imports and warm-up, and machines are shared: a deadline would test the machine.
settings.register_profile("default", deadline=None)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def handlers_of_signals():
    """A command that is run in this process may leave its own, and a later test's processes would be born to them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)

"""Settings of the whole test suite."""

import shutil
import signal

import pytest
from hypothesis import settings

# The first example pays for imports and warm-up, and machines are shared: a deadline would test the machine.
settings.register_profile("default", deadline=None)
settings.load_profile("default")

DRIVER = shutil.which("chromedriver")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
OPTIONS = (
    "headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run", "disable-sync",
    "disable-background-networking", "disable-component-update", "window-size=1400,900",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests that open a page in a browser as slow."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def handlers_of_signals():
    """Restore the signal handlers after each test, because a command may leave its own, and later processes would
    inherit them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a headless browser for pages with scripts."""
    if not (DRIVER and CHROMIUM):
        pytest.skip("no chromium and chromedriver here")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()

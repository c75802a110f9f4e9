"""A real browser, where there is one, and what is seen of a page in it."""

import json
import shutil

import pytest

DRIVER = shutil.which("chromedriver")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
OPTIONS = (
    "headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run", "disable-sync",
    "disable-background-networking", "disable-component-update", "window-size=1400,900",
)  # fmt: skip
PATIENCE = 30  # seconds, on a busy machine


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
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


class Page:
    """What is seen of a page."""

    def __init__(self, browser, url, ready):
        """Open it, and wait until there is something that `ready` selects."""
        self.browser, self.url = browser, url
        browser.get_log("performance")
        browser.get_log("browser")
        browser.get(self.url)
        self.wait(lambda: self.find(ready))

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, PATIENCE).until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_elements("css selector", selector)

    def text(self, selector):
        """All text of the first element."""
        return self.find(selector)[0].get_attribute("textContent")

    def press(self, *keys):
        """Keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def point_at(self, element):
        """The tooltip that appears."""
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).move_to_element(element).perform()
        return self.wait(lambda: self.find("#vg-tooltip-element.visible"))[0]

    def requests(self):
        """Addresses of all that was requested since it was opened."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")
        ]
        sent = [
            e["params"]["request"]["url"]
            for e in events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith(("data:", "chrome:"))]

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

"""The fixture `browser`, which opens a page in a real browser."""

import json

PATIENCE = 30  # seconds, on a busy machine


class Page:
    """The visible content of a page."""

    def __init__(self, browser, url, ready):
        """Open the page, and wait until the selector `ready` finds an element."""
        self.browser, self.url = browser, url
        browser.get_log("performance")
        browser.get_log("browser")
        browser.get(self.url)
        self.wait(lambda: self.find(ready))

    def wait(self, condition):
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        # The page may replace an element between finding it and reading it: then look again.
        ignored = [StaleElementReferenceException]
        waiting = WebDriverWait(self.browser, PATIENCE, ignored_exceptions=ignored)
        return waiting.until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_elements("css selector", selector)

    def text(self, selector):
        """All text of the first element."""
        return self.find(selector)[0].get_attribute("textContent")

    def press(self, *keys):
        """Press keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def requests(self):
        """Return the addresses that the page has requested since it was opened."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")
        ]
        sent = [
            e["params"]["request"]["url"]
            for e in events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [
            url for url in sent if not url.startswith(("data:", "chrome:", "chrome-untrusted:"))
        ]

    def complaints(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

"""The page in a real browser: typing, clicks, slider, keyboard, and hostile text."""

import threading

import pytest

from spacy_elmo.lab.explore.server import listen, make_server
from tests.browser import Page

HOSTILE = [
    "<img src=x onerror=document.title='hit'> <script>document.title='hit'</script>",
    "{{7*7}} ${7*7} javascript:alert(1) \"'`",
    "שלום עולם bank \u202e evil \u202c",
    "\u0000\u0007 a\u0301\u0302\u0303 👩‍👩‍👧 \ufeff.",
    "bank" * 250,
]


@pytest.fixture(scope="module")
def address(explorer):
    server = make_server(explorer, listen(0))
    threading.Thread(target=server.run, daemon=True).start()
    return f"http://127.0.0.1:{server.effective_port}/"


@pytest.fixture
def page(browser, address):
    page = Page(browser, address, "#examples button")
    yield page
    assert all(url.startswith(address) for url in page.requests())
    assert page.complaints() == []


def show(page, first, second=""):
    for name, text in (("first", first), ("second", second)):
        # Typing a character takes milliseconds, and the driver cannot type those of other planes.
        page.browser.execute_script(
            "document.getElementById(arguments[0]).value = arguments[1]", name, text
        )
    page.browser.execute_script(
        "for (const word of document.querySelectorAll('.word')) word.remove()"
    )
    page.find("button[type=submit]")[0].click()
    page.wait(lambda: page.find(".word"))


def choose(page, number):
    page.find(".word")[number].click()
    page.wait(lambda: page.find(".word")[number].get_attribute("aria-pressed") == "true")


def slide(page, layer):
    page.browser.execute_script(
        "const slider = document.getElementById('layer'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'))",
        layer,
    )


def test_type_and_click(page):
    page.find("#first")[0].send_keys("I borrowed money from the bank.")
    page.find("button[type=submit]")[0].click()
    page.wait(lambda: len(page.find(".word")) == 7)
    assert all(float(word.text) > 0 for word in page.find(".word small"))
    assert not page.find("#word")[0].is_displayed()
    choose(page, 5)
    assert page.text("#chosen") == "The word “bank”"
    assert "7 uses in the corpus" in page.text("#panels")
    assert "She asked the bank for a loan." in page.text(".uses")
    assert len(page.find(".map circle")) == 7 + 1
    marks = [text.text for text in page.find(".map .neighbor text")]
    assert sorted(marks) == [mark.text for mark in page.find(".use .mark")]
    assert [
        len(column.find_elements("tag name", "li")) for column in page.find(".columns > div")
    ] == [6] * 3


def test_surprise_of_a_word_outside_the_vocabulary(page):
    """The probability of all unknown words together is no surprise of this word."""
    show(page, "Blorfnax spoke quietly.")
    captions = [small.text for small in page.find(".word small")]
    assert captions[0] == "unknown" and all(float(caption) > 0 for caption in captions[1:])


def test_pointing_at_a_use_shows_it_in_the_list_and_on_the_map(page):
    show(page, "I borrowed money from the bank.")
    choose(page, 5)
    page.find(".use")[2].click()
    detail = page.find("#detail")[0]
    assert detail.is_displayed()
    number = page.find(".use")[2].get_attribute("data-use")
    assert {node.get_attribute("data-use") for node in page.find(".on")} == {number}
    assert len(page.find(".map .on")) == 1
    page.find("#detail button")[0].click()
    assert not detail.is_displayed() and not page.find(".on")


def test_slider(page):
    show(page, "I borrowed money from the banks.")
    choose(page, 5)
    assert "does not contain this word" in page.text("#panels")
    show(page, "I borrowed money from the bank.")
    choose(page, 5)
    shown = {}
    for layer in (2, 1, 0):
        slide(page, layer)
        shown[layer] = (page.text("#layer-name"), page.text("#panels"))
    assert [shown[layer][0] for layer in (2, 1, 0)] == ["2 of 2", "1 of 2", "0: only the letters"]
    assert shown[2][1] != shown[1][1]
    assert not page.find(".map") and "Words of similar spelling" in shown[0][1]


def test_two_sentences(page):
    show(page, "She asked the bank for money.", "He sat on the bank of the river.")
    assert len(page.find(".sentence")) == 2
    choose(page, 3)
    captions = [small.text for small in page.find(".word small")]
    assert captions[3] == "chosen"
    slide(page, 0)
    likeness = [small.text for small in page.find(".sentence:last-child .word small")]
    assert likeness[4] == "1.00"
    slide(page, 2)
    assert 0 < float(page.find(".sentence:last-child .word small")[4].text) < 1


def test_keyboard_alone(page):
    from selenium.webdriver.common.keys import Keys

    def focused():
        return page.browser.switch_to.active_element

    def tab_to(selector, limit=30):
        for _ in range(limit):
            page.press(Keys.TAB)
            if focused() in page.find(selector):
                return
        raise AssertionError(f"{selector} is not reached")

    assert focused().get_attribute("id") == "first"
    page.press("We asked the bank.", Keys.ENTER)
    page.wait(lambda: len(page.find(".word")) == 5)
    tab_to(".word")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert focused().text.startswith("bank")
    page.press(Keys.ENTER)
    page.wait(lambda: page.find(".map"))
    assert focused().text.startswith("bank")
    tab_to("#layer")
    page.press(Keys.ARROW_LEFT)
    assert page.text("#layer-name") == "1 of 2"
    assert focused().get_attribute("id") == "layer"
    tab_to(".use")
    assert len(page.find(".map .on")) == 1
    tab_to(".map")
    page.press(Keys.ARROW_RIGHT)
    first = page.text("#detail")
    page.press(Keys.ARROW_RIGHT)
    assert page.text("#detail") != first
    page.press(Keys.ESCAPE)
    assert not page.find("#detail")[0].is_displayed()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(page, text):
    show(page, text, text)
    assert page.find(".sentence")[0].text
    words = page.find(".word span")
    assert "".join(word.get_attribute("textContent") for word in words) == "".join(2 * text.split())
    choose(page, 0)
    page.wait(lambda: page.find(".panel"))
    assert page.browser.title == "Explore"
    assert not page.find("main img, main script, main a")
    width, window = page.browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert width <= window


def test_markup_of_the_corpus_stays_text(page):
    show(page, "The bank closed.")
    choose(page, 1)
    assert 'The </script> <b> bank </b> & "it".' in page.text(".uses")
    assert not page.find(".uses script")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("bank " * 20_000, "99,999 characters. The limit is 1,000"),
    ],
)
def test_what_is_not_a_sentence(page, text, message):
    page.browser.execute_script("document.getElementById('first').value = arguments[0]", text)
    page.find("button[type=submit]")[0].click()
    page.wait(lambda: message in page.text("#problem"))
    assert not page.find(".word")
    show(page, "A bank.")
    assert page.text("#problem") == ""


def test_the_server_is_gone(page):
    network = {"offline": True, "latency": 0, "throughput": 0}
    page.browser.set_network_conditions(**network)
    page.find("#examples button")[0].click()
    page.wait(lambda: "still running" in page.text("#problem"))
    page.browser.delete_network_conditions()
    assert "ERR_INTERNET_DISCONNECTED" in page.complaints()[0]

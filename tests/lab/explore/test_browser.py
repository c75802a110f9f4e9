"""The page in a real browser: each of its functions once, and hostile text."""

import threading

import pytest

from spacy_elmo.lab.explore.server import listen, make_server
from tests.browser import Page

QUESTION = "I borrowed money from the bank."
HOSTILE = [
    "<img src=x onerror=document.title='hit'> <script>document.title='hit'</script>",
    "{{7*7}} ${7*7} javascript:alert(1) \"'`",
    "שלום עולם bank \u202e evil \u202c",
    "\u0000\u0007 a\u0301\u0302\u0303 👩‍👩‍👧 \ufeff.",
    "bank" * 250,
]


@pytest.fixture
def page(browser, explorer):
    server = make_server(explorer, listen(0))
    threading.Thread(target=server.run, daemon=True).start()
    address = f"http://127.0.0.1:{server.effective_port}/"
    page = Page(browser, address, "#examples button")
    yield page
    assert all(url.startswith(address) for url in page.requests())


def write(page, first, second=""):
    # Typing a character takes milliseconds, and the driver cannot type those of other planes.
    for name, text in (("first", first), ("second", second)):
        page.browser.execute_script(
            "document.getElementById(arguments[0]).value = arguments[1]", name, text
        )
    page.find("button[type=submit]")[0].click()


def show(page, first, second=""):
    page.browser.execute_script(
        "for (const word of document.querySelectorAll('.word')) word.remove()"
    )
    write(page, first, second)
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


def captions(page, selector=".word small"):
    return [caption.text for caption in page.find(selector)]


def test_functions_of_the_page(page):
    # Surprise of each word. The probability of all unknown words together is no surprise of one of them.
    show(page, "Blorfnax borrowed money.")
    assert captions(page)[0] == "unknown"
    before = [float(caption) for caption in captions(page)[1:]]
    page.find("input[value=after]")[0].click()
    after = [float(caption) for caption in captions(page)[1:]]
    assert min(before + after) > 0 and before != after

    # The uses of a word: list, map and predictions.
    show(page, QUESTION)
    assert not page.find("#word")[0].is_displayed()
    choose(page, 5)
    assert page.text("#chosen") == "The word “bank”"
    assert "7 uses in the corpus" in page.text("#panels")
    assert 'The </script> <b> bank </b> & "it".' in page.text(".uses")
    assert len(page.find(".map circle")) == 7 + 1
    assert sorted(captions(page, ".map .neighbor text")) == sorted(captions(page, ".use .mark"))
    lists = [column.find_elements("tag name", "li") for column in page.find(".columns > div")]
    assert [len(words) for words in lists] == [6] * 3

    # A use is marked in the list and on the map, and its sentence is shown.
    page.find(".use")[2].click()
    detail, number = page.find("#detail")[0], page.find(".use")[2].get_attribute("data-use")
    assert detail.is_displayed() and len(page.find(".map .on")) == 1
    assert {node.get_attribute("data-use") for node in page.find(".on")} == {number}
    page.find("#detail button")[0].click()
    assert not detail.is_displayed() and not page.find(".on")

    # The slider changes the layer. Layer 0 has words of similar spelling instead of a map.
    panels = {}
    for layer, name in ((2, "2 of 2"), (1, "1 of 2"), (0, "0: only the letters")):
        slide(page, layer)
        assert page.text("#layer-name") == name
        panels[layer] = page.text("#panels")
    assert panels[2] != panels[1] and not page.find(".map")
    assert "Words of similar spelling" in panels[0]

    # Two sentences are compared: the same word has the same letters, and other neighbors.
    show(page, "She asked the bank for money.", "He sat on the bank of the river.")
    choose(page, 3)
    assert captions(page)[3] == "chosen"
    assert captions(page, ".sentence:last-child .word small")[4] == "1.00"
    slide(page, 2)
    assert 0 < float(captions(page, ".sentence:last-child .word small")[4]) < 1

    # A word that the corpus does not contain, an example, and what is no sentence.
    show(page, "Two banks.")
    choose(page, 1)
    assert "does not contain this word" in page.text("#panels")
    page.find("#examples button")[1].click()
    page.wait(lambda: len(page.find(".sentence")) == 2)
    for text, message in ((" \n", "empty"), ("bank " * 20_000, "The limit is 1,000")):
        write(page, text)
        page.wait(lambda message=message: message in page.text("#problem"))
    show(page, "A bank.")
    assert page.text("#problem") == ""
    assert page.complaints() == []

    page.browser.set_network_conditions(offline=True, latency=0, throughput=0)
    page.find("#examples button")[0].click()
    page.wait(lambda: "still running" in page.text("#problem"))
    page.browser.delete_network_conditions()


def test_hostile_text_stays_text(page):
    for text in HOSTILE:
        show(page, text, text)
        words = page.find(".word span")
        shown = "".join(word.get_attribute("textContent") for word in words)
        assert shown == "".join(2 * text.split())
        choose(page, 0)
        page.wait(lambda: page.find(".panel"))
        assert page.browser.title == "Explore"
        assert not page.find("main img, main script, main a")
        width, window = page.browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert width <= window
    assert page.complaints() == []

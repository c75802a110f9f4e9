"""The uses of a word as one page in a real browser."""

import numpy as np
import pytest

from spacy_elmo.lab.contexts import Occurrence, drawable, nearest, project
from spacy_elmo.lab.explore.page import save_map, word_view
from tests.browser import Page
from tests.lab.conftest import occurrences

FOUND = [
    Occurrence("They moored at the ", "bank", " & slept.", "rivers.txt", "bank%1:17:01::"),
    Occurrence("</script><b>The</b> ", "bank", " lends.", "money.txt", "bank%1:14:00::"),
    Occurrence("A ", "bank", " closed.", "money.txt", "bank%1:14:00::"),
    Occurrence("Some ", "bank", ".", "text.txt"),
]
QUERIES = [Occurrence("My ", "bank", "!", ""), Occurrence("Their ", "bank", "?", "")]
VECTORS = [
    [[1, 0]] * 4,  # one point
    [[1, 0], [0, 1], [-1, -1], [2, 1]],
    [[5, 1], [0, 3], [-1, -2], [1, 0]],
]


def save(path, queries, found=FOUND):
    corpus = occurrences(found, VECTORS)
    asked = occurrences(queries, np.ones((3, len(queries), 2)))
    view = word_view(corpus, asked, nearest(asked, corpus, 2), drawable(project(corpus, asked)))
    save_map(path, view, title="Uses of <i>bank</i>", source="a < b")
    return view


def test_view():
    corpus = occurrences(FOUND, VECTORS)
    asked = occurrences(QUERIES[:1], [[[1, 0]], [[0, 2]], [[5, 1]]])
    view = word_view(corpus, asked, nearest(asked, corpus, 1), drawable(project(corpus, asked)))
    assert [layer["name"] for layer in view["layers"]] == ["view 1", "view 2"]
    # The nearest in each of these views, not in the one that is left out.
    assert [layer["neighbors"] for layer in view["layers"]] == [
        [[{"use": 1, "cosine": 1.0}]],
        [[{"use": 0, "cosine": 1.0}]],
    ]
    assert view["senses"] == {
        "names": ["bank%1:14:00:: (2)", "bank%1:17:01:: (1)"],
        "of": [1, 0, 0, None],
    }


def test_rare_senses_share_a_color():
    found = [Occurrence("", "w", "", "", sense) for sense in "aabcdefghi"]
    corpus = occurrences(found, [[[1, number] for number in range(10)]])
    none = occurrences([], corpus.vectors[:, :0])
    senses = word_view(corpus, none, [], project(corpus, none))["senses"]
    assert senses["names"][0] == "a (2)" and senses["names"][-1] == "2 other senses (2)"
    assert senses["of"] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 7]


@pytest.mark.parametrize(
    "left, right, shown_left, shown_right",
    [
        ("left " * 100, " right" * 100, "… " + "left " * 31, " right" * 26 + " …"),
        ("東" * 200, "西" * 200, "… " + "東" * 160, "西" * 160 + " …"),  # without spaces
    ],
)
def test_long_sentences_are_cut_around_the_word(left, right, shown_left, shown_right):
    corpus = occurrences([Occurrence(left, "w", right, "")], [[[1, 0]]])
    none = occurrences([], corpus.vectors[:, :0])
    (sentence,) = word_view(corpus, none, [], project(corpus, none))["sentences"]
    assert (sentence["left"], sentence["right"]) == (shown_left, shown_right)


def test_page(browser, tmp_path):
    save(tmp_path / "map.html", QUERIES)
    page = Page(browser, (tmp_path / "map.html").as_uri(), ".map")
    assert browser.title == page.text("h1") == "Uses of <i>bank</i>"
    assert page.text("#about") == "4 uses from a < b"
    assert [query.text for query in page.find("p.query")] == ["A\nMy bank!", "B\nTheir bank?"]
    assert [title.text for title in page.find("h3")] == ["View 1", "View 2"]
    assert (
        len(page.find(".panel")) == 2
        and len(page.find(".panel")[0].find_elements("css selector", ".use")) == 4
    )
    marks = [mark.text for mark in page.find(".panel:first-child .use .mark")]
    assert marks == ["A1", "A2", "B1", "B2"]
    assert [text.text for text in page.find(".panel:first-child .letter")] == ["A", "B"]

    use = next(u for u in page.find(".use") if u.get_attribute("data-use") == "1")
    use.click()
    assert "</script><b>The</b> bank lends. money.txt · bank%1:14:00:: (2)" in page.text("#detail")
    assert page.find("#detail b")[0].text == "bank"
    assert len(page.find(".map .on")) == 2  # in every panel
    assert page.requests() == [page.url]
    assert page.complaints() == []

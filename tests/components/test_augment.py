"""The augmenter of letter case and lines."""

import random

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

WORDS = ["Do", "n't", "go", "to", "New", "York", ",", "he", "said", "in", "McLean", "."]
SPACES = [False, True, True, True, True, False, True, True, True, True, False, False]
LEMMAS = ["do", "not", "go", "to", "New", "York", ",", "he", "say", "in", "McLean", "."]
HEADS = [2, 2, 2, 5, 5, 2, 2, 8, 2, 10, 8, 2]
OFF = {"lower": 0.0, "upper": 0.0, "title": 0.0, "lines": 0.0}


@pytest.fixture
def example():
    nlp = spacy.blank("en")
    ents = ["O"] * 4 + ["B-LOC", "I-LOC"] + ["O"] * 4 + ["B-LOC", "O"]
    tags = [f"T{i}" for i in range(12)]
    gold = Doc(
        nlp.vocab, WORDS, SPACES, tags=tags, lemmas=LEMMAS, heads=HEADS, deps=["x"] * 12, ents=ents
    )
    return nlp, Example(nlp.make_doc(gold.text), gold)


def augmented(example, **settings):
    nlp, example = example
    make = registry.augmenters.get("spacy-elmo.case_and_lines.v1")
    (result,) = make(**OFF | settings)(nlp, example)
    return result


@pytest.mark.parametrize(
    ("case", "text", "lemmas"),
    [
        ("lower", "don't go to new york, he said in mclean.", [x.lower() for x in LEMMAS]),
        (
            "upper",
            "DON'T GO TO NEW YORK, HE SAID IN MCLEAN.",
            "do not go to NEW YORK , he say in MCLEAN .",
        ),
        ("title", "Don't Go To New York, He Said In McLean.", LEMMAS),
    ],
)
def test_a_text_changes_its_case_and_keeps_its_annotation(example, case, text, lemmas):
    """A lemma with a capital letter, a name's, changes with its word. Others are the lemmas of all forms."""
    result = augmented(example, **{case: 1.0})
    assert result.predicted.text == result.reference.text == text
    gold = result.reference
    assert [token.lemma_ for token in gold] == (
        lemmas if isinstance(lemmas, list) else lemmas.split()
    )
    assert [token.tag_ for token in gold] == [f"T{i}" for i in range(12)]
    assert [token.head.i for token in gold] == HEADS
    assert [(ent.start, ent.end, ent.label_) for ent in gold.ents] == [
        (4, 6, "LOC"),
        (10, 11, "LOC"),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_lines_break_between_words_and_change_nothing_else(example, seed):
    random.seed(seed)
    result = augmented(example, lines=1.0, width=4)
    words = [token for token in result.reference if not token.is_space]
    assert [token.text for token in words] == WORDS
    assert [token.tag_ for token in words] == [f"T{i}" for i in range(12)]
    assert [words.index(token.head) for token in words] == HEADS
    gaps = [len(line.split()) for line in result.reference.text.split("\n")]
    assert len(gaps) >= 3
    assert [ent.text.replace("\n", "") for ent in result.reference.ents] == ["New York", "McLean"]


def test_an_example_stays_as_often_as_the_probabilities_say(example):
    random.seed(0)
    texts = [augmented(example, lower=0.2, upper=0.3).reference.text for _ in range(2000)]
    assert 0.16 < sum(text.islower() for text in texts) / 2000 < 0.24
    assert 0.26 < sum(text.isupper() for text in texts) / 2000 < 0.34


def test_impossible_probabilities_are_refused(example):
    with pytest.raises(ValueError, match=r"1\.2"):
        augmented(example, lower=0.6, upper=0.6)

"""docs/reference.md is made of the docstrings, and options that it leaves to spaCy's documentation are as there."""

import pytest
import spacy

from scripts.reference import PAGE, page


def test_the_page_has_the_options_of_today():
    assert PAGE.read_text("utf8") == page(), "run make tables"


@pytest.mark.parametrize(
    ("ours", "theirs", "additional"),
    [
        ("normalizing_lemmatizer", "trainable_lemmatizer", {"upstream": None}),
        ("lexicon_morphologizer", "morphologizer", {}),
    ],
)
def test_component_like_one_of_spacy(ours, theirs, additional):
    nlp = spacy.blank("en")
    ours, theirs = (nlp.get_factory_meta(name).default_config for name in (ours, theirs))
    assert ours == {**theirs, **additional}

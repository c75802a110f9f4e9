"""Respelling: exact words, rejected rules, and equal vectors and classes for all forms of a word."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.likelihood import softmax_classes
from spacy_elmo.bilm.reference import ReferenceBiLM
from spacy_elmo.bilm.spelling import AS_GIVEN, Spelling
from spacy_elmo.bilm.weights import Weights
from tests import tiny

LATIN = Spelling("NFC", (("v", "u"), ("V", "U"), ("j", "i"), ("æ", "ae"), ("\u00ad", "")))


@pytest.mark.parametrize(
    "word, spelled",
    [
        ("vivo", "uiuo"),
        ("Vivo", "Uiuo"),
        ("præjudicium", "praeiudicium"),
        ("con\u00adsul", "consul"),
        ("o\u0302", "ô"),
        # The accent meets its letter once the soft hyphen is gone.
        ("o\u00ad\u0302", "ô"),
        # Nothing would remain.
        ("\u00ad", "\u00ad"),
        ("", ""),
        # Special words of vocabularies.
        ("</S>", "</S>"),
        ("<bos>", "<bos>"),
    ],
)
def test_spelled_words(word, spelled):
    assert LATIN([word, "cat"]) == [spelled, "cat"]


def test_forms():
    assert Spelling("NFD")(["é", "ﬁ"]) == ["e\u0301", "ﬁ"]
    assert Spelling("NFKC")(["ﬁ", "①"]) == ["fi", "1"]
    assert Spelling(replace=(("’", "'"),))(["e\u0301’"]) == ["e\u0301'"]


def test_no_rule():
    words = ["e\u0301", "v"]
    assert AS_GIVEN(words) is words
    assert not AS_GIVEN and LATIN


@given(
    st.sampled_from(["", "NFC", "NFD", "NFKC", "NFKD"]),
    st.dictionaries(st.characters(), st.text(max_size=2), max_size=3),
    st.text(alphabet=st.characters() | st.sampled_from("o\u0302\u0301\u00ad각ᆨ가"), max_size=6),
)
def test_twice_is_once(form, replace, word):
    try:
        rule = Spelling(form, tuple(replace.items()))
    except ValueError:
        return
    once = rule([word])
    assert list(rule(once)) == list(once)
    assert all(part or not word for part in once)


@pytest.mark.parametrize(
    "form, replace, message",
    [
        ("", (("ae", "e"),), "replace 'ae' by 'e' .each key must be one character"),
        ("", (("v", "u"), ("v", "w")), "replace 'v' by 'w' .each key must be one character, and"),
        ("", (("v", "u "),), "replace 'v' by 'u ' .white space"),
        ("NFC", (("e\u0301"[1], "\u0344"),), "both must be in NFC"),
        ("NFD", (("é", "e"),), "replace 'é' by 'e' .both must be in NFD"),
        ("", (("v", "u"), ("u", "w")), "replace 'v' by 'u' .*'u', which is replaced too"),
        ("", (("v", "vv"),), "replace 'v' by 'vv' .*'v', which is replaced too"),
    ],
)
def test_refused_rules(form, replace, message):
    with pytest.raises(ValueError, match=message):
        Spelling(form, replace)
    with pytest.raises(ValueError, match=message):
        BiLMConfig(unicode_form=form, replace=replace)


def test_configuration():
    config = BiLMConfig(unicode_form="NFC", replace={"v": "u", "j": "i"})
    assert config.replace == (("v", "u"), ("j", "i"))
    assert config.spelling == Spelling("NFC", (("v", "u"), ("j", "i")))
    fields = config.to_dict()
    assert BiLMConfig.from_dict({**fields, "replace": [["v", "u"], ["j", "i"]]}) == config


def test_equal_vectors_for_all_forms_of_a_word(tmp_path):
    config = tiny.config(unicode_form="NFC", replace={"v": "u"})
    Weights.from_bilm(tiny.bilm(config)).save(tmp_path / "w.safetensors")
    weights = Weights.load(tmp_path / "w.safetensors")
    assert weights.config == config
    spelled, other = ["uia", "caf\u00e9"], ["via", "cafe\u0301"]
    for model in (weights.build_bilm(), weights.build_bilm().prepare_for_inference("float32")):
        expected, got = (tiny.read(model, [words]).layers for words in (spelled, other))
        assert torch.equal(got, expected)
        assert not torch.equal(expected, tiny.read(model, [["uia", "cafe"]]).layers)
    (reference,) = ReferenceBiLM(config, weights.tensors).layers([other])
    torch.testing.assert_close(reference, expected)
    # Without the rule the same parameters give other vectors.
    plain = tiny.bilm(tiny.config())
    plain.load_state_dict(weights.build_bilm().state_dict())
    assert not torch.equal(tiny.read(plain, [other]).layers, tiny.read(plain, [spelled]).layers)


def test_classes():
    rows = {"<S>": 0, "</S>": 1, "<UNK>": 2, "uia": 3}
    classes = softmax_classes(["via", "uia", "vita"], rows, LATIN)
    assert np.array_equal(classes, [3, 3, 2, 0, 1])

"""Respelling and character ids: exact words and rows, refused rules, and naive loops for all other words."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.likelihood import softmax_classes
from spacy_elmo.bilm.reference import ReferenceBiLM
from spacy_elmo.bilm.spelling import AS_GIVEN, Spelling
from spacy_elmo.bilm.token_encoder import Alphabet, char_ids
from spacy_elmo.bilm.weights import Weights
from tests import oracle, tiny

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


@pytest.mark.parametrize(
    "word, row",
    [
        ("cat", [258, 99, 97, 116, 259, 260, 260, 260]),
        ("", [258, 259, 260, 260, 260, 260, 260, 260]),
        ("<S>", [258, 256, 259, 260, 260, 260, 260, 260]),
        ("</S>", [258, 257, 259, 260, 260, 260, 260, 260]),
        # Case matters: these are ordinary words.
        ("<s>", [258, 60, 115, 62, 259, 260, 260, 260]),
        # Bytes, not characters.
        ("é", [258, 0xC3, 0xA9, 259, 260, 260, 260, 260]),
        ("鳥", [258, 0xE9, 0xB3, 0xA5, 259, 260, 260, 260]),
        ("\0ÿ", [258, 0, 0xC3, 0xBF, 259, 260, 260, 260]),
        # Six bytes fit into eight positions.
        ("sixsix", [258, *b"sixsix", 259]),
        ("sevense", [258, *b"sevens", 259]),
        # Cut inside the second bird.
        ("aa鳥鳥", [258, 97, 97, 0xE9, 0xB3, 0xA5, 0xE9, 259]),
        ("x" * 100_000, [258, *b"xxxxxx", 259]),
        # UTF-8 cannot hold a lone surrogate.
        ("a\ud800b", [258, 97, 63, 98, 259, 260, 260, 260]),
    ],
)
def test_bytes(word, row):
    ids = char_ids([word], 8)
    assert ids.tolist() == [row]
    assert oracle.char_ids(word, 8) == row


any_text = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=20)


@given(
    st.lists(any_text | st.sampled_from(["<S>", "</S>"]), max_size=6),
    st.integers(3, 30),
)
def test_bytes_of_any_words(words, size):
    naive = [oracle.char_ids(word, size) for word in words]
    assert char_ids(words, size).tolist() == naive


BOS, EOS, OOV, PAD, START, END = range(6)


@pytest.mark.parametrize(
    "word, row",
    [
        ("cat", [START, 6, 7, 8, END, PAD, PAD, PAD]),
        ("", [START, END, PAD, PAD, PAD, PAD, PAD, PAD]),
        ("c鳥🙂", [START, 6, 9, OOV, END, PAD, PAD, PAD]),
        ("catcatcat", [START, 6, 7, 8, 6, 7, 8, END]),
        ("<bos>", [START, BOS, END, PAD, PAD, PAD, PAD, PAD]),
        ("<eos>", [START, EOS, END, PAD, PAD, PAD, PAD, PAD]),
        ("<S>", [START, OOV, OOV, OOV, END, PAD, PAD, PAD]),
        ("\ud800", [START, OOV, END, PAD, PAD, PAD, PAD, PAD]),
    ],
)
def test_code_points(word, row):
    ids = Alphabet("cat鳥").ids([word], 8)
    assert ids.dtype == np.int32
    assert ids.tolist() == [row]


@given(st.lists(st.text("catéΩ鳥", max_size=20)), st.integers(7, 20))
def test_code_points_of_any_words(words, size):
    rows = {"c": 6, "a": 7, "t": 8}
    for word, ids in zip(words, Alphabet("cat").ids(words, size).tolist(), strict=True):
        spelt = [rows.get(character, OOV) for character in word][: size - 2]
        assert ids == [START, *spelt, END] + [PAD] * (size - 2 - len(spelt))

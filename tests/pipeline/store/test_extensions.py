"""The layers that a Doc stores, and the extensions that return them."""

import subprocess
import sys

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc, DocBin, Span, Token

from spacy_elmo.pipeline.store.extensions import install_extensions, store_layers, stored_layers

NLP = spacy.blank("en")
LAYERS = np.arange(2 * 4 * 3, dtype="f").reshape(2, 4, 3)


@pytest.fixture
def doc():
    install_extensions()
    return Doc(NLP.vocab, words=["a", "b", " ", "c"])


def test_none_before_the_component_ran(doc):
    for thing in (doc, doc[0:2], doc[0]):
        assert thing._.elmo is None
        assert thing._.elmo_layers is None
    assert stored_layers(doc, "elmo") is None
    assert not doc.user_data


def test_values(doc):
    store_layers(doc, "elmo", LAYERS)
    assert_array_equal(doc._.elmo_layers, LAYERS)
    assert_array_equal(doc[1:3]._.elmo_layers, LAYERS[:, 1:3])
    assert_array_equal(doc[3]._.elmo_layers, LAYERS[:, 3])
    # The first layer counts 0 1 2, 3 4 5, ..., and the second is 12 more: the average is 6 more.
    assert_allclose(doc._.elmo, LAYERS[0] + 6)
    assert_allclose(doc[3]._.elmo, [15, 16, 17])
    # Tokens 1 and 3, the whitespace between them left out: (9 10 11 + 15 16 17) / 2.
    assert_allclose(doc[1:4]._.elmo, [12, 13, 14])
    assert_allclose(doc[2:3]._.elmo, [0, 0, 0])
    assert_allclose(doc[1:1]._.elmo, [0, 0, 0])
    assert {doc._.elmo.dtype, doc[0]._.elmo.dtype, doc[0:2]._.elmo.dtype} == {np.dtype("float32")}


def test_layers_can_be_set_and_dropped(doc):
    doc._.elmo_layers = LAYERS
    assert_array_equal(doc._.elmo_layers, LAYERS)
    assert_array_equal(stored_layers(doc, "any"), LAYERS)
    doc._.elmo_layers = None
    assert doc._.elmo is None and not doc.user_data


@pytest.mark.parametrize("attr", ["_.elmo_layers", "_.elmo"])
def test_doc_cleaner(doc, attr):
    nlp = spacy.blank("en")
    cleaner = nlp.add_pipe("doc_cleaner", config={"attrs": {attr: None}})
    store_layers(doc, "one", LAYERS)
    store_layers(doc, "two", LAYERS)
    cleaner(doc)
    assert doc._.elmo_layers is None
    # The cleaner also sets spacy-transformers' attribute, where a test before has registered that.
    assert not [name for name in doc.user_data if "trf_data" not in name]


def test_set_layers_are_a_copy(doc):
    given = LAYERS.astype("float64")
    doc._.elmo_layers = given
    given[:] = 0
    assert_array_equal(doc._.elmo_layers, LAYERS)
    assert doc._.elmo_layers.dtype == np.float32


def test_wrong_values(doc):
    with pytest.raises(ValueError, match=r"\(layers, 4, width\) for this Doc, not \(2, 3, 3\)"):
        doc._.elmo_layers = LAYERS[:, :3]
    with pytest.raises(ValueError, match=r"\(4, width\) for this Doc, not \(3, 3\)"):
        doc._.elmo = LAYERS[0, :3]
    store_layers(doc, "elmo", LAYERS)
    with pytest.raises(ValueError, match="set doc._.elmo_layers"):
        doc._.elmo = LAYERS[0]
    assert_array_equal(doc._.elmo_layers, LAYERS)


@pytest.mark.parametrize("stored", [LAYERS, LAYERS[0], None])
def test_all_attributes_can_be_copied_to_another_doc(doc, stored):
    """spacy-llm does it in this order, and then copies `user_data`."""
    if stored is not None:
        store_layers(doc, "elmo", stored)
    other = Doc(NLP.vocab, words=["a", "b", " ", "c"])
    for name in dir(doc._):
        if getattr(other._, name) is None:
            setattr(other._, name, getattr(doc._, name))
    other.user_data = {**doc.user_data, **other.user_data}
    for name in ("elmo", "elmo_layers"):
        expected = getattr(doc._, name)
        assert_array_equal(getattr(other._, name), expected)


def test_an_average_can_be_set(doc):
    given = LAYERS[0].astype("float64")
    doc._.elmo = given
    given[:] = 0
    assert_array_equal(doc._.elmo, LAYERS[0])
    assert_array_equal(doc[3]._.elmo, LAYERS[0, 3])
    assert doc._.elmo_layers is None and stored_layers(doc, "any") is None
    doc._.elmo = None
    assert doc._.elmo is None and not doc.user_data


def test_two_components_never_read_each_other(doc):
    store_layers(doc, "one", LAYERS)
    store_layers(doc, "two", LAYERS + 1)
    assert_array_equal(doc._.elmo_layers, LAYERS + 1)
    assert_array_equal(stored_layers(doc, "one"), LAYERS)
    assert stored_layers(doc, "three") is None
    store_layers(doc, "one", LAYERS)
    assert_array_equal(doc._.elmo_layers, LAYERS)


def test_retokenized_doc(doc):
    """The retokenizer does not change extension data, so a naive getter would return the vectors of other tokens."""
    store_layers(doc, "elmo", LAYERS)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    for read in (
        lambda: doc._.elmo,
        lambda: doc._.elmo_layers,
        lambda: doc[0]._.elmo,
        lambda: doc[0:2]._.elmo,
    ):
        with pytest.raises(ValueError, match=r"3 tokens.*for 4.*Run the component again.*'elmo'"):
            read()
    assert stored_layers(doc, "elmo") is None


def test_merged_and_split_into_as_many_tokens():
    """Some tokens are where they were, and have their vectors; all others, and the Doc, raise the error."""
    install_extensions()
    doc = Doc(NLP.vocab, words=["New", "York", "is", "counterrevolutionary", "now"])
    store_layers(doc, "elmo", np.arange(2 * 5 * 3, dtype="f").reshape(2, 5, 3))
    last = doc[4]._.elmo
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        halves = ["counter", "revolutionary"]
        retokenizer.split(doc[3], halves, heads=[(doc[3], 1), (doc[3], 1)])
    assert len(doc) == 5
    stale = (doc, doc[0], doc[1], doc[2], doc[3], doc[0:2], doc[2:5])
    for thing in stale:
        for name in ("elmo", "elmo_layers"):
            with pytest.raises(ValueError, match="Run the component again"):
                getattr(thing._, name)
    assert_array_equal(doc[4]._.elmo, last)
    assert stored_layers(doc, "elmo") is None
    loaded = Doc(NLP.vocab).from_bytes(doc.to_bytes())
    with pytest.raises(ValueError, match="Run the component again"):
        loaded._.elmo  # noqa: B018


@pytest.mark.parametrize("name", ["elmo", "elmo_layers"])
def test_vectors_of_parts_cannot_be_set(doc, name):
    """spaCy would keep the value in user_data, where nothing reads it."""
    for part in (doc[0], doc[0:2]):
        with pytest.raises(ValueError, match="set doc._.elmo_layers"):
            setattr(part._, name, LAYERS[0, 0])
    assert not doc.user_data


def test_bytes_and_doc_bin(doc):
    """torch tensors and objects of custom classes on a Doc cannot be serialized."""
    store_layers(doc, "elmo", LAYERS)
    loaded = Doc(NLP.vocab).from_bytes(doc.to_bytes())
    assert_array_equal(loaded._.elmo_layers, LAYERS)
    assert_array_equal(stored_layers(loaded, "elmo"), LAYERS)
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (loaded,) = DocBin(store_user_data=True).from_bytes(data).get_docs(NLP.vocab)
    assert_array_equal(loaded._.elmo_layers, LAYERS)
    assert doc.copy()._.elmo_layers is not None


@pytest.mark.parametrize("copy_user_data", [True, False])
def test_parts_and_wholes_start_without(doc, copy_user_data):
    """Layers of a Doc must be used neither for a part of it nor for a Doc that contains it."""
    store_layers(doc, "elmo", LAYERS)
    assert doc[1:3].as_doc(copy_user_data=copy_user_data)._.elmo is None
    with pytest.warns(UserWarning, match="W101.*'ELMo layers'"):
        assert Doc.from_docs([doc, doc])._.elmo is None


@pytest.mark.parametrize("owner", [Doc, Span, Token])
def test_other_peoples_extensions_stay(owner):
    install_extensions()
    _, _, getter, setter = owner.remove_extension("elmo")
    owner.set_extension("elmo", default="mine")
    try:
        with pytest.raises(ValueError, match="E090.*elmo"):
            install_extensions()
    finally:
        owner.set_extension("elmo", getter=getter, setter=setter, force=True)


@pytest.mark.slow
def test_the_module_is_loaded_again():
    """As by autoreload in a notebook. In a process of its own, because other modules keep the first one."""
    code = """
import importlib, spacy, sys
import spacy_elmo.pipeline.store.extensions as module
from spacy.tokens import Doc
first = spacy.blank("en")
first.add_pipe("elmo", config={"weights": "en_mini_v4"})
doc = first("a cat")
importlib.reload(module)
for _ in range(2):
    module.install_extensions()
    assert Doc.get_extension("elmo_layers")[2] is module.layers_of
    assert (doc._.elmo_layers == first("a cat")._.elmo_layers).all()
    del sys.modules[module.__name__]
    module = importlib.import_module(module.__name__)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)

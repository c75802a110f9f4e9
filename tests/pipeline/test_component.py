"""The component in a pipeline: added, saved, copied, twice in a pipeline, and its errors."""

import copy
import pickle

import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny
from tests.pipelines import TEXTS, assert_same


def equal(one, other, texts=TEXTS):
    pairs = zip(pipelines.layers(one, texts), pipelines.layers(other, texts), strict=True)
    return all(pipelines.same(a, b) for a, b in pairs)


def test_works_at_once(nlp):
    doc = nlp("She sat on the bank of the river.")
    assert doc._.elmo.shape == (len(doc), 10)
    assert doc[5]._.elmo.shape == doc[2:5]._.elmo.shape == (10,)
    assert doc._.elmo_layers.shape == (3, len(doc), 10)
    assert_array_equal(doc[5]._.elmo, doc._.elmo_layers[:, 5].mean(0))
    assert doc.tensor.size == 0


@given(
    texts=st.lists(st.sampled_from(TEXTS) | st.text("ab. \n", max_size=20), max_size=9),
    batch_size=st.integers(1, 10),
)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pipe_gives_the_vectors_of_single_calls(nlp, texts, batch_size):
    for text, layers in zip(
        texts, pipelines.layers(nlp, texts, batch_size=batch_size), strict=True
    ):
        assert_same(layers, nlp(text)._.elmo_layers)


def test_a_row_for_every_token(nlp):
    for doc in nlp.pipe(TEXTS):
        assert doc._.elmo_layers.shape == (3, len(doc), 10)
        zero = (doc._.elmo_layers == 0).all(axis=(0, 2))
        assert zero.tolist() == [token.is_space for token in doc]


def test_weights_of_any_shape(other_weights):
    assert pipelines.blank(other_weights)("A cat.")._.elmo_layers.shape == (4, 3, 8)


def test_word_input(tmp_path):
    path = tmp_path / "words.safetensors"
    bilm = tiny.bilm(tiny.config(n_words=8))
    Weights.from_bilm(bilm, vocabulary=tiny.VOCABULARY).save(path)
    nlp = pipelines.blank(path)
    expected = tiny.read(bilm, [["a", "cat", "flew"]]).layers.numpy()
    assert_same(nlp("a cat flew")._.elmo_layers, expected)
    path.unlink()
    loaded = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert equal(loaded, nlp)


def test_every_copy_on_disk_has_the_same_bytes(weights, tmp_path):
    nlp = pipelines.blank(weights)
    for n in range(4):
        nlp.to_disk(tmp_path / str(n))
        nlp = spacy.load(tmp_path / str(n))
    copies = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in tmp_path.iterdir()
    ]
    assert all(copy == copies[0] for copy in copies)


def test_constructor_reads_no_file(tmp_path):
    nlp = pipelines.blank(tmp_path / "absent.safetensors")
    uses = (lambda: nlp("a"), lambda: nlp.to_disk(tmp_path / "out"), nlp.to_bytes, nlp.initialize)
    for use in (*uses, lambda: copy.deepcopy(nlp)):
        with pytest.raises(OSError, match="absent"):
            use()


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", None])
def test_unreadable_weights(tmp_path, weights, content):
    path = tmp_path / "w.safetensors"
    path.write_bytes(weights.read_bytes()[:-100] if content is None else content)
    with pytest.raises(ValueError, match=r"w\.safetensors.*not a readable weights file"):
        pipelines.blank(path)("a")


# Saving and copying


def by_bytes(nlp):
    return spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())


@pytest.mark.parametrize(
    "duplicate, used", [(by_bytes, False), (copy.deepcopy, False), (copy.deepcopy, True)]
)
def test_copies_by_values(tmp_path, weights, duplicate, used):
    """Bytes contain the weights themselves, and a copied pipeline shares none of them with its original."""
    path = tmp_path / "w.safetensors"
    path.write_bytes(weights.read_bytes())
    nlp = pipelines.blank(path)
    if used:
        nlp("a")
    copied = duplicate(nlp)
    path.unlink()
    assert equal(copied, pipelines.blank(weights))
    pipelines.change(copied, 0)
    assert equal(nlp, pipelines.blank(weights)) and not equal(copied, nlp)


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda pipe: pickle.loads(pickle.dumps(pipe))]
)
def test_copies_of_the_component(nlp, duplicate, used):
    if used:
        nlp("a")
    copied = duplicate(nlp.get_pipe("elmo"))
    actual, expected = copied(nlp.make_doc(TEXTS[1]))._.elmo_layers, nlp(TEXTS[1])._.elmo_layers
    assert_same(actual, expected)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda nlp: pickle.loads(pickle.dumps(nlp))])
def test_copies_in_the_middle_of_a_step(weights, duplicate):
    """A torch tensor with a graph cannot be copied."""
    nlp = pipelines.blank(weights, frozen=False)
    pipelines.add_tagger(nlp)
    optimizer = pipelines.trained(nlp)
    nlp.update(pipelines.examples(nlp), sgd=False)
    before = nlp("Anna met Bob.")
    copied = duplicate(nlp)
    assert_array_equal(copied("Anna met Bob.")._.elmo_layers, before._.elmo_layers)
    assert [t.tag_ for t in copied("Anna met Bob.")] == [t.tag_ for t in before]
    unchanged = pipelines.parameters(copied)
    copied.get_pipe("elmo").finish_update(optimizer)
    assert not pipelines.changed(unchanged, pipelines.parameters(copied))
    listener = copied.get_pipe("elmo").listeners[0]
    assert any(node is listener for node in copied.get_pipe("tagger").model.walk())


def test_loading_does_not_forget_what_is_trained(weights, tmp_path):
    nlp = pipelines.blank(weights, frozen=False)
    pipelines.add_tagger(nlp)
    pipelines.trained(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    before = pipelines.parameters(loaded)
    pipelines.step(loaded, loaded.resume_training())
    assert pipelines.changed(before, pipelines.parameters(loaded))


# With others


def test_rename(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    pipelines.trained(nlp)
    before = [token.tag_ for token in nlp("Anna met Bob.")]
    nlp.rename_pipe("elmo", "vectors")
    nlp.rename_pipe("tagger", "lengths")
    assert [token.tag_ for token in nlp("Anna met Bob.")] == before
    assert nlp.get_pipe("vectors").listening_components == ["lengths"]


def test_memory_zone(nlp):
    """After a zone the component keeps neither words nor Docs of it; the vectors stay, because they belong to the
    user."""
    expected = pipelines.layers(nlp, TEXTS)
    strings = len(nlp.vocab.strings)
    words = ["Zxqv", "qrstuvw"]
    for _ in range(2):
        with nlp.memory_zone():
            kept = pipelines.layers(nlp, TEXTS)
            doc = nlp(" ".join(words))
            vector = doc[1]._.elmo
        assert len(nlp.vocab.strings) == strings
        for layers, again in zip(expected, kept, strict=True):
            assert_same(again, layers)
    assert_array_equal(nlp(" ".join(words))[1]._.elmo, vector)


def test_training_in_a_memory_zone(weights):
    """Cached layers must not depend on words that the vocabulary has removed."""
    nlp = pipelines.listening(weights, frozen=True)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    with nlp.memory_zone():
        words = ["Zxqv", "naps"]
        batch = [Example.from_dict(Doc(nlp.vocab, words=words), {"tags": ["4", "4"]})]
        for _ in range(2):
            pipelines.step(nlp, optimizer, batch)
    expected = pipelines.blank(weights)("Zxqv naps")._.elmo_layers
    for _ in range(2):
        assert_same(nlp("Zxqv naps")._.elmo_layers, expected)


def test_error_handler(nlp, monkeypatch):
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.append((name, str(error))))
    elmo = nlp.get_pipe("elmo")
    monkeypatch.setattr(type(elmo), "predict", lambda self, docs: 1 / 0)
    assert list(nlp.pipe(["a"])) == []
    assert failed == [("elmo", "division by zero")]


def test_analysis_knows_what_is_assigned(nlp):
    attrs = nlp.analyze_pipes()["attrs"]
    for thing in ("doc", "span", "token"):
        assert {f"{thing}._.elmo", f"{thing}._.elmo_layers"} <= set(attrs)


def test_user_data_survives_a_whole_pipeline(nlp):
    doc = nlp("A cat.")
    loaded = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert_array_equal(loaded._.elmo_layers, doc._.elmo_layers)

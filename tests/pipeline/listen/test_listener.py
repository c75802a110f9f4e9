"""The listener: the source of its layers, its output, and its errors."""

import copy
import pickle
from unittest.mock import Mock

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc, DocBin
from thinc.api import data_validation

from spacy_elmo.pipeline.listen.listener import ElmoListener_v1, is_listener, state_of
from tests import pipelines
from tests.pipelines import TEXTS, assert_same


@pytest.fixture
def tagged(weights):
    """A pipeline whose tagger listens, and its listener."""
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    pipelines.trained(nlp, 3)
    return nlp, nlp.get_pipe("elmo").listeners[0]


def mean(layers):
    return layers.mean(axis=0)


def fresh(nlp, text=TEXTS[0]):
    return nlp.make_doc(text)


def test_reads_the_layers_on_the_doc(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    nlp.initialize(lambda: pipelines.examples(nlp))
    (listener,) = nlp.get_pipe("elmo").listeners
    docs = [nlp.get_pipe("elmo")(fresh(nlp, text)) for text in TEXTS]
    for doc, vectors in zip(docs, listener.predict(docs), strict=True):
        assert_allclose(vectors, doc._.elmo, atol=1e-6)
    assert listener.predict([]) == []


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"layers": "top"}, lambda x: x[-1]),
        ({"layers": 0}, lambda x: x[0]),
        ({"layers": "average"}, mean),
        ({"layers": "mix"}, mean),
    ],
)
def test_choice_of_layers(weights, options, expected):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp, **options)
    nlp.initialize(lambda: pipelines.examples(nlp))
    (listener,) = nlp.get_pipe("elmo").listeners
    doc = nlp.get_pipe("elmo")(fresh(nlp))
    assert_allclose(listener.predict([doc])[0], expected(doc._.elmo_layers), atol=1e-6)


def test_dropout_is_for_training_and_keeps_the_mean(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp, dropout=0.4)
    nlp.initialize(lambda: pipelines.examples(nlp))
    (listener,) = nlp.get_pipe("elmo").listeners
    docs = list(nlp.pipe(["We play football in the park. " * 20] * 2))
    whole = listener.predict(docs)
    dropped, backprop = listener.begin_update(docs)
    for x, y in zip(whole, dropped, strict=True):
        assert_allclose(y[y != 0], (x / 0.6)[y != 0], rtol=1e-6)
        assert abs((y[x != 0] == 0).mean() - 0.4) < 0.05
    assert (dropped[0] != dropped[1]).any()
    # s gets a gradient from the numbers that were kept, and γ their product with the mix.
    backprop(dropped)
    expected = sum(float((x * y).sum()) / 0.6 for x, y in zip(whole, dropped, strict=True))
    assert_allclose(listener.layers[0].get_grad("scale"), expected, rtol=1e-4)


def test_layer_that_the_bilm_has_not(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp, layers=7)
    with pytest.raises(ValueError, match="layers = 7, but the biLM has 3"):
        nlp.initialize(lambda: pipelines.examples(nlp))


def test_each_consumer_has_a_mix_of_its_own(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    pipelines.add_ner(nlp)
    pipelines.trained(nlp, 5)
    one, other = (pipelines.mixes(nlp.get_pipe(name).model)[0] for name in ("tagger", "ner"))
    assert np.abs(one.get_param("scalars")).max() > 0
    assert np.abs(one.get_param("scalars") - other.get_param("scalars")).max() > 1e-5


# Width


@pytest.mark.parametrize("width", [None, 10])
def test_width_of_the_upstream(weights, width):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp, width=width)
    listener = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    assert listener.maybe_get_dim("nO") == width
    nlp.initialize(lambda: pipelines.examples(nlp))
    assert listener.get_dim("nO") == 10
    loaded = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert loaded.get_pipe("tagger").model.get_ref("tok2vec").get_dim("nO") == 10


def test_width_that_disagrees(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp, width=12)
    with pytest.raises(ValueError, match="width=12.*'elmo' has layers of width 10"):
        nlp.initialize(lambda: pipelines.examples(nlp))


def test_beside_another_embedding(weights):
    """`concatenate.v1` and spaCy's encoder, as in configs/: shapes are inferred through them."""
    nlp = pipelines.blank(weights)
    hashed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 6,
        "attrs": ["NORM"],
        "rows": [20],
        "include_static_vectors": False,
    }
    maxout = {"@layers": "Maxout.v1", "nO": 4, "normalize": True}
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 4,
        "depth": 1,
        "window_size": 1,
        "maxout_pieces": 2,
    }
    concat = {"@layers": "concatenate.v1", "*": {"a": pipelines.listener(), "b": hashed}}
    reduce = {"@layers": "with_array.v1", "layer": maxout}
    embed = {"@layers": "chain.v1", "*": {"a": concat, "b": reduce}}
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec}})
    optimizer = pipelines.trained(nlp, 2)
    pipelines.step(nlp, optimizer)
    widths = {
        node.maybe_get_dim("nO")
        for node in nlp.get_pipe("tagger").model.walk()
        if node.has_dim("nO")
    }
    assert 10 + 6 in widths
    loaded = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    for one, other in zip(loaded.pipe(TEXTS), nlp.pipe(TEXTS), strict=True):
        assert [token.tag_ for token in one] == [token.tag_ for token in other]


# Docs on which the component did not run


@pytest.mark.parametrize("part", ["as_doc", "from_docs", "retokenized", "fresh"])
def test_docs_without_layers_are_supplied(tagged, part):
    """`as_doc`, `from_docs` and the retokenizer lose the vectors; a naive listener would read zeros or the vectors of
    other tokens. The EntityLinker predicts on results of `as_doc` only."""
    nlp, listener = tagged
    whole = nlp("Anna met Bob in Paris.")
    if part == "as_doc":
        doc = whole[1:4].as_doc()
    elif part == "from_docs":
        with pytest.warns(UserWarning, match="W101"):
            doc = Doc.from_docs([whole, whole])
    elif part == "retokenized":
        with whole.retokenize() as retokenizer:
            retokenizer.merge(whole[1:4])
        doc = whole
    else:
        doc = fresh(nlp)
    with pytest.warns(UserWarning, match="'elmo' did not run") as caught:
        (vectors,) = listener.predict([doc])
    assert len(caught) == 1
    words = [token.text for token in doc]
    expected = nlp.get_pipe("elmo")(Doc(nlp.vocab, words=words))
    assert_same(doc._.elmo_layers, expected._.elmo_layers)
    assert_allclose(vectors, listener.predict([expected])[0], atol=1e-6)
    listener.predict([doc])
    listener.predict([fresh(nlp)])  # no second warning


def test_stored_layers_are_read_where_the_upstream_is_disabled(tagged, monkeypatch):
    """The layers on the Docs are used, so nothing is computed, and there is no warning."""
    nlp, _ = tagged
    expected = [[token.tag_ for token in doc] for doc in nlp.pipe(TEXTS)]
    with nlp.select_pipes(enable="elmo"):
        data = DocBin(docs=nlp.pipe(TEXTS), store_user_data=True).to_bytes()
    docs = list(DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab))
    assert not any(token.tag_ for doc in docs for token in doc)
    monkeypatch.setattr(type(nlp.get_pipe("elmo")), "predict", lambda *args: 1 / 0)
    with nlp.select_pipes(disable="elmo"):
        assert [[token.tag_ for token in doc] for doc in nlp.pipe(docs)] == expected


def test_some_docs_with_layers_and_some_without(tagged):
    nlp, listener = tagged
    docs = [nlp(TEXTS[0]), fresh(nlp, TEXTS[1]), nlp(TEXTS[2])]
    with pytest.warns(UserWarning, match="did not run"):
        mixed = listener.predict(docs)
    for text, vectors in zip(TEXTS, mixed, strict=False):
        assert_allclose(vectors, listener.predict([nlp(text)])[0], atol=1e-6)


def test_nobody_to_listen_to(weights, tagged):
    nlp = spacy.blank("en")
    pipelines.add_tagger(nlp, upstream="elmo")
    with pytest.raises(ValueError, match="no component to listen to: 'elmo' must come before"):
        nlp.initialize(lambda: pipelines.examples(nlp))
    nlp.add_pipe("elmo", config={"weights": str(weights)})
    with pytest.raises(ValueError, match="must come before"):
        nlp.initialize(lambda: pipelines.examples(nlp))
    nlp, listener = tagged
    nlp.remove_pipe("elmo")
    with pytest.raises(ValueError, match="an elmo component must come before"):
        nlp("a")
    assert_array_equal(pickle.loads(pickle.dumps(listener)).layers[0].get_param("scalars"),
                       listener.layers[0].get_param("scalars"))  # fmt: skip


def test_upstream_of_another_name(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp, upstream="other")
    assert nlp.get_pipe("elmo").listeners == []


# Being a layer


def test_no_other_component_takes_it_for_its_own(weights):
    """A tok2vec component claims every instance of a subclass of `Tok2VecListener`, and `debug model` every layer of
    certain names."""
    nlp = pipelines.blank(weights)
    tok2vec = nlp.add_pipe("tok2vec")
    pipelines.add_tagger(nlp)
    assert tok2vec.listeners == [] and len(nlp.get_pipe("elmo").listeners) == 1
    assert "tok2vec-listener" not in nlp.get_pipe("elmo").listeners[0].name
    assert "transformer-listener" not in nlp.get_pipe("elmo").listeners[0].name


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: model.copy()])
def test_a_copied_layer_still_listens(tagged, duplicate):
    """`Model.copy` makes a plain `Model` from an instance of a subclass, and so loses attributes that the forward pass
    needs."""
    nlp, listener = tagged
    copied = duplicate(listener)
    assert is_listener(copied) and state_of(copied) is not state_of(listener)
    doc = nlp(TEXTS[0])
    assert_array_equal(copied.predict([doc])[0], listener.predict([doc])[0])
    with pytest.warns(UserWarning, match="did not run"):
        copied.predict([fresh(nlp)])


def test_shallow_copy_of_the_component_takes_no_listener(tagged):
    nlp, listener = tagged
    elmo = nlp.get_pipe("elmo")
    copied = copy.copy(elmo)
    assert copied is not elmo
    assert state_of(listener).upstreams == [elmo]


def test_pipeline_dropout_leaves_it_alone(tagged):
    """`set_dropout_rate` overwrites every attribute with the name dropout_rate."""
    _, listener = tagged
    assert not any("dropout_rate" in node.attrs for node in listener.walk())


def test_options_come_from_the_config_not_from_the_bytes(tagged):
    nlp, listener = tagged
    other = ElmoListener_v1(upstream="x", layers="mix", dropout=0.5).from_bytes(listener.to_bytes())
    assert state_of(other).upstream_name == "x"
    assert other.layers[0].attrs["options"].dropout == 0.5


def test_data_validation(tagged):
    nlp, listener = tagged
    with data_validation(True):
        listener.initialize(X=[nlp(text) for text in TEXTS])


def test_initialize_computes_nothing(weights, monkeypatch):
    """The layers around the listener predict the sample repeatedly, but need only its shape."""
    nlp = pipelines.blank(weights)
    pipelines.add_ner(nlp)
    model = nlp.get_pipe("elmo").model
    read = Mock(wraps=model._func)
    monkeypatch.setattr(model, "_func", read)
    nlp.initialize(lambda: pipelines.examples(nlp))
    assert not read.called

"""The biLM inside a consumer, and `nlp.replace_listeners`."""

from contextlib import nullcontext

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.util import load_model_from_config
from thinc.api import Adam

from spacy_elmo.pipeline.listen.tok2vec import ReplaceListenerConfig
from tests import pipelines
from tests.pipelines import TEXTS


def inline(weights, **options):
    """A pipeline without an elmo component."""
    nlp = spacy.blank("en")
    tok2vec = {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "bilm": {"@architectures": "spacy-elmo.BiLM.v1"},
        "weights": str(weights),
        **options,
    }
    nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec}})
    return nlp


def inner(nlp, name="tagger"):
    """The biLM inside a consumer."""
    (node,) = [node for node in nlp.get_pipe(name).model.walk() if node.name == "elmo-bilm"]
    return node.shims[0]


def answers(nlp, texts=TEXTS):
    """Return all predictions of taggers and NER for texts."""
    return [(doc.to_json()["tokens"], doc.to_json().get("ents")) for doc in nlp.pipe(texts)]


def parameters(shim):
    return {name: p.detach().numpy().copy() for name, p in shim.bilm.named_parameters()}


def test_inline_is_the_listener_without_the_component(weights):
    nlp, other = inline(weights), pipelines.blank(weights)
    pipelines.add_tagger(other)
    optimizers = [pipelines.trained(one, 0) for one in (nlp, other)]
    for one, optimizer in zip((nlp, other), optimizers, strict=True):
        for _ in range(5):
            pipelines.step(one, optimizer)
    for one, same in zip(*(list(p.pipe(TEXTS)) for p in (nlp, other)), strict=True):
        assert [token.tag_ for token in one] == [token.tag_ for token in same]
    scalars = [
        pipelines.mixes(p.get_pipe("tagger").model)[0].get_param("scalars") for p in (nlp, other)
    ]
    assert scalars[0].any()
    assert_allclose(*scalars, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"get_spans": {"@misc": "spacy-elmo.sents.v1"}}])
def test_inline_vectors_of_the_docs_of_initialize(weights, options):
    """During `initialize` the vectors are zeros of the right shape, since the Docs have no sentences yet; afterwards
    they are computed."""
    nlp, examples = inline(weights, **options), []
    examples += pipelines.examples(nlp)
    nlp.initialize(lambda: examples)
    model = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    docs = [example.predicted for example in examples]
    for doc in docs:
        doc[0].is_sent_start = True
        for token in doc[1:]:
            token.is_sent_start = False
    vectors, others = model.predict(docs), model.predict([doc.copy() for doc in docs])
    assert all(vector.any() for vector in vectors)
    for vector, other in zip(vectors, others, strict=True):
        assert_allclose(vector, other, atol=1e-5)


@pytest.mark.parametrize("is_listener", [True, False])
def test_initialization_ends_by_itself(weights, is_listener):
    """Then also the same list of Docs gets vectors, as thinc's test of layers expects."""
    nlp = pipelines.listening(weights) if is_listener else inline(weights)
    docs = [nlp.make_doc(text) for text in TEXTS]
    model = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    model.initialize(X=docs)
    with pytest.warns(UserWarning, match="did not run") if is_listener else nullcontext():
        vectors = model.predict(docs)
    for vector, expected in zip(vectors, pipelines.blank(weights).pipe(docs), strict=True):
        assert_allclose(vector, expected._.elmo, atol=1e-6)


@pytest.mark.parametrize("is_listener", [True, False])
@pytest.mark.parametrize("callback", ["models", "models_and_pipes"])
def test_trains_under_profiling_callbacks(weights, is_listener, callback):
    """They replace the backward pass of each layer by a function of one argument."""
    scalars = []
    for profiled in (False, True):
        nlp = pipelines.listening(weights) if is_listener else inline(weights, frozen=False)
        optimizer = nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        if profiled:
            spacy.registry.callbacks.get(f"spacy.{callback}_with_nvtx_range.v1")()(nlp)
        pipelines.awaken(nlp, "tagger")
        for _ in range(2):
            pipelines.step(nlp, optimizer)
        scalars.append(pipelines.mixes(nlp.get_pipe("tagger").model)[0].get_param("scalars"))
    assert scalars[0].any()
    assert_allclose(*scalars, atol=1e-6)


@pytest.mark.parametrize("frozen", [True, False])
def test_inline_frozen_or_trained(weights, frozen):
    nlp = inline(weights, frozen=frozen)
    optimizer = nlp.initialize(lambda: pipelines.examples(nlp))
    pipelines.awaken(nlp, "tagger")
    before = parameters(inner(nlp))
    pipelines.step(nlp, optimizer)
    changed = pipelines.changed(before, parameters(inner(nlp)))
    assert changed == (set() if frozen else before.keys())


def test_inline_gradient_is_that_through_a_listener(weights):
    nlp, other = inline(weights, frozen=False), pipelines.blank(weights, frozen=False)
    pipelines.add_tagger(other)
    for one in (nlp, other):
        one.initialize(lambda one=one: pipelines.examples(one))
        pipelines.awaken(one, "tagger")
        one.update(pipelines.examples(one), sgd=False)
    expected = pipelines.gradients(other)
    for name, parameter in inner(nlp).bilm.named_parameters():
        assert_allclose(parameter.grad, expected[name], atol=1e-6)


def test_inline_round_trip_without_the_file(weights, tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(weights.read_bytes())
    nlp = inline(path)
    pipelines.trained(nlp, 3)
    nlp.to_disk(tmp_path / "nlp")
    path.unlink()
    assert answers(spacy.load(tmp_path / "nlp")) == answers(nlp)


@pytest.mark.parametrize(
    "get_spans, frozen, dtype",
    [
        (None, True, "float16"),
        (None, False, "float32"),
        ({"@misc": "spacy-elmo.doc.v1"}, True, "float32"),
        ({"@misc": "spacy-elmo.windows.v1", "size": 4, "stride": 2}, False, "float16"),
        ({"@span_getters": "spacy-transformers.doc_spans.v1"}, True, "float32"),
    ],
)
def test_replaced_listener_says_the_same(weights, tmp_path, get_spans, frozen, dtype):
    """Predictions are equal, also with other spans and another dtype than the default, and after saving, without the
    component or the weights file."""
    if get_spans and "@span_getters" in get_spans:
        pytest.importorskip("spacy_transformers")
    path = tmp_path / "w.safetensors"
    path.write_bytes(weights.read_bytes())
    nlp = pipelines.blank(path, frozen=frozen, get_spans=get_spans, dtype=dtype)
    pipelines.add_tagger(nlp, l2=0.5)
    pipelines.trained(nlp, 5)
    texts = ["Anna met. Bob in Paris. It rains!", *TEXTS]
    expected = answers(nlp, texts)
    vectors = nlp.get_pipe("tagger").model.get_ref("tok2vec").predict(list(nlp.pipe(texts)))

    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    assert nlp.get_pipe("elmo").listeners == []
    path.unlink()
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    for one in (nlp, loaded):
        assert answers(one, texts) == expected
        tok2vec = one.get_pipe("tagger").model.get_ref("tok2vec")
        for actual, wanted in zip(
            tok2vec.predict([one.make_doc(t) for t in texts]), vectors, strict=True
        ):
            assert_allclose(actual, wanted, atol=1e-5)
        assert inner(one).options.frozen == frozen

    block = loaded.config["components"]["tagger"]["model"]["tok2vec"]
    assert block["@architectures"] == "spacy-elmo.ElmoTok2Vec.v1"
    assert (block["get_spans"], block["dtype"]) == (get_spans, dtype)
    assert (block["l2"], block["layers"]) == (0.5, "mix")
    assert (block["frozen"], block["weights"]) == (frozen, str(path))


def test_replaced_listener_learns_on_its_own(weights):
    """In spaCy the copy and the original have the same id, so they would share the optimizer's moments."""
    nlp = pipelines.blank(weights, frozen=False)
    pipelines.add_tagger(nlp, "one")
    pipelines.add_tagger(nlp, "two")
    pipelines.trained(nlp, 2)
    nlp.replace_listeners("elmo", "one", ["model.tok2vec"])
    assert inner(nlp, "one").id != nlp.get_pipe("elmo").model.shims[0].id
    assert nlp.get_pipe("elmo").listening_components == ["two"]
    before = parameters(inner(nlp, "one"))
    optimizer = Adam(0.01)
    pipelines.step(nlp, optimizer)
    assert pipelines.changed(before, parameters(inner(nlp, "one")))
    assert pipelines.changed(before, pipelines.parameters(nlp))
    assert set(optimizer.nr_update.values()) == {1}


def two_listeners(nlp):
    """A tagger with two listeners, one of them deep inside."""
    dropout = {"@layers": "Dropout.v1"}
    inside = {"@layers": "chain.v1", "*": {"x": pipelines.listener(layers=0), "y": dropout}}
    both = {"a": pipelines.listener(layers="top", upstream="elmo"), "b": inside}
    nlp.add_pipe("tagger", config={"model": {"tok2vec": {"@layers": "concatenate.v1", "*": both}}})
    return ["model.tok2vec.*.a", "model.tok2vec.*.b.*.x"]


def test_two_listeners_in_one_component(weights):
    """spaCy iterates over the list from which `remove_listener` removes, so it would skip one listener."""
    nlp = pipelines.blank(weights)
    paths = two_listeners(nlp)
    pipelines.trained(nlp, 3)
    expected = answers(nlp)
    nlp.replace_listeners("elmo", "tagger", paths)
    assert nlp.get_pipe("elmo").listeners == []
    nlp.remove_pipe("elmo")
    assert answers(nlp) == expected
    blocks = nlp.config["components"]["tagger"]["model"]["tok2vec"]["*"]
    assert blocks["a"]["layers"] == "top" and blocks["b"]["*"]["x"]["layers"] == 0
    loaded = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert answers(loaded) == expected


def test_listener_to_another_elmo_in_the_same_component(weights, other_weights):
    """Its options are not used for the listener that is replaced, although it comes first."""
    nlp = pipelines.blank(weights)
    nlp.add_pipe("elmo", name="other", config={"weights": str(other_weights)})
    both = {
        "a": pipelines.listener(layers="top", upstream="other"),
        "b": pipelines.listener(layers=0, upstream="elmo"),
    }
    model = {"tok2vec": {"@layers": "concatenate.v1", "*": both}}
    nlp.add_pipe("tagger", config={"model": model})
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec.*.b"])
    blocks = nlp.config["components"]["tagger"]["model"]["tok2vec"]["*"]
    assert (blocks["a"]["layers"], blocks["b"]["layers"]) == ("top", 0)
    assert "bilm" in blocks["b"] and "bilm" not in blocks["a"]


def test_not_all_listeners_of_a_component(weights):
    nlp = pipelines.blank(weights)
    paths = two_listeners(nlp)
    pipelines.trained(nlp)
    with pytest.raises(ValueError, match="E887"):
        nlp.replace_listeners("elmo", "tagger", paths[:1])
    assert len(nlp.get_pipe("elmo").listeners) == 2


def test_replacing_loads_the_weights(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    assert np.isfinite(inner(nlp).bilm.lstm[0].bias.detach().numpy()).all()


@pytest.mark.parametrize("way", ["loaded", "sourced"])
def test_replacing_elsewhere_than_where_it_was_made(weights, tmp_path, way):
    nlp = pipelines.blank(weights, get_spans={"@misc": "spacy-elmo.doc.v1"})
    pipelines.add_tagger(nlp)
    pipelines.trained(nlp, 3)
    expected = answers(nlp)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    upstream = "elmo"
    if way == "sourced":
        source, loaded, upstream = loaded, spacy.blank("en", vocab=loaded.vocab), "vectors"
        loaded.add_pipe("elmo", name=upstream, source=source)
        loaded.add_pipe("tagger", source=source)
    loaded.replace_listeners(upstream, "tagger", ["model.tok2vec"])
    loaded.remove_pipe(upstream)
    again = load_model_from_config(loaded.config).from_bytes(loaded.to_bytes())
    for one in (loaded, again):
        assert answers(one) == expected


def test_listener_blocks_at_any_depth():
    mine = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo", "layers": 1}
    other = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "other", "layers": 2}
    replace = ReplaceListenerConfig("elmo", {"weights": "w", "frozen": False})
    consumer = {"@architectures": "x", "embed": {"*": {"a": other, "b": {"c": mine}}}}
    block = replace({"@architectures": "spacy-elmo.BiLM.v1"}, consumer)
    assert block == {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "bilm": {"@architectures": "spacy-elmo.BiLM.v1"},
        "weights": "w", "frozen": False,
        "width": None, "layers": 1, "dropout": 0.0, "l2": 0.0,
    }  # fmt: skip


def test_the_options_of_a_sourced_elmo_are_not_variables_of_its_config(weights, tmp_path):
    source = pipelines.listening(weights, frozen=True)
    pipelines.trained(source)
    source.to_disk(tmp_path / "source")
    config = source.config
    config["paths"]["elmo"], config["components"]["elmo"]["weights"] = str(weights), "${paths.elmo}"
    config.to_disk(tmp_path / "source/config.cfg", interpolate=False)
    source = spacy.load(tmp_path / "source")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", source=source)
    nlp.add_pipe("tagger", source=source)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "nlp")
    tags = [
        [token.tag_ for token in pipe("Anna met Bob")]
        for pipe in (source, spacy.load(tmp_path / "nlp"))
    ]
    assert tags[0] == tags[1]

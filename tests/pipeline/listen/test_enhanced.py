"""`ElmoEnhanced.v1`: its values against numpy, its gradients, and the components that read it."""

from types import SimpleNamespace

import numpy as np
import pytest
import spacy
from numpy.testing import assert_allclose
from spacy.util import registry
from thinc.api import Model, fix_random_seed

from spacy_elmo.pipeline.listen.enhanced import ElmoEnhanced_v1
from tests import pipelines
from tests.pipelines import TEXTS

WIDTH, X, ELMO = 6, 8, 10
SIDES = [("input",), ("output",), ("input", "output")]
EMBED = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": X,
    "attrs": ["NORM"],
    "rows": [50],
    "include_static_vectors": False,
}
WINDOW = {"width": WIDTH, "window_size": 1, "depth": 2}
ENCODE = {
    "maxout": {"@architectures": "spacy.MaxoutWindowEncoder.v2", "maxout_pieces": 2, **WINDOW},
    "mish": {"@architectures": "spacy.MishWindowEncoder.v2", **WINDOW},
    "lstm": {
        "@architectures": "spacy.TorchBiLSTMEncoder.v1",
        "width": WIDTH,
        "depth": 1,
        "dropout": 0.0,
    },
}
# The paper's: an LSTM that reads [x ; ELMo] as it is.
WIDE = {"@layers": "PyTorchLSTM.v1", "nO": WIDTH, "nI": X + ELMO, "bi": True}


def config(*sides, **options):
    """The config of an architecture that adds ELMo on these sides."""
    listeners = {side: pipelines.listener(**options) for side in sides}
    return {
        "@architectures": "spacy-elmo.ElmoEnhanced.v1",
        "embed": EMBED,
        "encode": ENCODE["maxout"],
        **listeners,
    }


def build(nlp, *sides, encode=ENCODE["maxout"], embed=EMBED):
    """A model, outside any component, that listens to the elmo of the pipeline, and its parts."""
    blocks = {"encode": encode, "embed": embed, **{side: pipelines.listener() for side in sides}}
    parts = registry.resolve({name: block for name, block in blocks.items() if block})
    for side in sides:
        nlp.get_pipe("elmo").add_listener(parts[side], "outside")
    return ElmoEnhanced_v1(**parts), SimpleNamespace(**parts)


def enhanced(nlp, *sides, **blocks):
    """Return the initialized model of `build`, whose mixes differ."""
    fix_random_seed(0)
    model, parts = build(nlp, *sides, **blocks)
    model.initialize(X=[nlp(text) for text in TEXTS])
    random = np.random.default_rng(0)
    for side in sides:
        mix = mix_at(model, side)
        mix.set_param("scalars", random.normal(size=3).astype("f"))
        mix.set_param("scale", random.normal(size=1).astype("f"))
    return model, parts


def tagging(weights, model, **elmo):
    """Return an initialized pipeline whose tagger has this model."""
    fix_random_seed(0)
    nlp = pipelines.blank(weights, **elmo)
    nlp.add_pipe("tagger", config={"model": {"tok2vec": model}})
    pipelines.trained(nlp, 0)
    return nlp


def inside(nlp, name):
    """The model of a component."""
    (model,) = [node for node in nlp.get_pipe(name).model.walk() if "input" in node.ref_names]
    return model


def mix_at(model, side):
    """The mix of one side."""
    (mix,) = pipelines.mixes(model.get_ref(side))
    return mix


# Values


def mixed(layer, doc):
    """Equation 1 of the paper."""
    (mix,) = pipelines.mixes(layer)
    weights = np.exp(mix.get_param("scalars"))
    weights /= weights.sum()
    return (1 + mix.get_param("scale")) * np.einsum("l,lnw->nw", weights, doc._.elmo_layers)


def maxout(model, x):
    """The largest of three linear maps for each number, then a layer norm with its initial parameters."""
    (layer,) = [
        node
        for projection in model.walk()
        if projection.name == "elmo-project-to-width"
        for node in projection.walk()
        if node.name == "maxout"
    ]
    best = (np.einsum("opi,ni->nop", layer.get_param("W"), x) + layer.get_param("b")).max(axis=-1)
    return (best - best.mean(-1, keepdims=True)) / np.sqrt(best.var(-1, keepdims=True) + 1e-8)


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("encode", ENCODE)
def test_values(nlp, encode, sides):
    model, parts = enhanced(nlp, *sides, encode=ENCODE[encode])
    docs = [nlp(text) for text in TEXTS]
    read = parts.embed.predict(docs)
    if "input" in sides:
        read = [np.hstack([x, mixed(parts.input, doc)]) for x, doc in zip(read, docs, strict=True)]
    # All at once: what spaCy's Mish and LSTM encoders make of a Doc depends on those beside it.
    expected = parts.encode.predict([maxout(model, x) for x in read])
    if "output" in sides:
        expected = [
            np.hstack([h, mixed(parts.output, doc)]) for h, doc in zip(expected, docs, strict=True)
        ]
    for doc, vectors, wanted in zip(docs, model.predict(docs), expected, strict=True):
        assert vectors.shape == (len(doc), model.get_dim("nO"))
        assert_allclose(vectors, wanted, atol=1e-5)


@pytest.mark.parametrize("embed", [EMBED, None])
def test_vectors_of_the_right_width_are_encoded_as_they_are(nlp, embed):
    """Without a linear layer before the encoder: the vectors have the input width of an LSTM, and ELMo alone has that
    of a residual encoder."""
    encode = WIDE if embed else {**ENCODE["maxout"], "width": ELMO}
    model, parts = enhanced(nlp, "input", encode=encode, embed=embed)
    doc = nlp(TEXTS[1])
    read = mixed(parts.input, doc)
    if embed:
        read = np.hstack([*parts.embed.predict([doc]), read])
    (expected,) = parts.encode.predict([read])
    loaded, _ = build(nlp, "input", encode=encode, embed=embed)
    for one in (model, loaded.from_bytes(model.to_bytes())):
        assert_allclose(one.predict([doc])[0], expected, atol=1e-5)


def test_embed_that_is_a_concatenation(nlp):
    """`concatenate` merges its layers with those of a concatenation that it is given."""
    both = {"@layers": "concatenate.v1", "*": {"a": EMBED, "b": {**EMBED, "attrs": ["SHAPE"]}}}
    encode = {**WIDE, "nI": 2 * X + ELMO}
    model, parts = enhanced(nlp, "input", encode=encode, embed=both)
    doc = nlp(TEXTS[0])
    read = [layer.predict([doc])[0] for layer in parts.embed.layers]
    assert [vectors.shape[1] for vectors in read] == [X, X, ELMO]
    assert_allclose(model.predict([doc])[0], *parts.encode.predict([np.hstack(read)]), atol=1e-5)


def without_width():
    """An embedding whose array for an empty Doc has no width, as that of a transformer."""

    def forward(model, docs, is_train):
        embedded = [np.ones((len(doc), X if len(doc) else 0), dtype="f") for doc in docs]
        return embedded, lambda d_embedded: [doc.copy() for doc in docs]

    return Model("without-width", forward)


@pytest.mark.parametrize("sides", SIDES)
def test_empty_docs_beside_others(nlp, sides):
    """A transformer gives an empty Doc an array of shape (0, 0), which thinc cannot concatenate."""
    parts = registry.resolve(
        {side: pipelines.listener() for side in sides} | {"encode": ENCODE["maxout"]}
    )
    for side in sides:
        nlp.get_pipe("elmo").add_listener(parts[side], "outside")
    model = ElmoEnhanced_v1(embed=without_width(), **parts)
    docs = [nlp(text) for text in TEXTS]
    model.initialize(X=docs)
    vectors, backprop = model.begin_update(docs)
    width = WIDTH + ELMO * ("output" in sides)
    assert [vector.shape for vector in vectors] == [(len(doc), width) for doc in docs]
    backprop(vectors)


def test_only_empty_docs(nlp):
    model, _ = enhanced(nlp, "input", "output")
    assert [y.shape for y in model.predict([nlp(""), nlp("")])] == [(0, WIDTH + ELMO)] * 2


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("stated", [None, ELMO])
def test_width(nlp, sides, stated):
    """The width is known to the layers above, whatever place of the config states it."""
    parts = {"embed": EMBED, "encode": ENCODE["lstm"]}
    parts |= {side: pipelines.listener(width=stated) for side in sides}
    model = ElmoEnhanced_v1(**registry.resolve(parts))
    expected = WIDTH + (ELMO if "output" in sides else 0)
    open_ = "output" in sides and stated is None
    assert model.maybe_get_dim("nO") == (None if open_ else expected)
    for side in sides:
        nlp.get_pipe("elmo").add_listener(model.get_ref(side), "outside")
    model.initialize(X=[nlp(TEXTS[0])])
    assert model.get_dim("nO") == expected


@pytest.mark.parametrize(
    "sides, embed, message",
    [
        ((), EMBED, "neither input nor output.*spacy.Tok2Vec.v2"),
        (("output",), None, "neither embed nor input"),
    ],
)
def test_what_cannot_be(nlp, sides, embed, message):
    with pytest.raises(ValueError, match=message):
        enhanced(nlp, *sides, embed=embed)


# Gradients


@pytest.mark.parametrize("encode", [WIDE, ENCODE["mish"]])
def test_gradients_by_finite_differences(nlp, encode):
    """The gradients of both mixes and of x."""
    model, parts = enhanced(nlp, "input", "output", encode=encode)
    docs = [nlp(text) for text in TEXTS]
    random = np.random.default_rng(1)
    d = [random.normal(size=(len(doc), WIDTH + ELMO)) for doc in docs]

    def loss():
        return sum(float((y * dy).sum()) for y, dy in zip(model.predict(docs), d, strict=True))

    _, backprop = model.begin_update(docs)
    backprop([dy.astype("f") for dy in d])
    (last,) = [node for node in parts.embed.walk() if node.name == "layernorm"]
    asked = [(last, "b")]
    asked += [(mix_at(model, side), name) for side in SIDES[2] for name in ("scalars", "scale")]
    for node, name in asked:
        gradient = node.get_grad(name)
        largest = np.abs(gradient).max()
        assert largest > 0.01
        assert_allclose(gradient, differences(node, name, loss), atol=0.02 * largest)


def differences(node, name, loss, step=5e-3):
    """The gradient of a parameter by finite differences. The steps are large, because the numbers have single
    precision."""
    start = node.get_param(name).copy()
    actual = np.empty_like(start)
    for place in range(start.size):
        moved = []
        for sign in (1, -1):
            there = start.copy()
            there[place] += sign * step
            node.set_param(name, there)
            moved.append(loss())
        actual[place] = (moved[0] - moved[1]) / (2 * step)
    node.set_param(name, start)
    return actual


def test_bilm_learns_from_both_sides(weights):
    """The biLM's gradient is the sum of the gradients of both sides."""
    actual = {}
    for sides in SIDES:
        nlp = tagging(weights, config("input", "output"), frozen=False)
        for side in {"input", "output"} - set(sides):
            listener = inside(nlp, "tagger").get_ref(side)

            def no_gradient(model, docs, is_train, forward=listener._func):
                return forward(model, docs, is_train)[0], lambda d_mixed: []

            listener._func = no_gradient
        pipelines.awaken(nlp, "tagger")
        nlp.update(pipelines.examples(nlp), sgd=False)
        actual[sides] = pipelines.gradients(nlp)
    first, second, both = actual.values()
    assert len(both) == len(list(pipelines.bilm(nlp).parameters()))
    for name, gradient in both.items():
        assert first[name].any() and second[name].any()
        assert_allclose(gradient, first[name] + second[name], atol=1e-5)


# In components


# The entity linker reads sentences as Docs of their own, which carry no layers.


@pytest.mark.parametrize("sides", SIDES)
def test_replaced_listeners_say_the_same(weights, tmp_path, sides):
    """Each gets its own biLM and mix; predictions are the same without the component and after saving."""
    nlp = tagging(weights, config(*sides))
    for side in sides:
        mix_at(inside(nlp, "tagger"), side).set_param(
            "scalars", np.arange(3, dtype="f") * len(side)
        )
    expected = inside(nlp, "tagger").predict(list(nlp.pipe(TEXTS)))

    nlp.replace_listeners("elmo", "tagger", [f"model.tok2vec.{side}" for side in sides])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path)
    for one in (nlp, spacy.load(tmp_path)):
        model = inside(one, "tagger")
        actual = model.predict([one.make_doc(text) for text in TEXTS])
        for vectors, wanted in zip(actual, expected, strict=True):
            assert_allclose(vectors, wanted, atol=1e-5)
        assert {model.get_ref(side).name for side in sides} == {"elmo-tok2vec"}


def test_replaced_listeners_keep_their_options(weights):
    """The paths are in the order of the config, so each copy gets the options of the listener that it replaces."""
    model = config("input", "output")
    model["input"]["dropout"], model["output"]["dropout"] = 0.5, 0.25
    nlp = tagging(weights, model)
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec.input", "model.tok2vec.output"])
    block = nlp.config["components"]["tagger"]["model"]["tok2vec"]
    assert (block["input"]["dropout"], block["output"]["dropout"]) == (0.5, 0.25)
    for side, dropout in (("input", 0.5), ("output", 0.25)):
        assert mix_at(inside(nlp, "tagger"), side).attrs["options"].dropout == dropout

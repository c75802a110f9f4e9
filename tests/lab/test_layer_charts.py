"""The layer weights of components are those of their mixes, and the chart shows them."""

import numpy as np
import pytest
import spacy

from spacy_elmo.lab.layer_charts import (
    LayerWeights,
    distinct_names,
    layer_chart,
    layer_weights,
)
from tests import pipelines

WEIGHTS = {"input": ([0.25, 0.5, 0.25], 1.5), "output": ([0.125, 0.125, 0.75], 0.5)}


def learn(mix, weights, gamma):
    mix.set_param("scalars", np.log(np.array(weights, dtype="f")) + 7)  # softmax sees no shift
    mix.set_param("scale", np.array([gamma - 1], dtype="f"))


def enhanced(weights, *sides, inline=False):
    """Return a pipeline with an ElmoEnhanced in its tagger, and the weights that its mixes should have learnt."""
    nlp = pipelines.blank(weights)
    elmo = pipelines.listener()
    if inline:
        elmo = {
            "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
            "bilm": {"@architectures": "spacy-elmo.BiLM.v1"},
            "weights": str(weights),
        }
    tok2vec = {
        "@architectures": "spacy-elmo.ElmoEnhanced.v1",
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 4, "depth": 1, "window_size": 1, "maxout_pieces": 2,
        },
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 4, "attrs": ["NORM"], "rows": [10], "include_static_vectors": False,
        },
        **dict.fromkeys(sides, elmo),
    }  # fmt: skip
    nlp.add_pipe("tagger", config={"model": {"tok2vec": tok2vec}})
    nlp.initialize(lambda: pipelines.examples(nlp))
    model = nlp.get_pipe("tagger").model
    for side in sides:
        (node,) = [n for n in model.walk() if n.maybe_get_ref(side) and "input" in n.ref_names]
        learn(*pipelines.mixes(node.get_ref(side)), *WEIGHTS[side])
    return nlp


def seen(nlp):
    return [
        (mix.component, mix.place, mix.layers, pytest.approx(mix.weights), pytest.approx(mix.gamma))
        for mix in layer_weights(nlp)
    ]


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("sides", [["input"], ["output"], ["input", "output"]])
def test_sides_of_elmo_enhanced(weights, tmp_path, sides, inline):
    nlp = enhanced(weights, *sides, inline=inline)
    expected = [("tagger", side, "mix", *WEIGHTS[side]) for side in sides]
    assert seen(nlp) == expected
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    assert seen(loaded) == expected
    loaded.disable_pipe("tagger")
    assert seen(loaded) == expected


def test_what_is_not_learnt(weights):
    nlp = pipelines.blank(weights)
    choices = {
        "mix": [1 / 3] * 3,
        "average": [1 / 3] * 3,
        "top": [0, 0, 1],
        1: [0, 1, 0],
        -3: [1, 0, 0],
    }
    for choice in choices:
        pipelines.add_tagger(nlp, f"tagger_{choice}", layers=choice)
    nlp.initialize(lambda: pipelines.examples(nlp))
    assert seen(nlp) == [
        (f"tagger_{choice}", "", choice, expected, 1.0) for choice, expected in choices.items()
    ]


def test_untrained_mixes_are_an_error(weights):
    nlp = pipelines.blank(weights)
    pipelines.add_tagger(nlp)
    with pytest.raises(ValueError, match=r"nlp\.initialize\(\)"):
        layer_weights(nlp)


@pytest.mark.parametrize(
    "paths, names",
    [
        (["training/ner/model-best"], [""]),
        (["t/ner/model-best", "t/pos/model-best"], ["ner", "pos"]),
        (["t/a/ner-0/model-best", "t/b/ner-0/model-last"], ["a/ner-0/model-best", "b/ner-0/model-last"]),
        (["a", "b"], ["a", "b"]),
        (["a/a", "a"], ["a/a", "a"]),
        (["t/a", "t/a"], ["t/a", "t/a"]),
    ],
)  # fmt: skip
def test_distinct_names(paths, names):
    assert distinct_names(paths) == names


def test_layer_chart():
    mixes = [
        ("b", LayerWeights("b", "", "mix", [0.2, 0.8], 1.5)),
        ("a", LayerWeights("a", "", 0, [1.0, 0.0, 0.0], 1.0)),
    ]
    spec = layer_chart(mixes)
    rows = [(row["mix"], row["layer"], row["weight"]) for row in spec["data"]["values"]]
    learnt, chosen = "b (γ 1.50)", "a (γ 1.00, layers = 0: not learned)"
    assert rows == [
        (learnt, "0", 0.2), (learnt, "1", 0.8), (chosen, "0", 1.0), (chosen, "1", 0.0), (chosen, "2", 0.0),
    ]  # fmt: skip
    assert [row["average"] for row in spec["data"]["values"]] == [1 / 2] * 2 + [1 / 3] * 3
    assert spec["facet"]["row"]["sort"] == [learnt, chosen]

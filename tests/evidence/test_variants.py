"""Every variant differs from the config of its pair only in what its name says, and the network has this difference."""

import numpy as np
import pytest
import spacy
from confection import Config
from experiments.init_tok2vec import layer_for
from experiments.pretrained_tok2vec import block_of, train
from experiments.raw_text import write
from experiments.variants import (
    VARIANTS,
    Resources,
    config_file,
    derive,
    needs_elmo,
    own_variant,
    read_pair,
    tok2vec_block,
)
from spacy.tokens import Doc, DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_model_from_config, registry

from tests.evidence.folders import EVIDENCE

import register  # noqa: F401  isort: skip

TASKS = sorted(
    [path.parent.name for path in (EVIDENCE / "tasks").glob("*/baseline.cfg")]
    + [
        path.stem.removesuffix("_baseline")
        for path in (EVIDENCE.parent / "configs").glob("*_baseline.cfg")
    ]
)
RESOURCES = Resources(EVIDENCE / "no-vectors", EVIDENCE / "no-weights.bin")


def flat(config, prefix=""):
    """Return a config as a dict with dotted keys."""
    actual = {}
    for key, value in config.items():
        if isinstance(value, dict) and value:
            actual |= flat(value, f"{prefix}{key}.")
        else:
            actual[f"{prefix}{key}"] = value
    return actual


def changes(variant, task):
    """Return the dotted keys that a variant has changed, with their values; removed keys have the value "gone"."""
    pair = read_pair(task, EVIDENCE)
    before = flat(pair[needs_elmo(variant)])
    after = flat(derive(variant, task, pair, RESOURCES))
    assert flat(pair[needs_elmo(variant)]) == before
    changed = {key: value for key, value in after.items() if before.get(key, "absent") != value}
    return changed | {key: "gone" for key in before.keys() - after.keys()}


@pytest.mark.parametrize("task", TASKS)
def test_only_what_it_is_named_after(task):
    tok2vec = f"components.{task}.model.tok2vec"
    vectors = {
        "initialize.vectors": str(RESOURCES.vectors),
        f"{tok2vec}.embed.include_static_vectors": True,
    }
    pair = read_pair(task, EVIDENCE)
    states_it = "after_init" in pair[0].get("initialize", {})
    before = {"initialize.after_init": "gone"} if states_it else {}
    block = tok2vec_block(pair[1], task)
    (own,) = (place for place in ("input", "output") if block[place] is not None)
    other = {"input": "output", "output": "input"}[own]
    listener = flat(block[own])
    there = {f"{tok2vec}.{other}.{key}": value for key, value in listener.items()}
    there[f"{tok2vec}.{other}"] = "gone"
    not_here = {f"{tok2vec}.{own}.{key}": "gone" for key in listener} | {f"{tok2vec}.{own}": None}
    assert {variant: changes(variant, task) for variant in VARIANTS} == {
        "baseline": {},
        "vectors": vectors,
        "pretrain": {
            **before,
            "initialize.after_init.@callbacks": "evidence.init_tok2vec.v1",
            "initialize.after_init.component": task,
            "initialize.after_init.path": str(RESOURCES.tok2vec),
        },
        "elmo": {},
        "elmo_vectors": vectors,
        "elmo_top": {f"{tok2vec}.{own}.layers": "top"},
        "elmo_average": {f"{tok2vec}.{own}.layers": "average"},
        "elmo_l2_1": {f"{tok2vec}.{own}.l2": 1.0},
        "elmo_l2_0001": {f"{tok2vec}.{own}.l2": 0.001},
        "elmo_both": there,
        f"elmo_{own}": {},
        f"elmo_{other}": there | not_here,
    }
    assert own_variant(task, EVIDENCE) == f"elmo_{own}"


def test_unknown_variant():
    with pytest.raises(ValueError, match="nknown variant 'glove'; .* baseline, vectors"):
        derive("glove", "ner", read_pair("ner", EVIDENCE), RESOURCES)


def test_configs_are_found_here_or_in_the_repository():
    assert config_file("srl", "baseline", EVIDENCE) == EVIDENCE / "tasks/srl/baseline.cfg"
    shipped = EVIDENCE.parent / "configs"
    assert config_file("parser", "elmo", EVIDENCE).resolve().parent == shipped
    with pytest.raises(FileNotFoundError, match="lemmatizer has no elmo config"):
        config_file("lemmatizer", "elmo", EVIDENCE)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Return a corpus of one sentence with an entity."""
    path = tmp_path_factory.mktemp("corpus") / "train.spacy"
    words, ents = ["Anna", "left", "Harwick"], ["B-PERSON", "O", "O"]
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=words, ents=ents)]).to_disk(path)
    return path


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """Return resources whose tok2vec is that of ner, after spaCy's pretraining on three lines."""
    folder = tmp_path_factory.mktemp("rivals")
    lines = ["Anna left Harwick.", "She sat on the bank.", "It was late."]
    (folder / "lines.txt").write_text("\n\n".join(lines), encoding="utf8")
    write(str(folder / "lines.txt"), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(EVIDENCE)
        train("ner", folder / "raw.jsonl", folder / "tok2vec.bin")
    return Resources(folder / "vectors", folder / "tok2vec.bin")


def initialized(config, corpus):
    config = config.copy()
    config["paths"].update(train=str(corpus), dev=str(corpus))
    return init_nlp(config)


def parameters(model):
    """Return all parameters by the position of their layer and their name."""
    return {
        (number, node.name, name): np.asarray(node.get_param(name))
        for number, node in enumerate(model.walk())
        for name in node.param_names
        if node.has_param(name)
    }


def test_pretrained_weights_arrive(corpus, pretrained):
    pair = read_pair("ner", EVIDENCE)
    tok2vec = registry.resolve({"tok2vec": tok2vec_block(pair[0].interpolate(), "ner")})["tok2vec"]
    weights = pretrained.tok2vec.read_bytes()
    expected = parameters(tok2vec.from_bytes(weights))
    actual = {
        variant: parameters(
            layer_for(
                weights,
                initialized(derive(variant, "ner", pair, pretrained), corpus).get_pipe("ner").model,
            )
        )
        for variant in ("baseline", "pretrain")
    }
    assert actual["pretrain"].keys() == expected.keys() == actual["baseline"].keys()
    for key, value in expected.items():
        np.testing.assert_array_equal(actual["pretrain"][key], value)
    # Without, they would be others.
    assert any(not np.array_equal(actual["baseline"][key], expected[key]) for key in expected)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_place_for_pretrained_weights(task, pretrained):
    """The file can be loaded only if embedding and encoder are those of ner."""
    baseline, _ = read_pair(task, EVIDENCE)
    model = load_model_from_config(baseline, auto_fill=True).get_pipe(task).model
    weights = pretrained.tok2vec.read_bytes()
    if block_of(baseline, task) == block_of(read_pair("ner", EVIDENCE)[0], "ner"):
        layer_for(weights, model).from_bytes(weights)
        tables = [node for node in model.walk() if node.name == "hashembed"]
        assert len(tables) == 4 and all(table.get_param("E").any() for table in tables)
    else:
        with pytest.raises(ValueError, match="no layer with the structure of the saved layer"):
            layer_for(weights, model)


@pytest.mark.parametrize("variant", ["vectors", "elmo_vectors"])
def test_vectors_arrive(variant, corpus, tmp_path):
    nlp = spacy.blank("en")
    nlp.vocab.reset_vectors(width=7)
    nlp.vocab.set_vector("Anna", np.arange(7, dtype="f"))
    nlp.to_disk(tmp_path / "vectors")
    resources = RESOURCES._replace(vectors=tmp_path / "vectors")
    made = initialized(derive(variant, "ner", read_pair("ner", EVIDENCE), resources), corpus)
    np.testing.assert_array_equal(made.make_doc("Anna")[0].vector, np.arange(7))
    (static,) = (n for n in made.get_pipe("ner").model.walk() if n.name == "static_vectors")
    assert static.get_dim("nM") == 7


@pytest.mark.parametrize(
    "variant, sides",
    [("elmo_input", ["input"]), ("elmo_both", ["input", "output"]), ("elmo_output", ["output"])],
)
def test_place_of_elmo(variant, sides, corpus):
    config = derive(variant, "ner", read_pair("ner", EVIDENCE), RESOURCES)
    nlp = initialized(Config(config), corpus)
    tok2vec = nlp.get_pipe("ner").model.get_ref("tok2vec").layers[0]
    assert [side for side in ("input", "output") if tok2vec.maybe_get_ref(side)] == sides
    width = nlp.get_pipe("elmo").model.get_dim("nO")
    assert tok2vec.get_dim("nO") == 96 + (width if "output" in sides else 0)

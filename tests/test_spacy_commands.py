"""spaCy's own commands on the shipped configs."""

import subprocess
import sys

import numpy as np
import pytest
import spacy
import srsly
from spacy.cli import app
from spacy.tokens import DocBin
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  adds the command `elmo`, as the entry point does in a process of its own
from tests import consumers, tiny
from tests.consumers import CONFIGS, NAMES

SHIPPED = sorted(path.name for path in CONFIGS.glob("*.cfg") if "pretrain" not in path.name)


def run(*arguments):
    """Run one command in this process, and return its output."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training data, development data, and a small config for each consumer."""
    folder = tmp_path_factory.mktemp("commands")
    weights = folder / "w.safetensors"
    tiny.save(weights, {"language": "en"})
    docs = [example.reference for example in consumers.examples(spacy.blank("en"))]
    # `debug data` refuses sets of fewer than 100 Docs.
    DocBin(docs=docs * 40).to_disk(folder / "train.spacy")
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    for name in NAMES:
        config = consumers.config(name, weights, folder)
        config["paths"].update(train=str(folder / "train.spacy"), dev=str(folder / "dev.spacy"))
        config.to_disk(folder / f"{name}.cfg")
    return folder


@pytest.fixture(scope="module")
def saved(folder):
    """Saved pipelines: two that have a threshold, and one that has none."""
    for name in ("ner", "spancat", "textcat_multilabel"):
        nlp = consumers.pipeline(load_config(folder / f"{name}.cfg"))
        nlp.initialize(lambda nlp=nlp: consumers.examples(nlp))
        nlp.to_disk(folder / name)
    return folder


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("shipped", SHIPPED)
def test_train_takes_the_file_as_it_is(folder, shipped, tmp_path):
    """Overrides work, of what the file states and of what spaCy fills in."""
    overrides = ["--paths.train", folder / "train.spacy", "--paths.dev", folder / "dev.spacy"]
    overrides += ["--training.max_steps", 2, "--training.eval_frequency", 1, "--system.seed", 3]
    if "elmo" in shipped:
        overrides += ["--components.elmo.weights", folder / "w.safetensors"]
    if "entity_linker" in shipped:
        overrides += ["--paths.kb", folder / "kb"]
    run("train", CONFIGS / shipped, "-o", tmp_path, *overrides)
    nlp = spacy.load(tmp_path / "model-last")
    assert len(list(nlp.pipe(consumers.TEXTS))) == len(consumers.TEXTS)
    training = nlp.config["training"]
    patience = load_config(CONFIGS / shipped)["training"]["patience"]
    assert (training["max_steps"], training["eval_frequency"]) == (2, 1)
    assert training["patience"] == patience
    assert nlp.config["system"]["seed"] == 3


@pytest.mark.filterwarnings("ignore:'elmo' did not run:UserWarning")
@pytest.mark.parametrize("name", ["ner", "parser"])
def test_debug_model(folder, name):
    """It updates the consumer alone, so a naive listener has nothing to read (E203)."""
    for component in load_config(folder / f"{name}.cfg")["nlp"]["pipeline"]:
        if component not in ("elmo", "tok2vec"):
            assert "model looks good" in run("debug", "model", folder / f"{name}.cfg", component)


@pytest.mark.parametrize(
    "name, score", [("spancat", "spans_sc_f"), ("textcat_multilabel", "cats_macro_f")]
)
def test_find_threshold(saved, name, score):
    data = saved / "dev.spacy"
    output = run("find-threshold", saved / name, data, name, "threshold", score, "-n", 3)
    assert "Best threshold" in output


# spaCy leaves files that it has written to be closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_package(saved, tmp_path):
    """The package requires spacy-elmo, and contains the biLM."""
    (saved / "w.safetensors").rename(tmp_path / "elsewhere")
    output = run("package", saved / "ner", tmp_path, "--name", "ner_elmo", "--build", "none")
    (tmp_path / "elsewhere").rename(saved / "w.safetensors")
    assert "Successfully created" in output
    (package,) = tmp_path.glob("en_ner_elmo-*")
    meta = srsly.read_json(package / "meta.json")
    assert any(needed.startswith("spacy-elmo>=") for needed in meta["requirements"])
    (data,) = package.glob("en_ner_elmo/en_ner_elmo-*")
    text = "Anna met Bob in Rome."
    expected = spacy.load(saved / "ner")(text)._.elmo_layers
    assert (spacy.load(data)(text)._.elmo_layers == expected).all()


def test_from_the_shell(tmp_path):
    """A shipped config with the bundled weights, in a process of its own."""
    docs = [example.reference for example in consumers.examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    command = [sys.executable, "-m", "spacy", "train", CONFIGS / "ner_elmo.cfg", "-o", tmp_path]
    paths = ["--paths.train", tmp_path / "a.spacy", "--paths.dev", tmp_path / "a.spacy"]
    steps = ["--training.max_steps", "2", "--training.eval_frequency", "1"]
    done = subprocess.run([*command, *paths, *steps], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    nlp = spacy.load(tmp_path / "model-last")
    assert nlp("Anna met Bob.")._.elmo.shape == (4, 512)
    assert set(nlp.get_pipe("ner").labels) == {"PER", "LOC"}


def test_elmo_and_static_vectors(tmp_path, monkeypatch):
    """The pipeline keeps the static vectors, and its NER reads them beside ELMo and the hash embedding (train.md)."""
    docs = [example.reference for example in consumers.examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    # floret's format: rows, width, lengths of word pieces, hashes per piece, their seed, marks of a word's ends.
    table = np.random.default_rng(0).normal(size=(50, 4)).astype("float32")
    rows = [f"{i} {' '.join(map(str, row))}" for i, row in enumerate(table)]
    header = "50 4 4 5 2 2166136261 < >"
    (tmp_path / "table.floret").write_text("\n".join([header, *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    paths = ["--paths.train", "a.spacy", "--paths.dev", "a.spacy", "--paths.vectors", "vectors"]
    paths += ["--components.ner.model.tok2vec.embed.include_static_vectors", "true"]
    for command in (
        ["init", "vectors", "en", "table.floret", "vectors", "--mode", "floret"],
        ["elmo", "init-config", "ner.cfg", "--from", "ner_elmo"],
        ["train", "ner.cfg", "-o", ".", *paths, "--training.max_steps", "1"],
    ):
        run(*command)
    nlp = spacy.load(tmp_path / "model-last")
    np.testing.assert_allclose(nlp.vocab.vectors.data, table, rtol=1e-6)
    doc = nlp("Anna met Bob.")
    tok2vec = nlp.get_pipe("ner").model.get_ref("tok2vec")
    before = tok2vec.predict([doc])
    nlp.vocab.vectors.data[:] = 0
    after = tok2vec.predict([doc])
    assert abs(before - after).max() > 1e-3

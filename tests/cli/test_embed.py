"""`python -m spacy elmo embed` through spaCy's command line: complete, killed and resumed, and its errors."""

import signal
import sys

import h5py
import numpy as np
import pytest
import spacy

from spacy_elmo.lab.corpora import items as corpus
from spacy_elmo.lab.embedding.vectors import open_vectors
from spacy_elmo.weight_names import DEFAULT_WEIGHTS
from tests import pipelines, tiny
from tests.commands import elmo
from tests.processes import command, start

DEADLINE = 120

# Makes shards of some ten lines, and kills its process at its 30th Doc, once.
CODE = """
import os
import signal
from pathlib import Path

from spacy.language import Language

from spacy_elmo.lab.corpora import items as corpus

corpus.CHARACTERS_PER_SHARD = 300
seen = 0


@Language.component("mortal")
def mortal(doc):
    global seen
    seen += 1
    if seen == 30 and not (mark := Path(__file__).with_name("died")).exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return doc
"""


@pytest.fixture
def weights(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", {"language": "en"})


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The bank in Rome isn't old.\n\nShe sat on it.\n")
    return path


def invoke(*arguments):
    return elmo("embed", *arguments)


def test_format_and_layers(weights, text, tmp_path):
    out = tmp_path / "out.h5"
    code, output = invoke(weights, text, out, "--format", "hdf5", "--layers", "average")
    assert code == 0 and "3 items with 13 tokens" in output
    expected = pipelines.blank(weights)("The bank in Rome isn't old.")._.elmo
    with h5py.File(out) as file:
        assert np.allclose(file["0"], expected, atol=1e-5)


def test_bundled_name(text, tmp_path):
    assert invoke(DEFAULT_WEIGHTS, text, tmp_path / "out", "--dtype", "float16")[0] == 0
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    item = open_vectors(tmp_path / "out")[2]
    assert (item.dtype, item.shape) == (np.float16, (3, 5, 512))
    assert np.allclose(item, nlp("She sat on it.")._.elmo_layers, atol=1e-2)


def test_pipeline_folder(weights, text, tmp_path):
    nlp = pipelines.blank(weights)
    nlp.to_disk(tmp_path / "nlp")
    weights.unlink()
    assert invoke(tmp_path / "nlp", text, tmp_path / "out", "--pooling", "mean")[0] == 0
    expected = nlp("She sat on it.")._.elmo_layers.mean(1)
    assert np.allclose(open_vectors(tmp_path / "out")[2], expected, atol=1e-5)


def test_weights_file_of_any_name(weights, text, tmp_path):
    weights.rename(tmp_path / "weights")
    assert invoke(tmp_path / "weights", text, tmp_path / "out")[0] == 0
    assert len(open_vectors(tmp_path / "out")) == 3


def test_tokenized_text_needs_no_language(weights, text, tmp_path):
    tiny.save(weights)
    code, output = invoke(weights, text, tmp_path / "out")
    assert code == 1
    assert (
        "does not record the language of its weights. Set lang (`--lang`), for example to en"
        in output
    )
    assert not (tmp_path / "out").exists()
    assert invoke(weights, text, tmp_path / "out", "--tokenized")[0] == 0
    assert open_vectors(tmp_path / "out").tokens(0) == "The bank in Rome isn't old.".split()
    assert invoke(weights, text, tmp_path / "out2", "--lang", "en")[0] == 0
    assert open_vectors(tmp_path / "out2").tokens(0)[4:6] == ["is", "n't"]


def test_words_of_another_tokenizer_are_remarked(weights, text, tmp_path):
    card = {"language": "en", "tokenizer": "text as given"}
    tiny.save(weights, card)
    assert "another tokenizer (text as given)" in invoke(weights, text, tmp_path / "a")[1]
    assert "text as given" not in invoke(weights, text, tmp_path / "b", "--tokenized")[1]


def test_killed_and_resumed(weights, text, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "CHARACTERS_PER_SHARD", corpus.CHARACTERS_PER_SHARD)
    code = tmp_path / "mortal.py"
    code.write_text(CODE)
    spacy.util.import_file("python_code", code)
    nlp = pipelines.blank(weights)
    nlp.add_pipe("mortal", first=True)
    nlp.to_disk(tmp_path / "nlp")
    text.write_text("".join(f"{n} cats sat on the bank. It rains.\n" for n in range(50)))

    def run(out, *options):
        words = ["embed", tmp_path / "nlp", text, out, "-c", code, "--format", "hdf5", *options]
        process = start(command, [*map(str, words)], tmp_path / "printed")
        process.join(DEADLINE)
        return process.exitcode

    out, parts = tmp_path / "out", tmp_path / "out.parts"
    assert run(out) == -signal.SIGKILL
    assert (parts / "shard-000000.safetensors").exists() and not (parts / "index.json").exists()
    assert run(out) == 1
    assert "To keep them and compute the rest, set resume (`--resume`)" in " ".join(
        (tmp_path / "printed").read_text().split()
    )
    assert run(out, "--resume") == 0
    assert not parts.exists()
    assert run(tmp_path / "whole") == 0
    assert out.read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(
    "source, problem",
    [
        ("nowhere", "Cannot find 'nowhere'"),
        ("nowhere.safetensors", "Cannot find the weights 'nowhere.safetensors'"),
        ("text.txt", "text.txt is not a readable weights file"),
    ],
)
def test_no_such_pipeline(text, tmp_path, monkeypatch, source, problem):
    monkeypatch.chdir(tmp_path)
    code, output = invoke(source, text, "out")
    assert code == 1
    assert problem in output
    assert not (tmp_path / "out").exists()


def test_pipeline_without_elmo(text, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "nlp")
    code, output = invoke(tmp_path / "nlp", text, tmp_path / "out")
    assert code == 1 and "The pipeline has no elmo component" in output
    code, output = invoke(tmp_path / "nlp", text, tmp_path / "out", "--lang", "en")
    assert code == 1 and "lang = en (`--lang`) can only be set for a weights file" in output


def test_no_text(weights, tmp_path):
    code, output = invoke(weights, tmp_path / "nowhere.txt", tmp_path / "out")
    assert code == 1 and "No text at" in output
    assert not (tmp_path / "out").exists()


def test_missing_ray(weights, text, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "spacy_elmo.lab.embedding.on_ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    code, output = invoke(weights, text, tmp_path / "out", "--engine", "ray")
    assert code == 1 and 'pip install "spacy-elmo[ray]"' in output

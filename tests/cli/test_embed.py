"""`python -m spacy elmo embed`: the vectors of each option, a killed run, and rejected input."""

import signal

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import spacy

from spacy_elmo.weight_names import DEFAULT_WEIGHTS
from tests import pipelines, tiny
from tests.commands import elmo
from tests.disk import tree
from tests.processes import command, start

DEADLINE = 120

# Makes files of some ten lines, and kills its process at its 30th Doc, once.
CODE = """
import os
import signal
from pathlib import Path

from spacy.language import Language

from spacy_elmo.lab import embed

embed.CHARACTERS_PER_FILE = embed.CHARACTERS_PER_BATCH = 300
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
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = tiny.save(tmp_path / "w.safetensors", {"language": "en"})
    tiny.save(tmp_path / "none.safetensors", {})
    tiny.save(tmp_path / "given.safetensors", {"language": "en", "tokenizer": "text as given"})
    (tmp_path / "any-name").write_bytes(weights.read_bytes())
    pipelines.blank(weights).to_disk(tmp_path / "nlp")
    spacy.blank("en").to_disk(tmp_path / "no-elmo")
    (tmp_path / "text.txt").write_text("The bank in Rome isn't old.\n\nShe sat on it.\n")
    return tmp_path


WORDS = "The bank in Rome is n't old . She sat on it .".split()
GIVEN = "The bank in Rome isn't old. She sat on it.".split()


@pytest.mark.parametrize(
    "source, options, expected, fragment",
    [
        ("w.safetensors", [], WORDS, "Vectors: out"),
        ("any-name", [], WORDS, ""),
        ("nlp", ["--layers", "top"], WORDS, ""),
        ("w.safetensors", ["--tokenized"], GIVEN, ""),
        ("none.safetensors", ["--tokenized"], GIVEN, ""),
        ("none.safetensors", ["--lang", "en"], WORDS, ""),
        ("given.safetensors", [], WORDS, "another tokenizer (text as given)"),
        ("w.safetensors", ["--unit", "span"], ["The bank in Rome isn't old.", "She sat on it."], ""),
    ],
)  # fmt: skip
def test_texts(folder, source, options, expected, fragment):
    code, output = elmo("embed", source, "text.txt", "out", *options)
    assert code == 0 and fragment in output, output
    assert ("text as given" in output) == bool("another" in fragment)
    assert pq.read_table("out")["text"].to_pylist() == expected


def test_values(folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp("The bank in Rome isn't old.")
    arguments = ["embed", DEFAULT_WEIGHTS, "text.txt"]
    assert elmo(*arguments, "out", "--layers", "average", "--dtype", "float16")[0] == 0
    column = pq.read_table("out")["vector"]
    assert str(column.type.value_type) == "halffloat"
    rows = np.array(column.to_pylist())
    np.testing.assert_allclose(rows[:8], doc._.elmo, atol=2e-3)
    assert elmo(*arguments, "v.hdf5", "--format", "hdf5")[0] == 0
    with h5py.File("v.hdf5") as file:
        np.testing.assert_allclose(file["0"], doc._.elmo_layers, atol=1e-5)
        assert [file[name].shape for name in "12"] == [(3, 0, 512), (3, 5, 512)]


def test_killed_and_repeated(folder):
    code = folder / "mortal.py"
    code.write_text(CODE)
    spacy.util.import_file("python_code", code)
    nlp = pipelines.blank(folder / "w.safetensors")
    nlp.add_pipe("mortal", first=True)
    nlp.to_disk(folder / "mortal")
    text = "".join(f"{n} cats sat on the bank. It rains.\n" for n in range(50))
    (folder / "text.txt").write_text(text)

    def run(out):
        words = ["embed", folder / "mortal", folder / "text.txt", folder / out, "-c", code]
        process = start(command, [*map(str, words)], folder / "printed")
        process.join(DEADLINE)
        return process.exitcode

    assert run("out") == -signal.SIGKILL
    assert (folder / "out" / "part-00000.parquet").exists()
    assert run("out") == 0
    (folder / "out").rename(folder / "before")
    assert run("out") == 0
    before = {name.replace("before", "out"): data for name, data in tree(folder / "before").items()}
    assert tree(folder / "out") == before


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["nowhere", "text.txt", "out"], "Cannot find 'nowhere'"),
        (["no.safetensors", "text.txt", "out"], "Cannot find the weights 'no.safetensors'"),
        (["text.txt", "text.txt", "out"], "text.txt is not a readable weights file"),
        (["no-elmo", "text.txt", "out"], "The pipeline has no elmo component"),
        (["nlp", "text.txt", "out", "--lang", "en"], "can only be set for a weights file"),
        (["none.safetensors", "text.txt", "out"], "does not record the language of its weights. Set lang"),
        (["w.safetensors", "none.txt", "out"], "No text at 'none.txt'"),
        (["w.safetensors", "text.txt", "text.txt", "--format", "hdf5"], "text.txt already exists"),
        (["w.safetensors", "text.txt", "text.txt"], "text.txt"),
    ],
)  # fmt: skip
def test_errors(folder, arguments, problem):
    code, output = elmo("embed", *arguments)
    assert code == 1 and problem in output
    assert not any((folder / "out").glob("*"))
    assert (folder / "text.txt").read_text().startswith("The bank")

"""`convert`, `export` and `download`: arguments, exit code and a fragment of the output. An error writes no file.

`convert` also runs once through spaCy's command line.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters import download
from spacy_elmo.weight_names import DEFAULT_WEIGHTS, find_weights
from tests import pipelines, tiny
from tests.commands import elmo
from tests.converters import foreign, foreign_allennlp, foreign_many_langs
from tests.converters.test_download import CONTENT, SHA256, Server
from tests.converters.test_untrusted_files import write_zip

TABLE = torch.linspace(-1, 1, 40).view(8, 5).numpy()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with models in every format, texts, and weights, which is the current folder."""
    foreign.write_model(tmp_path / "bilm", tiny.bilm(tiny.config()))
    foreign.write_arrays(tmp_path / "softmax.h5", {"softmax/W": TABLE, "softmax/b": TABLE[:, 0]})
    foreign.write_arrays(tmp_path / "vectors.h5", {"embedding": TABLE})
    (tmp_path / "many").mkdir()
    foreign_many_langs.write_model(tmp_path / "many", foreign_many_langs.options())
    state = foreign_allennlp.tagger_of(tiny.bilm(tiny.config()), [([0.0] * 3, 1.0)])
    foreign_allennlp.write(tmp_path / "allennlp", state, foreign_allennlp.config_of())
    options = (tmp_path / "bilm" / "options.json").read_bytes()
    (tmp_path / "o.json").write_bytes(options)
    write_zip(
        tmp_path / "damaged.zip", {"m/options.json": b'{"lstm": {"dim": 0}}', "m/w.hdf5": b""}
    )
    (tmp_path / "words.txt").write_text("\n".join(tiny.VOCABULARY), "utf8")
    (tmp_path / "text.txt").write_text("a cat sat .\nit rained ,\n\nand so on .\n" * 9, "utf8")
    tiny.save(tmp_path / "w.safetensors", max_characters=50)
    tiny.save(tmp_path / "skipless.safetensors", skip=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "options.json").write_text("mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


COMMANDS = [
    ("convert bilm-hdf5 bilm out.safetensors", 0, "read bilm/options.json, bilm/lm_weights.hdf5"),
    ("convert auto bilm out.safetensors --lang de", 0, "bilm-hdf5, because there is lm_weights.hdf5"),
    ("convert auto bilm/lm_weights.hdf5 out.safetensors --options o.json", 0, "read o.json, bilm/lm_weights.hdf5"),
    ("convert auto bilm out.safetensors --softmax softmax.h5 --vocabulary words.txt", 0, "softmax.h5, words.txt"),
    ("convert auto bilm out.safetensors --token-vectors vectors.h5 --vocabulary words.txt", 0, "replace the token"),
    ("convert auto many out.safetensors --warm text.txt", 0, "start state: mean over 27 sentences of text.txt"),
    ("convert allennlp allennlp out.safetensors --options o.json", 0, "scalar_mix_0: weights 0, 0, 0"),
    ("convert auto bilm w.safetensors --force", 0, "w.safetensors: "),
    ("convert auto bilm out.safetensors", 0, "The language of the model is not known. Set lang (`--lang`)"),
    ("convert bert bilm out.safetensors", 1, "format = 'bert' is unknown. Use auto or one of bilm-hdf5"),
    ("convert auto nowhere out.safetensors", 1, "nowhere"),
    ("convert auto mine out.safetensors", 1, "mine is no model of a known format"),
    ("convert auto bilm out.safetensors --accept", 1, "The format bilm-hdf5 has no option accept"),
    ("convert auto bilm out.pt", 1, "ends in .safetensors"),
    ("convert auto bilm mine", 1, "is a folder"),
    ("convert auto bilm nowhere/out.safetensors", 1, "does not exist"),
    ("convert auto bilm w.safetensors", 1, "w.safetensors already exists"),
    ("convert auto damaged.zip w.safetensors --force", 1, "damaged.zip/m/w.hdf5 is not a readable HDF5 file"),
    ("convert auto bilm out.safetensors --warm nowhere", 1, "No such file"),
    ("convert auto bilm out.safetensors --warm words.txt", 0, "8 sentences of words.txt"),
    ("convert auto bilm out.safetensors --warm mine/options.json", 1, "too few sentences for a start state: 1"),
    ("convert auto allennlp out.safetensors", 1, "Give it with options (`--options`)"),
    ("export bilm-hdf5 w.safetensors out", 0, "out/weights.hdf5"),
    ("export allennlp w.safetensors out", 0, "out/weights.th"),
    ("export onnx w.safetensors out.onnx", 0, "out.onnx: "),
    ("export bilm-hdf5 skipless.safetensors out", 0, "but AllenNLP cannot: max_characters = 12"),
    ("export allennlp skipless.safetensors out", 1, "AllenNLP does not support this biLM"),
    ("export bilm-hdf5 w.safetensors mine --force", 0, "mine/options.json"),
    ("export bilm-hdf5 w.safetensors mine", 1, "contains options.json. To overwrite, set force (`--force`)"),
    ("export allennlp w.safetensors mine", 1, "contains options.json. To overwrite, set force (`--force`)"),
    ("export onnx w.safetensors w.safetensors", 1, "w.safetensors already exists"),
    ("export onnx w.safetensors mine --force", 1, "mine is a folder"),
    ("export bilm-hdf5 w.safetensors nowhere/out", 1, "nowhere does not exist"),
    ("export bilm-hdf5 w.safetensors words.txt", 1, "words.txt is a file"),
    ("export bert w.safetensors out", 1, "'bert' is unknown. Use one of bilm-hdf5, allennlp, onnx"),
    ("export onnx nowhere out.onnx", 1, "nowhere"),
    ("download", 0, "many-langs-zh"),
    ("download --lang zh", 0, "many-langs-zh"),
    ("download --lang xyz", 1, "no public model for --lang xyz"),
    ("download en-smal", 1, "no public model 'en-smal'. Similar names are en-small"),
]  # fmt: skip


@pytest.mark.parametrize("command, code, fragment", COMMANDS)
def test_command(place, command, code, fragment):
    before = tree(place)
    found, output = elmo(*command.split())
    assert found == code, output
    assert fragment in output and "Traceback" not in output
    if code:
        assert tree(place) == before


def test_through_spacy(place):
    command = [sys.executable, "-m", "spacy", "elmo", *"convert auto bilm out.safetensors".split()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf8")
    assert (done.returncode, done.stderr) == (0, "")
    assert "bilm/lm_weights.hdf5" in " ".join(done.stdout.split())
    assert Weights.load("out.safetensors").config == tiny.config()


def test_start_state_in_a_pipeline(place):
    assert elmo(*"convert auto bilm out.safetensors --warm text.txt".split())[0] == 0
    cold, warm = (
        pipelines.blank("out.safetensors", start=start)("A cat.") for start in ("zero", "warm")
    )
    assert np.abs(cold._.elmo_layers - warm._.elmo_layers).max() > 1e-3


@pytest.mark.parametrize("format", ["bilm-hdf5", "allennlp"])
def test_bundled_model_there_and_back(place, format):
    """It is in float16, and has a head."""
    assert elmo("export", format, DEFAULT_WEIGHTS, "out")[0] == 0
    assert elmo(*"convert auto out back.safetensors --lang en".split())[0] == 0
    expected, back = Weights.load(find_weights(DEFAULT_WEIGHTS)), Weights.load("back.safetensors")
    words = [["She", "sat", "on", "the", "bank", "."]]
    layers = [tiny.read(weights.build_bilm(), words).layers for weights in (expected, back)]
    torch.testing.assert_close(*layers, atol=1e-5, rtol=0)


def test_download(tmp_path, monkeypatch):
    """Files are downloaded once, with their checksums, and the command to convert them is shown."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "my cache"))
    monkeypatch.setattr(download, "CATALOGUE", tmp_path / "models.json")

    def catalogue(files):
        record = {
            "name": "some", "languages": ["xx"], "format": "bilm-hdf5", "parameters": None, "licence": "not stated",
            "about": "Something", "source": "https://host.invalid", "files": files,
        }  # fmt: skip
        download.CATALOGUE.write_text(json.dumps([record]), "utf8")

    with Server() as server:
        folder = tmp_path / "my cache" / "some"
        catalogue({server.url("whole", "a.json"): None, server.url("short", "b.hdf5"): SHA256})
        code, output = elmo("download", "some")
        assert code == 1 and f"Could not download {server.url('short', 'b.hdf5')}" in output
        assert [path.name for path in folder.iterdir()] == ["a.json"]
        catalogue({server.url("whole", "a.json"): None, server.url("whole", "b.hdf5"): SHA256})
        code, output = elmo("download", "some")
        assert code == 0, output
        assert (folder / "b.hdf5").read_bytes() == CONTENT
        assert server.asked == ["/whole/a.json", "/short/b.hdf5", "/whole/b.hdf5"]
        assert "Licence: not stated (https://host.invalid)" in output
        assert "checksum of a.json" in output and "checksum of b.hdf5" not in output
        assert output.count(f"SHA-256 {SHA256}") == 2
        assert output.endswith(f"spacy elmo convert bilm-hdf5 '{folder}' OUT_FILE --lang xx")
        catalogue({server.url("whole", "b.hdf5"): SHA256})
        assert f"convert bilm-hdf5 '{folder}/b.hdf5' OUT_FILE" in elmo("download", "some")[1]

"""`python -m spacy elmo init-config`, and the way from foreign weights to a package that others install."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli import app
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from tests import pipelines, tiny
from tests.converters import foreign

PAGE = (Path(__file__).parents[2] / "docs" / "packages.md").read_text(encoding="utf8")


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "w.safetensors"
    Weights.from_bilm(tiny.bilm(tiny.config()), card={"language": "fi"}).save(path)
    return path


def invoke(*arguments):
    result = CliRunner().invoke(elmo_cli, ["init-config", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def words(result):
    return " ".join(result.output.split())


def test_config_is_the_pipeline(weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("w.safetensors", "a.cfg").exit_code == 0
    config = load_config(tmp_path / "a.cfg")
    assert config["nlp"]["lang"] == "fi"
    assert config["nlp"]["pipeline"] == ["elmo"]
    assert config["components"]["elmo"]["weights"] == str(weights)
    # Every setting is shown.
    assert config["components"]["elmo"]["frozen"] is True
    assert "max_characters" in config["components"]["elmo"]["model"]
    monkeypatch.chdir("/")
    nlp = spacy.util.load_model_from_config(config, auto_fill=False)
    assert nlp("Hei maailma.")._.elmo.shape == (3, 10)


@pytest.mark.parametrize("place", [[], ["-"]])
def test_to_standard_output(weights, tmp_path, place):
    card = {"language": "fi", "tokenizer": "text as given"}
    Weights.from_bilm(tiny.bilm(tiny.config()), card=card).save(weights)
    result = invoke(weights, *place)
    assert result.exit_code == 0
    # What the user should know stays out of the config.
    (tmp_path / "b.cfg").write_text(result.stdout)
    assert load_config(tmp_path / "b.cfg")["components"]["elmo"]["weights"] == str(weights)
    assert "another tokenizer (text as given)" in result.stderr


def test_bundled_name_stays_a_name():
    result = invoke("en_mini_v3")
    assert 'weights = "en_mini_v3"' in result.stdout
    assert 'lang = "en"' in result.stdout
    assert result.stderr == ""


def test_language(weights, tmp_path):
    assert 'lang = "de"' in invoke(weights, "--lang", "de").stdout
    Weights.from_bilm(tiny.bilm(tiny.config())).save(weights)
    result = invoke(weights, tmp_path / "a.cfg")
    assert result.exit_code == 1
    assert "does not name the language of the weights. Set it, for example with --lang en" in words(
        result
    )
    assert not (tmp_path / "a.cfg").exists()
    assert 'lang = "xx"' in invoke(weights, "--lang", "xx").stdout
    result = invoke(weights, "--lang", "qq")
    assert result.exit_code == 1
    assert "spaCy cannot create a pipeline for the language 'qq'" in words(result)


def test_what_is_there_is_kept(weights, tmp_path):
    path = tmp_path / "a.cfg"
    path.write_text("precious")
    for place, problem in [
        (path, "--force"),
        (tmp_path, "is a folder"),
        (path / "b", "does not exist"),
    ]:
        result = invoke(weights, place)
        assert result.exit_code == 1
        assert problem in words(result)
    assert path.read_text() == "precious"
    assert invoke(weights, path, "--force").exit_code == 0
    assert load_config(path)["nlp"]["lang"] == "fi"


# spaCy leaves files that it has written to be closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_from_foreign_weights_to_an_installed_package(tmp_path, monkeypatch):
    """The commands of the documentation, and a new process that has nothing but the package."""
    monkeypatch.chdir(tmp_path)
    # No network: `build` then uses the setuptools that are there.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    Path("theirs").mkdir()
    foreign.write_model(Path("theirs"), tiny.bilm(tiny.config()))
    Weights.from_bilm(tiny.bilm(tiny.config())).save("expected.safetensors")
    text = "Anna met Bob in Rome."
    expected = pipelines.blank("expected.safetensors")(text)._.elmo

    mkdir, *commands = re.search(r"```bash\n(.*?)\n```", PAGE, re.DOTALL)[1].split("\n")
    Path(mkdir.removeprefix("mkdir ")).mkdir()
    assert len(commands) == 4
    for command in commands:
        result = CliRunner().invoke(app, command.removeprefix("python -m spacy ").split())
        assert result.exit_code == 0, result.output + repr(result.exception)
    (wheel,) = Path("packages").rglob("*.whl")
    python("-m", "pip", "install", "--no-deps", "--target", "site", wheel)
    for name in ("theirs", "pipeline", "packages"):
        shutil.rmtree(name)
    Path("ours.safetensors").unlink()
    python(
        "-c",
        "import sys; sys.path.insert(0, 'site'); import en_their_elmo, numpy;"
        f"numpy.save('found.npy', en_their_elmo.load()({text!r})._.elmo)",
    )
    assert np.allclose(np.load("found.npy"), expected, atol=1e-6)


def python(*arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

"""`python -m spacy elmo layers`."""

import json
import sys

import pytest
import spacy

from tests import pipelines, tiny
from tests.commands import elmo

CODE = """
from spacy.language import Language


@Language.component("mine")
def mine(doc):
    return doc
"""


def invoke(*arguments):
    return elmo("layers", *arguments)


@pytest.fixture
def trained(tmp_path):
    """Two saved pipelines."""
    weights = tmp_path / "w.safetensors"
    tiny.save(weights, {"language": "en"})
    folders = []
    for name, choice in (("one", "mix"), ("two", "top")):
        nlp = pipelines.blank(weights)
        pipelines.add_tagger(nlp, layers=choice)
        nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        folders.append(tmp_path / name / "model-best")
        folders[-1].parent.mkdir()
        nlp.to_disk(folders[-1])
    return folders


def test_one_pipeline(trained):
    code, output = invoke(trained[0])
    assert code == 0 and "Component Layers Gamma Layer 0 Layer 1 Layer 2" in output
    assert "tagger mix 1.000 0.333 0.333 0.333" in output


def test_several_pipelines_and_all_files(trained, tmp_path):
    files = [tmp_path / f"out.{suffix}" for suffix in ("json", "png", "html")]
    code, output = invoke(*trained, *(f"--out={file}" for file in files))
    assert code == 0
    assert "one tagger mix 1.000 0.333 0.333 0.333 two tagger top 1.000 0.000 0.000 1.000" in output
    assert all(f"Saved: {file}" in output.replace("\n", "") for file in files)
    rows = json.loads(files[0].read_text("utf8"))
    assert [(row["pipeline"], row["component"], row["layers"]) for row in rows] == [
        ("one", "tagger", "mix"), ("two", "tagger", "top"),
    ]  # fmt: skip
    assert rows[1]["weights"] == [0, 0, 1]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert "two tagger (γ 1.00, layers = top: not learned)" in json.loads(
        '"' + files[2].read_text("utf8").split('"mix": "')[-1].split('"')[0] + '"'
    )


def test_pipeline_with_code_of_its_own(trained, tmp_path):
    (tmp_path / "mine.py").write_text(CODE)
    spacy.util.import_file("python_code", tmp_path / "mine.py")
    nlp = spacy.load(trained[0])
    nlp.add_pipe("mine")
    nlp.to_disk(tmp_path / "nlp")
    assert invoke(tmp_path / "nlp", "--code", tmp_path / "mine.py")[0] == 0


def test_pipeline_that_reads_no_layers(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "nlp")
    code, output = invoke(tmp_path / "nlp", "-o", tmp_path / "out.png")
    assert code == 1 and "No component of the pipeline uses the layers" in output
    assert not (tmp_path / "out.png").exists()


@pytest.mark.parametrize(
    "out, problem",
    [
        ("out.pdf", "the file name must end in .png, .html or .json"),
        ("nowhere/out.png", "nowhere does not exist"),
        ("folder.png", "is a folder"),
    ],
)
def test_impossible_files(trained, tmp_path, out, problem):
    (tmp_path / "folder.png").mkdir()
    code, output = invoke(trained[0], "--out", tmp_path / out)
    assert code == 1 and problem in output


def test_a_pipeline_whose_language_needs_another_package(trained):
    config = trained[0] / "config.cfg"
    config.write_text(config.read_text("utf8").replace('lang = "en"', 'lang = "zz"'), "utf8")
    code, output = invoke(config.parent)
    assert code == 1 and "Cannot load the pipeline" in output and "zz" in output


def test_missing_pipeline(tmp_path):
    code, output = invoke(tmp_path / "nowhere")
    assert code == 1 and "nowhere" in output


def test_drawing_needs_its_library(trained, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "spacy_elmo.lab.figures", raising=False)
    monkeypatch.delattr("spacy_elmo.lab.figures", raising=False)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, output = invoke(trained[0], "-o", tmp_path / "out.png")
    assert code == 1 and 'pip install "spacy-elmo[figures]"' in output
    assert invoke(trained[0], "-o", tmp_path / "out.json")[0] == 0

"""The origin of the weights in the meta of a pipeline, and the warning if they are of another language."""

import json
import re
from pathlib import Path

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import FOLDER, bundled_names
from tests import pipelines, tiny

CARD = {
    "name": "en_tiny_v1", "language": "en", "licence": "CC BY-SA 4.0", "author": "Ann Author",
    "url": "https://example.org/tiny", "corpus": "12 words",
    "sources": ["a book", {"name": "a lexicon", "license": "CC0"}],
}  # fmt: skip
SOURCES = [
    {"name": "biLM en_tiny_v1", "author": "Ann Author", "license": "CC BY-SA 4.0",
     "url": "https://example.org/tiny", "description": "12 words"},
    {"name": "a book"},
    {"name": "a lexicon", "license": "CC0"},
]  # fmt: skip


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "w.safetensors"
    Weights.from_bilm(tiny.bilm(tiny.config()), card=CARD).save(path)
    return path


def command(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output + repr(result.exception)


# spaCy leaves files that it has written to be closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", ["assembled", "trained"])
def test_licence_sources_and_author_travel(tmp_path, monkeypatch, weights, way):
    monkeypatch.chdir(tmp_path)
    nlp = pipelines.listening(weights) if way == "trained" else pipelines.blank(weights)
    nlp.config.to_disk("a.cfg")
    if way == "trained":
        docs = [example.reference for example in pipelines.examples(nlp)]
        DocBin(docs=docs).to_disk("train.spacy")
        data = ["--paths.train", "train.spacy", "--paths.dev", "train.spacy"]
        command("train", "a.cfg", *data, "--training.max_steps", 1, "--output", ".")
    else:
        command("assemble", "a.cfg", "model-last")
    # The file may be gone when the pipeline is packaged.
    weights.unlink()
    Path("packages").mkdir()
    command("package", "model-last", "packages", "--name", "tiny", "--build", "none")
    (folder,) = Path("packages").iterdir()
    meta = json.loads((folder / "meta.json").read_text("utf8"))
    assert meta["sources"] == SOURCES
    assert meta["license"] == "CC BY-SA 4.0"
    readme = (folder / "README.md").read_text("utf8")
    assert "[biLM en_tiny_v1](https://example.org/tiny) (Ann Author)<br>a book" in readme
    assert "`CC BY-SA 4.0`" in readme


def test_a_pipelines_own_licence_and_sources_stay(tmp_path, weights):
    nlp = spacy.blank("en", meta={"license": "MIT", "sources": [{"name": "my corpus"}]})
    nlp.add_pipe("elmo", config={"weights": str(weights)})
    assert nlp.meta["license"] == "MIT"
    assert nlp.meta["sources"] == [{"name": "my corpus"}, *SOURCES]
    nlp.to_disk(tmp_path / "nlp")
    assert spacy.load(tmp_path / "nlp").meta["sources"] == nlp.meta["sources"]


@pytest.mark.parametrize("name", bundled_names())
def test_the_bundled_weights_credit_all_texts_of_their_corpus(name):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": name})
    page = (FOLDER / "en_mini_v4.md").read_text(encoding="utf8").partition("## Training data")[2]
    rows = re.findall(r"^\| (.+) \| (.+) \| [\d,]+ \|$", page, re.MULTILINE)
    assert len(rows) == 25
    bilm, *texts = nlp.meta["sources"]
    assert (bilm["author"], bilm["license"]) == ("spacy-elmo contributors", "CC BY-SA 4.0")
    assert [(text["name"], text["license"]) for text in texts] == rows


@pytest.mark.parametrize("name", bundled_names())
def test_the_bundled_weights_name_the_tokenizer_of_spacy(name):
    """Otherwise the commands that read text warn that another tokenizer prepared the corpus."""
    card = Weights.load_card(FOLDER / f"{name}.safetensors")
    assert card["tokenizer"] == "spacy.blank('en')"


def test_weights_without_a_card(tmp_path):
    Weights.from_bilm(tiny.bilm(tiny.config())).save(tmp_path / "w.safetensors")
    nlp = pipelines.blank(tmp_path / "w.safetensors")
    assert nlp.meta["sources"] == [{"name": "biLM w"}]
    assert not nlp.meta["license"]


@pytest.mark.parametrize("content", [None, b"no weights"])
def test_a_file_that_cannot_be_read_is_no_error_before_it_is_used(tmp_path, content):
    path = tmp_path / "w.safetensors"
    if content is not None:
        path.write_bytes(content)
    nlp = pipelines.blank(path)
    assert "sources" not in nlp.meta
    with pytest.raises((OSError, ValueError), match="safetensors"):
        nlp("a")


def test_another_language_warns_where_the_weights_are_named(tmp_path, weights):
    nlp = spacy.blank("fi")
    with pytest.warns(UserWarning) as caught:
        nlp.add_pipe("elmo", config={"weights": str(weights)})
    (warning,) = caught
    message = str(warning.message)
    assert message.startswith(f"The biLM of weights={str(weights)!r} was trained on language 'en'")
    assert "`python -m spacy elmo download`" in message
    assert Path(warning.filename).name == "pipeline_meta.py"
    # Once: neither at its use nor in the saved pipeline.
    nlp("talo")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "nlp")
    spacy.load(tmp_path / "nlp")


def test_the_bundled_weights_are_named_to_a_user_of_their_language(tmp_path):
    card = {"language": "fi"}
    Weights.from_bilm(tiny.bilm(tiny.config()), card=card).save(tmp_path / "w.safetensors")
    with pytest.warns(UserWarning, match='weights = "en_base_v2"'):
        pipelines.blank(tmp_path / "w.safetensors")


@pytest.mark.parametrize("lang, trained_on", [("en", "en"), ("xx", "en"), ("fi", "xx")])
def test_no_warning_where_the_language_fits(tmp_path, lang, trained_on):
    card = {"language": trained_on}
    Weights.from_bilm(tiny.bilm(tiny.config()), card=card).save(tmp_path / "w.safetensors")
    spacy.blank(lang).add_pipe("elmo", config={"weights": str(tmp_path / "w.safetensors")})

"""Each project, cloned from a local repository into an empty folder, runs on the sample."""

import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from confection import Config

from spacy_elmo.bilm.weights import Weights
from tests import packages

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "corpus" / "sample"
STATED = {"licence": "CC BY-NC 4.0", "release": "r2.17", "author": "A. Nother"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A git repository with the projects alone, so that a cloned one finds no other file of ours."""
    folder = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "projects", folder / "projects", ignore=shutil.ignore_patterns("*/*/"))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(folder)]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *command], check=True)
    return folder


def call(folder, *arguments):
    """Call a command of spaCy in a folder, as a user does, and return what it printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "spacy", *map(str, arguments)],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def cloned(repository, folder, name):
    """Clone a project into a folder, and return its place."""
    call(folder, "project", "clone", f"projects/{name}", "--repo", repository)
    # To build a wheel, pip fetches setuptools; a test asks for the folder alone.
    path = folder / name / "project.yml"
    path.write_text(path.read_text("utf8").replace("--build wheel", "--build none"), "utf8")
    return folder / name


def run(folder, name, **variables):
    options = [text for key, value in variables.items() for text in (f"--vars.{key}", value)]
    return call(folder, "project", "run", name, ".", *options)


@pytest.mark.slow
def test_treebank_with_names(repository, tmp_path):
    folder = cloned(repository, tmp_path, "treebank")
    data = Path(shutil.copytree(SAMPLE, tmp_path / "my data"))
    variables = dict(
        data=data, lang="en", weights="en_mini_v4", tokenizer="spacy",
        treebank="sample", optimize="efficiency", max_steps=400,
        names="sample", names_train="sample", name_labels="", names_licence="MIT", names_max_steps=600,
        sentences_max_steps=100, **STATED,
    )  # fmt: skip
    run(folder, "with-names", **variables)
    package = folder / "packages/en_sample_elmo-0.1.0"
    meta = srsly.read_json(package / "meta.json")
    assert meta["license"] == "CC BY-SA 4.0, CC BY-NC 4.0, MIT" and meta["author"] == "A. Nother"
    # The grammar of the sample is learned at once: what is lower is broken.
    assert min(score for row in meta["performance"].values() for score in row.values()) > 90
    names = srsly.read_json(folder / "training/names.json")
    assert (
        names["ents_f"] > 0.4
        and f"F1 {100 * names['ents_f']:.1f}" in (package / "README.md").read_text()
    )
    nlp = spacy.load(package / "en_sample_elmo/en_sample_elmo-0.1.0")
    doc = nlp("The sailors see a bridge.")
    assert [token.tag_ for token in doc][1:3] == ["NNS", "VBP"] and doc[1].head == doc[2]
    assert len(list(nlp("The sailors see a bridge. The girl sings.").sents)) == 2
    assert nlp.pipe_names[:3] == ["elmo", "ner", "senter"] and {"ner", "senter"} <= set(
        nlp.get_pipe("elmo").listening_components
    )


@pytest.mark.slow
def test_treebank_of_tags_alone(repository, tmp_path):
    """Without XPOS, lemmas and trees in the training part: what is there is trained and scored."""
    folder = cloned(repository, tmp_path, "treebank")
    for part in ("train", "dev", "test"):
        text = (SAMPLE / f"pos/sample-{part}.conllu").read_text("utf8")
        rows = [line.split("\t") for line in text.split("\n")]
        for row in rows:
            if len(row) == 10 and part != "test":
                row[2] = row[4] = row[6] = row[7] = "_"
        path = tmp_path / f"my data/pos/tags-{part}.conllu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map("\t".join, rows)), "utf8")
    variables = dict(
        data=tmp_path / "my data", treebank="tags", lang="en", weights="en_mini_v4", tokenizer="spacy", max_steps=60
    )  # fmt: skip
    for command in ("prepare", "tokenizer", "train", "score"):
        run(folder, command, **variables, **STATED)
    scores = srsly.read_json(folder / "training/scores.json")
    assert list(scores["plain text"]) == ["tokens", "words", "sentences", "UPOS", "UFeats"]
    assert list(scores["gold words"]) == ["UPOS", "UFeats"]
    assert scores["gold words"]["UPOS"] > 50 and scores["plain text"]["sentences"] > 50


@pytest.mark.slow
def test_treebank(repository, tmp_path):
    """A compressed treebank without a dev part, in a language that spaCy does not know, with a mark that lemmas do not
    have: from it alone to a package that reads plain text. Then another on its biLM."""
    folder = cloned(repository, tmp_path, "treebank")
    for part in ("train", "test"):
        text = (SAMPLE / f"pos/sample-{part}.conllu").read_text("utf8")
        text = text.replace("bridge", "bri\u0301dge").replace("\tbri\u0301dge\tN", "\tbridge\tN")
        path = tmp_path / f"my data/pos/got_tiny-ud-{part}.conllu.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(text.encode()))
    variables = dict(data=tmp_path / "my data", treebank="got_tiny-ud", lang="got", **STATED)
    output = run(folder, "all", **variables, max_steps=150)
    assert "No dev part" in output and "Warning" not in output
    assert "marks that no lemma has: COMBINING ACUTE ACCENT" in output
    scores = srsly.read_json(folder / "training/scores.json")
    assert min(scores["plain text"].values()) > 85 and min(scores["gold words"].values()) > 90
    nlp = spacy.load(folder / "training/pipeline")
    text = "The sailors see a bri\u0301dge. The old doctor finds the road."
    doc = nlp(text)
    assert nlp.lang == "xx" and len(list(doc.sents)) == 2
    assert doc[1].head == doc[2] and doc[2].lemma_ == "see" and doc[4].lemma_ == "bridge"
    assert nlp.get_pipe("lemmatizer").trees.spelling.replace == (("\u0301", ""),)
    run(folder, "all", **variables | dict(
        lang="la", treebank="got_tiny-ud", weights=folder / "training/bilm/model-best.safetensors", max_steps=20,
        optimize="efficiency",
    ))  # fmt: skip
    elmo = spacy.load(folder / "training/pipeline").config["components"]["elmo"]
    # No path of this machine.
    assert (
        elmo["weights"] == srsly.read_json(folder / "training/card.json")["weights"] == "model-best"
    )

    # Both are installed, and used in one process, after the example of the first README.
    site = tmp_path / "site"
    for name in ("got_tiny_elmo", "la_got_tiny_elmo"):
        packages.install(folder / f"packages/{name}-0.1.0", site)
    readme = (folder / "packages/got_tiny_elmo-0.1.0/README.md").read_text("utf8")
    assert readme.startswith("No commercial use (CC BY-NC 4.0). ") and "A. Nother" in readme
    code = re.search("```python\n(.*?)```", readme, re.DOTALL)[1]
    code += f"""
first, second = spacy.load("got_tiny_elmo"), spacy.load("la_got_tiny_elmo")
print("---")
for pipeline in (first, second, first):
    doc = pipeline({text!r})
    print([(token.lemma_, token.pos_, token.dep_, token.head.i, token.is_sent_start) for token in doc])
"""
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    shown, _, lines = done.stdout.partition("---\n")
    first, second, again = lines.splitlines()
    expected = [(t.lemma_, t.pos_, t.dep_, t.head.i, t.is_sent_start) for t in doc]
    assert shown and not done.stderr and first == again == str(expected)
    alone = spacy.load(folder / "training/pipeline")(text)
    assert second == str([(t.lemma_, t.pos_, t.dep_, t.head.i, t.is_sent_start) for t in alone])


SHORT = {"data": SAMPLE, "dataset": "sample", "weights": "en_mini_v4", "max_steps": 20}


@pytest.mark.slow
def test_compare(repository, tmp_path):
    folder = cloned(repository, tmp_path, "compare")
    text = run(folder, "ner", **SHORT)
    assert "| sample | ner_baseline | F1 |" in text and "| sample | ner_elmo | F1 |" in text
    baseline, elmo = (
        spacy.load(folder / f"training/sample/{name}-0/model-best")
        for name in ("ner_baseline", "ner_elmo")
    )
    assert baseline.pipe_names == ["ner"] and elmo.pipe_names == ["elmo", "ner"]
    # What is done is not done again.
    assert "Skipping 'compare'" in run(folder, "ner", **SHORT)
    pytest.importorskip("floret")
    assert "| sample | ner_elmo_vectors | F1 |" in run(folder, "vectors", **SHORT)
    nlp = spacy.load(folder / "training/sample/ner_elmo_vectors-0/model-best")
    assert nlp.vocab.vectors.shape == (50_000, 300)
    embed = nlp.config["components"]["ner"]["model"]["tok2vec"]["embed"]
    assert embed["include_static_vectors"] is True


@pytest.mark.slow
def test_language(repository, tmp_path):
    """From raw text to an installable package; what an interrupted command has done is kept, and the package has the
    spelling rule."""
    folder = cloned(repository, tmp_path, "language")
    *train, heldout = (SAMPLE / "pretrain-en/train-00.txt").read_text("utf8").rsplit("\n\n", 30)
    data = tmp_path / "data" / "pretrain-en"
    data.mkdir(parents=True)
    (data / "train-00.txt").write_text(train[0], "utf8")
    (data / "heldout.txt").write_text("\n\n".join([*train[1:], heldout]), "utf8")
    card = {"licence": "CC0 1.0", "sources": [{"name": "the sample"}]}
    srsly.write_json(data / "card.json", card)
    run(folder, "config")
    config = Config().from_disk(folder / "config.cfg")
    config["model"].update(dim=32, projection=16, filters=[[1, 8], [3, 8]], replace={"v": "u"})
    config["training"].update(negatives=64, eval_every=2, eval_tokens=1000, batch_tokens=1024)
    config.to_disk(folder / "config.cfg")
    variables = {"lang": "en", "data": tmp_path / "data", "classes": 1000}
    run(folder, "all", **variables, words=20000)
    # Another setting of the run, and the same corpus again.
    run(folder, "all", **variables, words=40000)
    weights = Weights.load(folder / "packages/en_elmo/en_elmo/en_elmo_v1.safetensors")
    assert (weights.card["language"], weights.card["licence"]) == ("en", "CC0 1.0")
    assert (weights.card["name"], weights.card["sources"]) == ("en_elmo_v1", card["sources"])
    assert weights.config.replace == (("v", "u"),)
    trained = Weights.load(folder / "runs/en/model-best.safetensors")
    assert "riuer" in trained.vocabulary
    nlp = spacy.blank("en")
    path = folder / "packages/en_elmo/en_elmo/en_elmo_v1.safetensors"
    nlp.add_pipe("elmo", config={"weights": str(path)})
    np.testing.assert_array_equal(nlp("river")._.elmo, nlp("riuer")._.elmo)

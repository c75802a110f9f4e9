"""Each project, cloned from a local repository into an empty folder, runs on the sample."""

import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from confection import Config
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo.bilm.weights import Weights

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "corpus" / "sample"


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
def test_treebank(repository, tmp_path):
    folder = cloned(repository, tmp_path, "treebank")
    variables = dict(
        data=SAMPLE, weights="en_mini_v4", treebank="sample", licence="CC0 1.0", max_steps=400,
        names="sample", names_train="sample", name_labels="", names_licence="MIT", names_max_steps=600,
    )  # fmt: skip
    run(folder, "with-names", **variables)
    (package,) = (folder / "packages").glob("en_treebank_elmo-0.1.0/en_treebank_elmo/en_*")
    path = package.parents[1] / "meta.json"
    meta = srsly.read_json(path)
    assert meta["license"] == "CC BY-SA 4.0, CC0 1.0, MIT"
    scores = meta["performance"]
    test, names = (
        srsly.read_json(folder / f"training/{name}.json") for name in ("test", "names-test")
    )
    assert scores["dep_las"] == test["dep_las"] and scores["ents_f"] == names["ents_f"] > 0.4
    # The grammar of the sample is learned at once: what is lower is broken.
    assert min(scores[name] for name in ("tag_acc", "morph_acc", "lemma_acc", "dep_las")) > 0.9
    nlp = spacy.load(package)
    doc = nlp("The sailors see a bridge.")
    assert [token.tag_ for token in doc][1:3] == ["NNS", "VBP"] and doc[1].head == doc[2]
    assert (
        nlp.pipe_names[:2] == ["elmo", "ner"] and "ner" in nlp.get_pipe("elmo").listening_components
    )


@pytest.mark.slow
def test_treebank_from_scratch(repository, tmp_path):
    """A compressed treebank without a dev part, in a language that spaCy does not know, with a mark that lemmas do not
    have: from it alone to a pipeline."""
    folder = cloned(repository, tmp_path, "treebank")
    for part in ("train", "test"):
        text = (SAMPLE / f"pos/sample-{part}.conllu").read_text("utf8")
        text = text.replace("bridge", "bri\u0301dge").replace("\tbri\u0301dge\tN", "\tbridge\tN")
        path = tmp_path / f"data/pos/tiny-{part}.conllu.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(text.encode()))
    variables = dict(data=tmp_path / "data", treebank="tiny", lang="got", small_max_steps=250)
    output = run(folder, "from-scratch", **variables)
    assert "spaCy cannot load 'got'" in output and "No dev part" in output
    assert "finds 100% of the words" in output and "Warning" not in output
    assert "marks that no lemma has: COMBINING ACUTE ACCENT" in output
    scores = srsly.read_json(folder / "training/test-words.json")
    assert min(scores[name] for name in ("UPOS", "UFeats", "lemma", "LAS")) > 90
    nlp = spacy.load(folder / "training/pipeline")
    doc = nlp("The sailors see a bridge . The old doctor finds the road .")
    assert nlp.lang == "xx" and len(list(doc.sents)) == 2
    assert doc[1].head == doc[2] and doc[2].lemma_ == "see" and doc[4].lemma_ == "bridge"
    assert nlp.get_pipe("lemmatizer").trees.spelling.replace == (("\u0301", ""),)
    variables |= dict(weights="training/bilm/model-best.safetensors", small_max_steps=20)
    run(folder, "fine-tune", **variables)
    elmo = spacy.load(folder / "training/pipeline").config["components"]["elmo"]
    assert elmo["lr_scale"] == 0.1 and not elmo["frozen"]


def test_prepare_treebank(tmp_path):
    """Nine sentences with Windows line ends, without lemmas, texts and a dev part; at first without a test part. The
    biLM has more text."""
    blocks = (SAMPLE / "pos/sample-train.conllu").read_text("utf8").split("\n\n")[:9]
    lines = "\n\n".join(blocks).replace("bridge", "bri\u0301dge").split("\n")
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    text = "\r\n".join("\t".join([*row[:2], *["_"][: len(row) - 1], *row[3:]]) for row in rows)
    command = [
        sys.executable,
        ROOT / "projects/treebank/prepare_treebank.py",
        "tiny",
        ".",
        "--lang",
        "en",
    ]
    for option, name in (("--bilm", "pretrain_mini.cfg"), ("--pipeline", "treebank_elmo.cfg")):
        shutil.copy(ROOT / "configs" / name, tmp_path)
        command += [option, name]
    (tmp_path / "text").mkdir()
    (tmp_path / "text/more.txt").write_text(" ".join(f"word{i}" for i in range(600)))
    for part, message in (
        ("train", "there are no sentences in tiny-test"),
        ("test", "the last 1 sentences"),
    ):
        (tmp_path / f"tiny-{part}.conllu").write_bytes(text.encode())
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert message in done.stderr + done.stdout
    assert "tokenizer" not in done.stdout and "marks" not in done.stdout
    vocab = Vocab()
    train = list(DocBin().from_disk(tmp_path / "text/train.spacy").get_docs(vocab))
    dev = list(DocBin().from_disk(tmp_path / "dev.spacy").get_docs(vocab))
    assert [len(list(doc.sents)) for doc in [*train, *dev]] == [8] + 8 * [1] + [1]
    words = [token.text for doc in [train[0], *dev] for token in doc]
    assert words == [row[1] for row in rows if row[0].isdigit()]
    assert not any(token.lemma for doc in train for token in doc)
    types = len({token.text for doc in train for token in doc}) + 600
    assert (
        Config().from_disk(tmp_path / "pretrain_mini.cfg")["training"]["vocab_size"] == types // 2
    )


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

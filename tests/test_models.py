"""The packages in models/: each is installed without a network, and spaCy finds it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from spacy.matcher import DependencyMatcher

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import write_package
from tests import packages, tiny

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TEXT = "Arma virumque cano . Ἄνδρα μοι ἔννεπε , Über allen Gipfeln , Žluťoučký kůň"
PROGRAM = """
import sys
import numpy, spacy
nlp = spacy.blank(sys.argv[1])
nlp.add_pipe("elmo")
numpy.save(sys.argv[2], nlp(sys.argv[3])._.elmo_layers)
print(nlp.get_pipe_config("elmo")["weights"])
"""

EXAMPLES = {
    "cy": ("Mae'r gath yn cysgu.", ["bod", "y", "cath", "yn", "cysgu", "."]),
    "en": ("Anna reads.", ["Anna", "read", "."]),
    "se": ("Máret lohká girjji.", ["Máret", "lohkat", "girji", "."]),
    "ug": ("مەن كىتاب ئوقۇدۇم.", ["مەن", "كىتاب", "ئوقۇ", "."]),
    "wo": ("Dama bëgg ndox.", ["da", "mu", "bëgg", "ndox", "."]),
}
"""Language of a pipeline -> a sentence, and its lemmas."""


def run(program, *arguments, site):
    """Return what a program prints that finds the packages of a folder, and this one."""
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, *arguments]
    options = {"cwd": site, "check": True, "capture_output": True, "text": True}
    return subprocess.run(command, env=environment, **options).stdout


@pytest.fixture(params=["tiny", *packages.WEIGHTS], ids=lambda of: getattr(of, "name", of))
def package(request, tmp_path):
    """A copy of a folder of models/, because pip builds in it; if there is none, one that `package` makes."""
    if request.param == "tiny":
        # A language that no folder of models/ is of: one may be installed where the tests run.
        card = {"language": "xx", "licence": "CC0 1.0", "tokenizer": "any", "sources": ["a book"]}
        weights = Weights.from_bilm(tiny.bilm(tiny.config()), card=card)
        return write_package(weights, "xx_elmo_tiny_v1", tmp_path)
    return packages.copy(request.param, tmp_path)


def test_a_package_is_whole(package, tmp_path):
    (file,) = package.glob("*/*.safetensors")
    weights = Weights.load(file)
    card = weights.card
    # What users must know of weights, and what they need not carry.
    assert all(card.get(field) for field in ("language", "licence", "tokenizer", "sources"))
    assert file.stem.startswith(f"{card['language']}_") and weights.build_head() is None
    site, vectors = tmp_path / "site", tmp_path / "vectors.npy"
    packages.install(package, site)
    # The source is gone: what works afterwards is what was installed.
    moved = Path(shutil.move(file, tmp_path / file.name))
    shutil.rmtree(package)
    printed = run(PROGRAM, card["language"], str(vectors), TEXT, site=site)
    assert printed.split() == [file.stem]
    nlp = spacy.blank(card["language"])
    nlp.add_pipe("elmo", config={"weights": str(moved)})
    np.testing.assert_allclose(np.load(vectors), nlp(TEXT)._.elmo_layers, atol=1e-6)


@pytest.mark.parametrize("package", packages.PIPELINES, ids=lambda package: package.name)
def test_a_pipeline_is_whole(package, tmp_path):
    copy, site = packages.copy(package, tmp_path), tmp_path / "site"
    packages.install(copy, site)
    shutil.rmtree(copy)
    program = """
import json, spacy, sys
from importlib import metadata
nlp = spacy.load(sys.argv[1])
docs = nlp.pipe(["", "  ", sys.argv[2]])
lemmas = [[token.lemma_ for token in doc if not token.is_space] for doc in docs]
print(json.dumps({"meta": nlp.meta, "lemmas": lemmas, "version": metadata.version(sys.argv[1])}))
"""
    text, lemmas = EXAMPLES[package.name.split("_")[0]]
    printed = srsly.json_loads(run(program, package.name, text, site=site))
    meta = printed["meta"]
    assert printed["lemmas"] == [[], [], lemmas]
    assert f"{meta['lang']}_{meta['name']}" == package.name
    assert printed["version"] == meta["version"]
    stated = ("license", "description", "author", "url", "sources", "performance", "notes")
    assert all(meta[field] for field in stated)


CHUNKS = {
    "The book was written by an unknown author.": ["The book", "an unknown author"],
    "Tim Cook opened a new Apple store in Berlin.": ["Tim Cook", "a new Apple store", "Berlin"],
    "Dogs, cats and birds live in the house of my friend.":
        ["Dogs", "cats", "birds", "the house", "my friend"],
}  # fmt: skip


@pytest.mark.parametrize("labels", ["ud", "spacy"])
def test_english_for_programs_that_were_written_for_spacys_pipelines(labels):
    """Noun chunks, and the example of spaCy's documentation of the `DependencyMatcher`."""
    (folder,) = (packages.MODELS / "en_elmo_web").glob("*/*/config.cfg")
    nlp = spacy.load(folder.parent, config={"components.conventions.labels": labels})
    founded = [
        {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"ORTH": "founded"}},
        {"LEFT_ID": "verb", "REL_OP": ">", "RIGHT_ID": "subject", "RIGHT_ATTRS": {"DEP": "nsubj"}},
        {"LEFT_ID": "verb", "REL_OP": ">", "RIGHT_ID": "object", "RIGHT_ATTRS": {"DEP": "dobj"}},
        {
            "LEFT_ID": "object",
            "REL_OP": ">",
            "RIGHT_ID": "modifier",
            "RIGHT_ATTRS": {"DEP": {"IN": ["amod", "compound"]}},
        },
    ]
    matcher = DependencyMatcher(nlp.vocab)
    matcher.add("FOUNDED", [founded])
    doc = nlp("Smith founded a healthcare company in 2005.")
    words = [[doc[i].text for i in indices] for _, indices in matcher(doc)]
    expected = [["founded", "Smith", "company", "healthcare"]] if labels == "spacy" else []
    assert (words, doc.ents[0].label_) == (expected, "PERSON" if labels == "spacy" else "PER")
    for text, chunks in CHUNKS.items():
        assert [chunk.text for chunk in nlp(text).noun_chunks] == chunks
    nlp.add_pipe("merge_noun_chunks")
    for text, chunks in CHUNKS.items():
        assert set(chunks) <= {token.text for token in nlp(text)}


LINES = [
    "Order #4432 shipped to Ms. Jane Doe, 221B Baker St., London NW1 6XE",
    "ORDER #4471 2 x USB-C cable 1.5 m, 1 x desk lamp (black), ships Mon.",
    "Meeting moved to 3 p.m. on Fri. 12 Sept. in room B.12",
    "He works for Acme Inc. in St. Louis, Mo., not for the U.S. Postal Service.",
    "Council Approves New Bike Lanes on Mill Road Despite Protests",
    "WARNING: DO NOT OPEN THE COVER WHILE THE MACHINE IS RUNNING",
]


def test_english_sentences():
    """Orders, addresses, dates and headlines are one sentence each, and the parser keeps to the sentences of `senter`:
    it neither starts one inside another nor joins two."""
    (folder,) = (packages.MODELS / "en_elmo_web").glob("*/*/config.cfg")
    nlp = spacy.load(folder.parent)
    assert [len(list(doc.sents)) for doc in nlp.pipe(LINES)] == [1] * len(LINES)
    texts = [
        *LINES,
        " ".join(LINES),
        "\n".join(LINES),
        " ".join(LINES).lower(),
        " ".join(LINES).upper(),
    ]
    after = [[token.is_sent_start for token in doc] for doc in nlp.pipe(texts)]
    with nlp.select_pipes(enable=["elmo", "senter"]):
        before = [[token.is_sent_start for token in doc] for doc in nlp.pipe(texts)]
    assert after == before

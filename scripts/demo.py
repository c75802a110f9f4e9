"""A demonstration of ELMo vectors in a few minutes on a CPU, with the sample corpus alone.

    python scripts/demo.py

First: words with several senses, and the places in the sample text with the most similar vectors of these words.
Then: NER trained with and without the biLM's vectors, on names that the test part does not share.
"""

import contextlib
import io
import tempfile
from pathlib import Path

import spacy
from spacy.cli.convert import convert
from spacy.cli.evaluate import evaluate
from spacy.cli.train import train
from wasabi import Printer

from spacy_elmo.analysis.contexts.neighbors import nearest
from spacy_elmo.analysis.contexts.occurrences import find_in_sentences, find_occurrences
from spacy_elmo.corpora.passages import read_passages

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "corpus" / "sample"
STEPS = 400
QUERIES = [
    ("bank", "They moored the boat and climbed up the muddy bank."),
    ("bank", "I asked the bank for a loan, but my account was empty."),
    ("play", "Both teams will play without their best striker."),
    ("play", "The actors were nervous before the first night of the play."),
    ("spring", "In spring the first flowers come out."),
    ("spring", "The spring is made of steel and can be compressed."),
    ("match", "He struck a match and lit the candle."),
    ("match", "Our team lost the match by two goals."),
    ("mouse", "Click twice with the left button of the mouse."),
    ("mouse", "The cat carried a dead mouse into the house."),
]
NEIGHBOURS = 2

msg = Printer()


def main() -> None:
    """Run both parts of the demonstration."""
    msg.divider("The same word, different senses")
    show_neighbours()
    msg.divider("NER with and without ELMo")
    compare_ner()


def show_neighbours() -> None:
    """Print the nearest occurrences of each query's word in the sample text."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    text = list(read_passages(str(SAMPLE / "pretrain-en")))
    rows = []
    for word, sentence in QUERIES:
        corpus = find_occurrences(nlp, text, word, "average")
        query = find_in_sentences(nlp, [sentence], word, corpus, "average")
        ((neighbors,),) = nearest(query, corpus, NEIGHBOURS)
        for occurrence, cosine in neighbors:
            rows.append((query.items[0].excerpt(), f"{cosine:.2f}", occurrence.excerpt()))
    msg.table(
        rows,
        header=("word in context", "cosine", "nearest in the sample text"),
        divider=True,
        max_col=60,
    )


def compare_ner() -> None:
    """Train the two NER configs on the sample and print their scores on its test part."""
    scores = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        for part in ("train", "dev", "test"):
            path = SAMPLE / "ner" / f"sample-{part}.tsv"
            convert(path, data, file_type="spacy", converter="ner", n_sents=1)
        for config in ("ner_baseline", "ner_elmo"):
            msg.text(f"Training {config}.cfg for {STEPS} steps ...")
            overrides = {
                "paths.train": str(data / "sample-train.spacy"),
                "paths.dev": str(data / "sample-dev.spacy"),
                "training.max_steps": STEPS,
            }
            # The output of each training is hidden: the demo prints the scores of both side by side.
            with contextlib.redirect_stdout(io.StringIO()):
                train(
                    ROOT / "configs" / f"{config}.cfg",
                    data / config,
                    overrides=overrides,
                )
                scores[config] = evaluate(
                    data / config / "model-best", data / "sample-test.spacy", silent=True
                )
    rows = [
        (name, *(f"{100 * scores[config][f'ents_{metric}']:.1f}" for metric in "prf"))
        for name, config in (
            ("hash embedding", "ner_baseline"),
            ("hash embedding + ELMo", "ner_elmo"),
        )
    ]
    header = ("vectors", "precision", "recall", "F1")
    msg.table(rows, header=header, divider=True, aligns=("l", "r", "r", "r"))


if __name__ == "__main__":
    main()

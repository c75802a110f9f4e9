"""A demonstration of ELMo vectors with the sample corpus, which takes a few minutes on a CPU.

    python scripts/demo.py

The first part shows words with several senses, and where the sample text uses the same word with the most similar
vector. The second part trains NER with and without the biLM's vectors. The names of the test part do not occur in the
training part.
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

from spacy_elmo.lab.contexts import find_in_sentences, find_occurrences, nearest
from spacy_elmo.lab.documents import read_documents

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
    """Print the occurrences in the sample text that are most similar to the word of each query."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    text = list(read_documents(str(SAMPLE / "pretrain-en")))
    rows = []
    for word, sentence in QUERIES:
        corpus = find_occurrences(nlp, text, word)
        query = find_in_sentences(nlp, [sentence], word, corpus)
        ((*_, top_layer),) = nearest(query, corpus, NEIGHBOURS)
        for occurrence, cosine in top_layer:
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
            # Hide the output of the trainings. The demo prints both scores in one table.
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

"""Time that a frozen elmo with cached layers adds to training: seconds per epoch with and without it, in one run.

The pipelines are those of configs/ner_elmo.cfg and configs/ner_baseline.cfg. Their encoders have the same width. The
first also has the biLM's vectors and a layer that projects its input to this width. Both take turns on the same
batches. A step is the same as in `spacy train`: `nlp.update` and the `finish_update` of each component. Reading the
corpus, `nlp.initialize` and evaluation are not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_config, load_model_from_config, minibatch
from spacy.vocab import Vocab
from thinc.api import Adam

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "corpus" / "sample" / "ner" / "sample-train.tsv"
CONFIGS = {"without": "ner_baseline.cfg", "with": "ner_elmo.cfg"}


def read_docs(path: Path) -> list[Doc]:
    """Read Docs with entities from a `.spacy` file, or from a file with a token, a tab and an IOB2 tag in each line."""
    vocab = Vocab()
    if path.suffix == ".spacy":
        return list(DocBin().from_disk(path).get_docs(vocab))
    docs = []
    for block in path.read_text("utf8").strip().split("\n\n"):
        words, tags = zip(*(line.split("\t") for line in block.splitlines()), strict=True)
        docs.append(Doc(vocab, words=list(words), ents=list(tags)))
    return docs


class TimedPipeline:
    """A pipeline in training, and the seconds of its steps in each epoch."""

    def __init__(self, config: str, docs: list[Doc], **elmo: Any) -> None:
        filled = load_config(ROOT / "configs" / config)
        if "elmo" in filled["components"]:
            filled["components"]["elmo"].update(elmo)
        fix_random_seed(0)
        self.nlp = load_model_from_config(filled, auto_fill=True)
        self.nlp.initialize(lambda: examples(self.nlp, docs))
        self.optimizer = Adam(0.001)
        self.seconds: list[float] = []

    def step(self, docs: list[Doc]) -> None:
        batch = examples(self.nlp, docs)
        start = time.perf_counter()
        self.nlp.update(batch, sgd=False, drop=0.1)
        for _, pipe in self.nlp.pipeline:
            pipe.finish_update(self.optimizer)
        self.seconds[-1] += time.perf_counter() - start


def examples(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Create examples with new Docs, as the corpus readers of `spacy train` do in each epoch."""
    blank = (
        Doc(nlp.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])
        for doc in docs
    )
    return [Example(predicted, doc) for predicted, doc in zip(blank, docs, strict=True)]


def batches(docs: list[Doc], words: int, seed: int) -> Iterator[list[Doc]]:
    """Yield the Docs in random order, in batches of about `words` words."""
    shuffled = random.Random(seed).sample(docs, len(docs))
    average = sum(map(len, docs)) / len(docs)
    yield from minibatch(shuffled, max(1, round(words / average)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--train", type=Path, default=SAMPLE, help=".spacy file, or file with IOB2 tags"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-words", type=int, default=1000)
    parser.add_argument("--limit", type=int, help="use only this number of Docs")
    parser.add_argument("--cache-mb", type=float, default=1000, help="megabytes of elmo's cache")
    parser.add_argument("--cache-dir", help="folder of elmo's cache")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error("--epochs must be at least 2: the first one computes the layers")
    torch.set_num_threads(args.threads)
    warnings.simplefilter("ignore", UserWarning)
    docs = read_docs(args.train)[: args.limit]
    elmo = {"cache_mb": args.cache_mb, "cache_dir": args.cache_dir}
    pipelines = {name: TimedPipeline(config, docs, **elmo) for name, config in CONFIGS.items()}
    for epoch in range(args.epochs):
        for pipeline in pipelines.values():
            pipeline.seconds.append(0.0)
        for batch in batches(docs, args.batch_words, seed=epoch):
            for pipeline in pipelines.values():
                pipeline.step(batch)
    report(args, docs, {name: pipeline.seconds for name, pipeline in pipelines.items()})


def report(args: argparse.Namespace, docs: list[Doc], seconds: dict[str, list[float]]) -> None:
    words = sum(map(len, docs))
    later = {name: sum(epochs[1:]) for name, epochs in seconds.items()}
    ratios = {
        "epoch 1": seconds["with"][0] / seconds["without"][0],
        "epochs 2..": later["with"] / later["without"],
    }
    print(
        f"{len(docs)} Docs, {words} words, batches of {args.batch_words} words, {args.threads} threads, "
        f"spaCy {spacy.__version__}, torch {torch.__version__}"
    )
    print(f"\n{'seconds of':12}{'without elmo':>14}{'with elmo':>12}{'ratio':>8}")
    for epoch, (without, with_elmo) in enumerate(zip(*seconds.values(), strict=True), 1):
        print(f"epoch {epoch:<6}{without:14.2f}{with_elmo:12.2f}{with_elmo / without:8.2f}")
    print(f"epochs 2..  {later['without']:14.2f}{later['with']:12.2f}{ratios['epochs 2..']:8.2f}")
    if args.out:
        result = {
            "docs": len(docs),
            "words": words,
            "batch_words": args.batch_words,
            "cache_mb": args.cache_mb,
            "cache_dir": bool(args.cache_dir),
            "threads": args.threads,
            "spacy": spacy.__version__,
            "torch": torch.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
            "seconds": seconds,
            "ratio": ratios,
        }
        args.out.write_text(json.dumps(result, indent=2) + "\n", "utf8")


if __name__ == "__main__":
    main()

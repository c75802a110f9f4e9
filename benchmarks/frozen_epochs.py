"""Time that a frozen elmo with cached layers adds to training: seconds per epoch with and without it, in one run.

    python -m benchmarks.frozen_epochs --train TRAIN.spacy

The pipelines are those of configs/ner_elmo.cfg and configs/ner_baseline.cfg. Both take turns on the same batches. A
step is the same as in `spacy train`: `nlp.update` and the `finish_update` of each component, with new Docs in every
epoch. The first epoch computes the layers, so the ratio is that of the other epochs.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_config, load_model_from_config, minibatch
from spacy.vocab import Vocab
from thinc.api import Adam

CONFIGS = Path(__file__).parents[1] / "configs"
WORDS_PER_BATCH = 1000


def examples(nlp: Language, docs: list[Doc]) -> list[Example]:
    """Create examples with new Docs, as the corpus readers of `spacy train` do in each epoch."""
    blank = (Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs)
    return [Example(predicted, doc) for predicted, doc in zip(blank, docs, strict=True)]


def epochs(docs: list[Doc], count: int) -> dict[str, list[float]]:
    """Train both pipelines, and return the seconds of their steps in each epoch."""
    pipelines = {}
    for name, config in (("without", "ner_baseline.cfg"), ("with", "ner_elmo.cfg")):
        fix_random_seed(0)
        nlp = load_model_from_config(load_config(CONFIGS / config), auto_fill=True)
        nlp.initialize(lambda nlp=nlp: examples(nlp, docs))
        pipelines[name] = (nlp, Adam(0.001))
    seconds = {name: [0.0] * count for name in pipelines}
    size = max(1, round(WORDS_PER_BATCH * len(docs) / sum(map(len, docs))))
    for epoch in range(count):
        for batch in minibatch(random.Random(epoch).sample(docs, len(docs)), size):
            for name, (nlp, optimizer) in pipelines.items():
                made = examples(nlp, batch)
                start = time.perf_counter()
                nlp.update(made, sgd=False, drop=0.1)
                for _, pipe in nlp.pipeline:
                    pipe.finish_update(optimizer)
                seconds[name][epoch] += time.perf_counter() - start
    return seconds


def main() -> None:
    """Print the seconds of each epoch, and the ratio from the second epoch on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=Path, required=True, help=".spacy file with entities")
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    docs = list(DocBin().from_disk(args.train).get_docs(Vocab()))
    seconds = epochs(docs, args.epochs)
    for epoch, (without, with_elmo) in enumerate(zip(*seconds.values(), strict=True), 1):
        print(f"epoch {epoch}: {without:.2f} s without elmo, {with_elmo:.2f} s with elmo")
    ratio = sum(seconds["with"][1:]) / sum(seconds["without"][1:])
    print(f"with / without from epoch 2 on: {ratio:.2f}")


if __name__ == "__main__":
    main()

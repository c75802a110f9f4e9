"""Prepare the weights of a run for shipping: round them to float16, and score these on the whole held-out text.

    python scripts/release_weights.py runs/base en_base_v1 models/cards/en.json

Writes spacy_elmo/weights/NAME.safetensors and prints the scores for the card beside it. The name must be new: a bundled
name never changes its meaning. The head is rounded to 8 significant bits, those of bfloat16, because a wheel is
compressed: that makes it a sixth smaller, and the score is that of the rounded head.
"""

import argparse
import dataclasses
from pathlib import Path

import torch
from confection import Config
from torch import Tensor
from wasabi import msg

from spacy_elmo.bilm.likelihood import build_language_model
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus.batches import Batcher
from spacy_elmo.pretraining.corpus.prepared import Corpus
from spacy_elmo.pretraining.perplexity import Perplexity, perplexity
from spacy_elmo.pretraining.run_folder import corpus_folder
from spacy_elmo.text.json_object import read_json_object

FOLDER = Path(__file__).parent.parent / "spacy_elmo" / "weights"


def release(run: Path, name: str, card: Path) -> tuple[Path, Perplexity]:
    """Write the bundled file of a run's best model.

    Args:
        card: JSON file with more fields of its card: licence, author, corpus, sources.

    Returns:
        The file, and the held-out perplexity of its rounded weights.

    Raises:
        FileExistsError: there is a file of this name.
    """
    out = FOLDER / f"{name}.safetensors"
    if out.exists():
        raise FileExistsError(
            f"{out} exists, and a bundled name keeps its meaning: choose a new one"
        )
    best = Weights.load(run / "model-best.safetensors")
    # The score is that of the rounded weights, because users get these.
    rounded = {
        key: shorten(tensor.half()) if key.startswith("head.") else tensor.half()
        for key, tensor in best.tensors.items()
    }
    weights = dataclasses.replace(best, tensors=rounded)
    bilm, head = build_language_model(weights)
    config = PretrainConfig.of(Config().from_disk(run / "config.cfg"))
    corpus = Corpus.open(corpus_folder(config, run))
    batcher = Batcher(bilm, corpus.types, best.vocabulary)
    scores = perplexity(bilm, head, batcher, corpus.dev)
    weights.card = {
        **best.card,
        **read_json_object(card),
        "name": name,
        "perplexity": dataclasses.asdict(scores),
    }
    out.parent.mkdir(exist_ok=True)
    weights.save(out)
    return out, scores


def shorten(tensor: Tensor, bits: int = 3) -> Tensor:
    """Return float16 numbers whose last `bits` of 10 are zero, rounded to the nearest ones."""
    # In sign and magnitude, half of the last bit that stays is added to the magnitude by an addition of integers.
    numbers = tensor.contiguous().view(torch.int16)
    return ((numbers + (1 << (bits - 1))) >> bits << bits).view(torch.float16)


def main() -> None:
    """Write the file and print its scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of a pretraining run")
    parser.add_argument("name", help="name of the bundled model, with its version: en_base_v1")
    parser.add_argument("card", type=Path, help="JSON file with more fields of its card")
    args = parser.parse_args()
    out, scores = release(args.run, args.name, args.card)
    msg.table(dataclasses.asdict(scores))
    msg.good(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

"""Make a bundled weights file of a run: round the weights to float16, and score them on all held-out text.

    python scripts/release_weights.py runs/base en_base_v2 models/cards/en.json

The program writes spacy_elmo/weights/NAME.safetensors and prints the scores for the card. The name must be new, because
a bundled name never changes its meaning. The head is rounded to 8 significant bits, as many as in bfloat16, which makes
a compressed wheel a sixth smaller. The scores are those of the rounded weights.
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
from spacy_elmo.files import read_json_object
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus import Batcher, Corpus
from spacy_elmo.pretraining.perplexity import Perplexity, perplexity
from spacy_elmo.pretraining.run import corpus_folder

FOLDER = Path(__file__).parent.parent / "spacy_elmo" / "weights"


def release(run: Path, name: str, card: Path) -> tuple[Path, Perplexity]:
    """Write the bundled file of a run's best model.

    Args:
        card: JSON file with further fields of the card: licence, author, corpus, sources.

    Returns:
        The path of the file, and the held-out perplexity of its rounded weights.

    Raises:
        FileExistsError: there is already a file of this name.
    """
    out = FOLDER / f"{name}.safetensors"
    if out.exists():
        raise FileExistsError(
            f"{out} exists, and a bundled name must not change its meaning: choose a new name"
        )
    best = Weights.load(run / "model-best.safetensors")
    # The scores are those of the rounded weights, because users get these.
    rounded = {
        key: shorten(tensor.half()) if key.startswith("head.") else tensor.half()
        for key, tensor in best.tensors.items()
    }
    weights = dataclasses.replace(best, tensors=rounded)
    bilm, head = build_language_model(weights)
    config = PretrainConfig.read(Config().from_disk(run / "config.cfg"))
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
    """Round float16 numbers so that the last `bits` of their 10 fraction bits are zero."""
    # A float16 is stored as sign and magnitude, so adding an integer to its bits rounds the magnitude, whatever its
    # sign.
    numbers = tensor.contiguous().view(torch.int16)
    return ((numbers + (1 << (bits - 1))) >> bits << bits).view(torch.float16)


def main() -> None:
    """Write the file and print its scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("run", type=Path, help="folder of a pretraining run")
    parser.add_argument("name", help="name of the bundled model, with its version: en_base_v2")
    parser.add_argument("card", type=Path, help="JSON file with further fields of its card")
    args = parser.parse_args()
    out, scores = release(args.run, args.name, args.card)
    msg.table(dataclasses.asdict(scores))
    msg.good(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

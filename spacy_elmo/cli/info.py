"""`python -m spacy elmo info`: show the contents and the origin of a weights file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from .output import file_size, msg


def info_cli(
    source: Annotated[
        str | None,
        typer.Argument(metavar="WEIGHTS", help="Weights file, or name of an installed biLM"),
    ] = None,
) -> None:
    """Show a weights file, or the installed biLMs and versions.

    With a weights file, the command shows its size, origin and checksum, and checks that it is valid.
    """
    if source is None:
        msg.table(_installation())
        msg.info("More about weights: python -m spacy elmo info NAME")
        return
    from ..weight_names import find_weights

    msg.table(_contents(find_weights(source)))


def _installation() -> list[tuple[str, str]]:
    import platform

    import spacy
    import torch

    from ..about import __version__
    from ..bilm.kernels.native import active_kernels
    from ..bilm.weights import Weights
    from ..weight_names import DEFAULT_WEIGHTS, find_weights, known_names

    rows = [
        ("spacy-elmo", __version__),
        ("spaCy", spacy.__version__),
        ("PyTorch", torch.__version__),
        ("Python", platform.python_version()),
        ("platform", platform.platform()),
        ("threads", str(torch.get_num_threads())),
        ("kernels", active_kernels()),
        ("GPU", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
        ("default for English", DEFAULT_WEIGHTS),
    ]
    for name in known_names():
        path = find_weights(name)
        rows.append((name, f"{Weights.load_card(path).get('language')}, {path}"))
    return rows


def _contents(path: Path) -> list[tuple[str, str]]:
    from ..bilm.weights import Weights
    from ..digest import file_digest

    weights = Weights.load(path)
    card, config = weights.card, weights.config
    parameters = sum(tensor.numel() for tensor in weights.without_head().tensors.values())
    dtype = min(str(t.dtype).removeprefix("torch.") for t in weights.tensors.values())
    size = f"{file_size(path.stat().st_size)}, {parameters:,} parameters without the head, {dtype}"
    head = f"softmax over {len(weights.vocabulary):,} words, for evaluate, score and fine-tuning"
    origin = card.get("converted_from")
    if isinstance(steps := card.get("steps"), int) and origin is None:
        origin = f"pretrained by spacy-elmo, {steps:,} steps"
    rows = [
        ("file", str(path)),
        ("size", size),
        ("sha256", file_digest(path, hashlib.sha256)),
        ("vectors", f"{config.width} numbers per token in each of {config.layers + 1} layers"),
        ("head", head if weights.has_head else "none (evaluate and score need a head)"),
        ("origin", origin or "not stated"),
    ]
    perplexity = card.get("perplexity")
    if isinstance(perplexity, dict) and "mean" in perplexity:
        rows.append(("perplexity", f"{perplexity['mean']:.6g}, on held-out text"))
    fields = ("language", "tokenizer", "casing", "licence")
    return rows + [(name, str(card.get(name, "not stated"))) for name in fields]

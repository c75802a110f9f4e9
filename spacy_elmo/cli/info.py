"""`python -m spacy elmo info`: show the contents and the origin of a weights file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .output import file_size, msg


def info_cli(
    source: Annotated[
        str | None,
        typer.Argument(metavar="WEIGHTS", help="Weights file, or name of an installed biLM"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print settings and metadata")] = False,
) -> None:
    """Show a weights file, or the installed biLMs and versions.

    With a weights file, the command shows its size, origin and checksum, and checks that it is valid.
    """
    if source is None:
        msg.table(_installation())
        msg.info("More about weights: python -m spacy elmo info NAME")
        return
    from ..weight_names import find_weights

    info = _contents(find_weights(source))
    if as_json:
        typer.echo(json.dumps(info, indent=2))
    else:
        msg.table(_rows(info))


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


def _contents(path: Path) -> dict[str, Any]:
    from ..bilm.weights import Weights
    from ..digest import file_digest

    weights = Weights.load(path)
    sizes = {name: tensor.numel() for name, tensor in weights.without_head().tensors.items()}
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "sha256": file_digest(path, hashlib.sha256),
        "dtype": sorted({str(t.dtype).removeprefix("torch.") for t in weights.tensors.values()}),
        "parameters": sum(sizes.values()),
        "layers": weights.config.layers + 1,
        "width": weights.config.width,
        "head": weights.has_head,
        "vocabulary": len(weights.vocabulary),
        "config": weights.config.to_dict(),
        "card": weights.card,
    }


def _rows(info: dict[str, Any]) -> list[tuple[str, str]]:
    card, size = info["card"], file_size(info["bytes"])
    origin = card.get("converted_from")
    if isinstance(steps := card.get("steps"), int) and origin is None:
        origin = f"pretrained by spacy-elmo, {steps:,} steps"
    head = f"softmax over {info['vocabulary']:,} words, for evaluate, score and fine-tuning"
    rows = [
        ("file", info["file"]),
        ("size", f"{size}, {info['parameters']:,} parameters without the head, {info['dtype'][0]}"),
        ("sha256", info["sha256"]),
        ("vectors", f"{info['width']} numbers per token in each of {info['layers']} layers"),
        ("head", head if info["head"] else "none (evaluate and score need a head)"),
        ("origin", origin or "not stated"),
    ]
    perplexity = card.get("perplexity")
    if isinstance(perplexity, dict) and "mean" in perplexity:
        rows.append(("perplexity", f"{perplexity['mean']:.6g}, on held-out text"))
    fields = ("language", "tokenizer", "casing", "licence")
    return rows + [(name, str(card.get(name, "not stated"))) for name in fields]

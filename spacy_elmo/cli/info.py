"""`python -m spacy elmo info`: show the contents and the origin of a weights file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from wasabi import msg

from .errors import report_errors
from .terminal import file_size, printable

if TYPE_CHECKING:
    from ..bilm.weights import Weights

_UNKNOWN = "not stated"
_USE = ("language", "tokenizer", "casing", "licence")
"""Names of the model card's fields that are shown even without `--all`."""


def info_cli(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="WEIGHTS",
            help="Weights file (.safetensors), or name of a bundled or installed biLM. Default: list the"
            " installed biLMs, and show what this machine computes with",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also show the architecture and all metadata")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all information as JSON")] = False,
) -> None:
    """Show the size, the origin and the checksum of a weights file, or all installed biLMs.

    With a weights file, the command also checks that the file is valid.
    """
    with report_errors():
        from ..bilm.kernels.native import active_kernels
        from ..bilm.weights import Weights
        from ..digest import file_digest
        from ..weight_names import find_weights

        if source is None:
            info = _installation()
        else:
            path = find_weights(source)
            info = {
                "file": str(path),
                "bytes": path.stat().st_size,
                "sha256": file_digest(path, hashlib.sha256()),
                **_summary(Weights.load(path)),
            }
    if as_json:
        typer.echo(json.dumps(info, indent=2))
        return
    if source is None:
        _table("Installation", [row for row in info.items() if row[0] != "weights"])
        rows = [(name, f"{w['language']}, {w['file']}") for name, w in info["weights"].items()]
        _table("Weights", rows)
        msg.info("`python -m spacy elmo info NAME` shows more about weights")
        return
    card = info["card"]
    _table("Weights", _file_rows(info))
    _table("Use", [*_use_rows(info, card), ("kernels", active_kernels())])
    if not show_all:
        msg.info("Use --all to see the architecture and all metadata")
        return
    _table("Architecture", _architecture_rows(info))
    _table("Metadata", [row for row in _card_rows(card) if row[0] not in _USE])


def _installation() -> dict[str, Any]:
    """Return the versions, the machine, and the language and the file of each bundled or installed biLM."""
    import platform

    import spacy
    import torch

    from ..about import __version__
    from ..bilm.kernels.native import active_kernels
    from ..bilm.weights import Weights
    from ..weight_names import DEFAULT_WEIGHTS, find_weights, known_names

    files = {name: find_weights(name) for name in known_names()}
    return {
        "spacy-elmo": __version__,
        "spaCy": spacy.__version__,
        "PyTorch": torch.__version__,
        "Python": platform.python_version(),
        "platform": platform.platform(),
        "threads": str(torch.get_num_threads()),
        "kernels": active_kernels(),
        "GPU": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "default for English": DEFAULT_WEIGHTS,
        "weights": {
            name: {"language": Weights.load_card(file).get("language"), "file": str(file)}
            for name, file in files.items()
        },
    }


def _summary(weights: Weights) -> dict[str, Any]:
    """Return a summary of weights in JSON types."""
    parts: dict[str, int] = {}  # number of parameters in each part of the network, such as `lstm.0`
    for name, tensor in sorted(weights.tensors.items()):
        part = "head" if name.startswith("head.") else ".".join(name.split(".")[:2])
        parts[part] = parts.get(part, 0) + tensor.numel()
    return {
        "layers": weights.config.layers + 1,
        "width": weights.config.width,
        "dtype": sorted({str(t.dtype).removeprefix("torch.") for t in weights.tensors.values()}),
        "parameters": sum(parts.values()) - parts.get("head", 0),
        "tensors": parts,
        "head": weights.has_head,
        "vocabulary": len(weights.vocabulary),
        "alphabet": len(weights.alphabet),
        "config": weights.config.to_dict(),
        "card": weights.card,
    }


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        msg.divider(title)
        msg.table([tuple(map(printable, row)) for row in rows], max_col=100)


def _file_rows(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("file", info["file"]),
        (
            "size",
            f"{file_size(info['bytes'])}, {info['parameters']:,} parameters without the head,"
            f" {', '.join(info['dtype'])}",
        ),
        ("sha256", info["sha256"]),
    ]


def _use_rows(info: Mapping[str, Any], card: Mapping[str, Any]) -> list[tuple[str, str]]:
    last = info["layers"] - 1
    head = f"softmax over {info['vocabulary']:,} words, for evaluate, score and fine-tuning"
    rows = [
        ("vectors", f"{info['width']} numbers per token in each of the layers 0 to {last}"),
        ("head", head if info["head"] else "none (evaluate and score need a head)"),
        ("origin", _origin(card)),
    ]
    perplexity = card.get("perplexity")
    if isinstance(perplexity, dict) and "mean" in perplexity:
        rows.append(("perplexity", f"{_format(perplexity['mean'])}, on held-out text"))
    return rows + [(name, str(card.get(name, _UNKNOWN))) for name in _USE]


def _origin(card: Mapping[str, Any]) -> str:
    if "converted_from" in card:
        return f"converted from {card['converted_from']}"
    if isinstance(steps := card.get("steps"), int):
        return f"pretrained by spacy-elmo, {steps:,} steps"
    return _UNKNOWN


def _architecture_rows(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("bytes", f"{info['bytes']:,}"),
        ("parameters", f"{info['parameters']:,}, without the head"),
    ]
    rows += [(f"  {group}", f"{number:,}") for group, number in info["tensors"].items()]
    return rows + [(name, _format(value)) for name, value in info["config"].items()]


def _card_rows(card: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each field of a model card. The name of a nested field has dots, such
    as `perplexity.mean`."""
    for name, value in card.items():
        if isinstance(value, dict):
            yield from _card_rows(value, f"{prefix}{name}.")
        else:
            yield prefix + name, _format(value)


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

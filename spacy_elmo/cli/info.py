"""`python -m spacy elmo info`: show the contents and the origin of a weights file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from wasabi import msg

from .arguments import WeightsArgument
from .errors import report_errors
from .terminal import file_size, printable

_UNKNOWN = "not stated"
_USE = ("language", "tokenizer", "casing", "licence")
"""Names of the model card's fields that are shown even without `--all`."""


def info_cli(
    source: WeightsArgument,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also show the architecture and all metadata")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all information as JSON")] = False,
    self_test: Annotated[
        bool,
        typer.Option(
            help="Check that this machine computes the same float32 numbers as other machines"
        ),
    ] = False,
) -> None:
    """Show the size, the origin and the checksum of a weights file.

    The command also checks that the file is valid.
    """
    if self_test:
        _self_test(source)
        return
    with report_errors():
        from ..bilm.kernels.native import active_kernels
        from ..bilm.weights import Weights
        from ..converters.download import sha256_of
        from ..weight_names import find_weights

        path = find_weights(source)
        weights = Weights.load(path)
        info = {
            "file": str(path),
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
            **weights.info(),
        }
    if as_json:
        typer.echo(json.dumps(info, indent=2))
        return
    card = info["card"]
    _table("Weights", _file_rows(info))
    _table("Use", [*_use_rows(info, card), ("kernels", active_kernels())])
    if not show_all:
        msg.info("Use --all to see the architecture and all metadata")
        return
    _table("Architecture", _architecture_rows(info))
    _table("Metadata", [row for row in _card_rows(card) if row[0] not in _USE])


def _self_test(source: str) -> None:
    """Check that several small neural networks have the same outputs on this machine as on other machines.

    The biLM `source` is checked as well, if the hashes of its correct outputs are known.
    """
    with report_errors():
        from ..bilm import self_test
        from ..bilm.kernels.native import active_kernels
        from ..bilm.weights import Weights
        from ..weight_names import find_weights

        path = find_weights(source)
        found = dict(self_test.small_networks())
        if known := path.stem in self_test.golden():
            bilm = Weights.load(path).build_bilm().prepare_for_inference("float32")
            found[path.stem] = self_test.digests(bilm)
    msg.table([("kernels", active_kernels())], max_col=100)
    different = {
        name: kinds for name in found if (kinds := self_test.differences(name, found[name]))
    }
    for name, kinds in different.items():
        msg.fail(
            f"Network {name} has different numbers for these test sentences: {', '.join(kinds)}"
        )
    if not known:
        msg.info(
            f"{printable(path.stem)} itself was not tested, because its expected numbers are not known"
        )
    if different:
        msg.fail("This machine computes different float32 numbers than other machines", exits=1)
    msg.good(
        f"Tested with {len(found)} networks: this machine computes the same float32 numbers as other machines"
    )


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

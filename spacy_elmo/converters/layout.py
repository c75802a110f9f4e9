"""The layout of a biLM in the files of another program. One table says which parameter of the program has which tensor;
import and export both use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..bilm.config import BiLMConfig
from .strict_check import Shape, our_shapes


class Turn(NamedTuple):
    """Change of a parameter of another program to a tensor of ours, and the inverse."""

    to_ours: Callable[[Tensor], Tensor]
    to_theirs: Callable[[Tensor], Tensor]


def _same(x: Tensor) -> Tensor:
    return x


def _transposed(x: Tensor) -> Tensor:
    return x.permute(*reversed(range(x.ndim)))


def _swapped(gates: Tensor) -> Tensor:
    first, second, third, last = gates.chunk(4)
    return torch.cat([first, third, second, last])


SAME = Turn(_same, _same)
TRANSPOSED = Turn(_transposed, _transposed)
NEGATED = Turn(lambda x: -_transposed(x), lambda x: -_transposed(x))
"""Transposed, with the opposite sign."""
GATES = Turn(lambda x: _transposed(_swapped(x)), lambda x: _swapped(_transposed(x)))
"""Transposed, with the second and the third of the four gates exchanged."""


class Place(NamedTuple):
    """The parameter of another program that contains a tensor, or several tensors, one below the other."""

    name: str
    """{i} is the number of a filter group, highway or LSTM layer, and {d} the direction. With {d}, the parameter has
    one direction, and the tensor both, on its first axis."""
    turn: Turn = SAME
    padding: int = 0
    """Number of rows of zeros at the start of the parameter, which no tensor contains."""


class Layout:
    """The parameters of another program for a biLM, and the conversion between them and the tensors of the biLM.

    Args:
        table: {name in `BiLM.state_dict()`, with {i} for its number: place}. Tensors in the same parameter are in the
            order of the table.
        config: the configuration of the biLM.
        directions: names of the forward and the backward direction.
    """

    def __init__(
        self, table: Mapping[str, Place], config: BiLMConfig, directions: Sequence[str]
    ) -> None:
        self.shapes: dict[str, Shape] = {}
        """{name of a parameter: shape}."""
        self._places: dict[str, tuple[list[str], slice, Turn]] = {}
        entries, shapes = list(table), our_shapes(config)
        for name in sorted(shapes, key=lambda name: entries.index(_entry(name))):
            place, number = table[_entry(name)], "".join(re.findall(r"\d+", name))
            names = [place.name.format(i=number, d=d) for d in directions]
            shape = shapes[name]
            if names[0] == names[1]:
                names = names[:1]
            else:
                shape = shape[1:]
            rows, *rest = place.turn.to_theirs(torch.empty(shape, device="meta")).shape
            start = self.shapes.get(names[0], (place.padding,))[0]
            self.shapes |= dict.fromkeys(names, (start + rows, *rest))
            self._places[name] = names, slice(start, start + rows), place.turn

    def to_ours(self, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert the parameters of the other program to the tensors of `BiLM.state_dict()`."""
        tensors = {}
        for name, (names, rows, turn) in self._places.items():
            parts = [turn.to_ours(theirs[their][rows]) for their in names]
            tensors[name] = torch.stack(parts) if len(parts) > 1 else parts[0].contiguous()
        return tensors

    def to_theirs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert the tensors of `BiLM.state_dict()` to float32 parameters of the other program."""
        theirs = {name: torch.zeros(shape) for name, shape in self.shapes.items()}
        for name, (names, rows, turn) in self._places.items():
            parts = tensors[name] if len(names) > 1 else [tensors[name]]
            for their, part in zip(names, parts, strict=True):
                theirs[their][rows] = turn.to_theirs(part)
        return theirs


def _entry(name: str) -> str:
    return re.sub(r"\d+", "{i}", name)

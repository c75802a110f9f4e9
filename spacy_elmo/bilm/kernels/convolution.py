"""The convolutions of the character CNN, and the maximum of each filter over the positions in a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .native import functions
from .panels import pack, padded

_ACTIVATIONS = ("none", "relu", "tanh")


def maxima(
    ids: Tensor,
    lengths: Tensor,
    characters: Tensor,
    filters: Sequence[Tensor],
    biases: Sequence[Tensor],
    activation: str,
    compute_dtype: torch.dtype,
) -> Tensor:
    """Return the maximum of each filter over the positions in each word, after bias and activation.
    Differentiable.

    Args:
        ids: (words, columns) int32, the ids of the characters of each word. An id is a row of `characters`.
        lengths: (words,) int64, the number of columns to use for each word. Each length is at least the width
            of the widest filter.
        characters: the character vectors, (rows, D) float32, where D is the size of a vector.
        filters: for each filter width, a float32 tensor (width, D, number of filters of this width).
        biases: for each filter width, a float32 tensor (number of filters of this width,).
        activation: "relu", "tanh" or "none".
        compute_dtype: data type of the products.

    Returns:
        (words, filters of all widths) float32.
    """
    number = _ACTIVATIONS.index(activation)
    return _Maxima.apply(
        ids, lengths, number, compute_dtype, len(filters), characters, *filters, *biases
    )


class _Maxima(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        ids: Tensor,
        lengths: Tensor,
        activation: int,
        compute_dtype: torch.dtype,
        count: int,
        characters: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        filters, biases = parameters[:count], parameters[count:]
        wide = [_padded_columns(weight) for weight in filters]
        table = _padded_columns(characters[..., None])[..., 0].contiguous()
        weights = [
            pack([weight.flatten(0, 1)[:, None]], compute_dtype).flatten() for weight in wide
        ]
        starts = [
            torch.nn.functional.pad(bias, (0, padded(len(bias)) - len(bias))) for bias in biases
        ]
        widths, numbers = _shape(filters)
        ids, lengths = ids.contiguous(), lengths.contiguous()
        (words, columns), features = ids.shape, int(numbers.sum())
        pooled = characters.new_empty((words, features))
        winners = torch.empty_like(pooled, dtype=torch.int32) if any(ctx.needs_input_grad) else None
        low_table, packed, start = table.to(compute_dtype), torch.cat(weights), torch.cat(starts)
        scratch = low_table.new_empty((words, columns, table.shape[1]))
        functions("convolution")[compute_dtype](
            torch.get_num_threads(), words, columns, table.shape[1], count, features,
            widths, numbers, lengths, ids, low_table, packed, start, scratch, pooled, winners, activation,
        )  # fmt: skip
        ctx.activation = _ACTIVATIONS[activation]
        ctx.save_for_backward(ids, lengths, characters, pooled, winners, *filters)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ids, lengths, characters, pooled, winners, *filters = ctx.saved_tensors
        if ctx.activation == "relu":
            gradient = gradient * (pooled > 0)
        elif ctx.activation == "tanh":
            gradient = gradient * (1 - pooled * pooled)
        table = _padded_columns(characters[..., None])[..., 0].contiguous()
        wide = [_padded_columns(weight).flatten(0, 1).t().flatten() for weight in filters]
        weights, gradient = torch.cat(wide), gradient.contiguous()
        widths, numbers = _shape(filters)
        (words, columns), parts, dim = ids.shape, torch.get_num_threads(), table.shape[1]
        scratch = table.new_empty((parts, 2, columns, dim))
        dtable, dweights = (
            table.new_zeros((parts, *table.shape)),
            table.new_zeros((parts, len(weights))),
        )
        functions("convolution_gradient")[torch.float32](
            parts, words, columns, dim, len(filters), gradient.shape[1],
            widths, numbers, lengths, ids, table, weights, gradient, winners, scratch,
            table.numel(), len(weights), dtable, dweights,
        )  # fmt: skip
        sizes = [len(weight) for weight in wide]
        dfilters = [
            gradients.view(weight.shape[2], len(weight), dim)
            .permute(1, 2, 0)[:, : weight.shape[1]]
            .contiguous()
            for gradients, weight in zip(dweights.sum(0).split(sizes), filters, strict=True)
        ]
        dbiases = gradient.sum(0).split(numbers.tolist())
        return (
            None,
            None,
            None,
            None,
            None,
            dtable.sum(0)[:, : characters.shape[1]],
            *dfilters,
            *dbiases,
        )


def _shape(filters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    widths, _, numbers = torch.tensor([weight.shape for weight in filters], device="cpu").unbind(1)
    return widths.contiguous(), numbers.contiguous()


def _padded_columns(weight: Tensor) -> Tensor:
    """Pad the middle dimension of a tensor with zeros to a multiple of 16, which the kernel requires."""
    return torch.nn.functional.pad(weight, (0, 0, 0, padded(weight.shape[1]) - weight.shape[1]))

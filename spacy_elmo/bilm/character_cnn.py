"""The character CNN and its highway layers (Kim et al. 2016, as in bilm-tf), and the dense layers of the token
encoders.

If there are C functions, one of them computes all convolutions and their maxima, and another one a highway layer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .config import BiLMConfig
from .kernels.matmul import PrepackedWeight, matmul, matmul_dtype, multiply
from .kernels.native import addresses, functions, half_of, pack, padded, weight_gradient

WORDS_PER_BLOCK = 32
"""Number of distinct words for which the convolutions are computed at once on a CPU, if there is no C function."""
_WORDS_PER_BLOCK_ON_GPU = 4096
_ACTIVATIONS = ("none", "relu", "tanh")


class Dense(nn.Module):
    """A dense layer, x W + b. W has the shape (inputs, outputs), as in TensorFlow, because imported matrices
    then need not be transposed.

    *Shape:* (rows, inputs) -> (rows, outputs).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters as bilm-tf does: the matrix is drawn from a normal distribution with
        variance 1 / (number of inputs), and the bias is 0."""
        nn.init.normal_(self.weight, std=len(self.weight) ** -0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return matmul(x, self.weight, self.bias)


class PrepackedDense(nn.Module):
    """A dense layer for prediction only, in which the matrix is already converted to the data type and the
    memory layout of the product."""

    def __init__(self, dense: Dense, dtype: torch.dtype) -> None:
        super().__init__()
        self.bias = dense.bias.detach()
        self.weight = PrepackedWeight(dense.weight.detach(), dtype)

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.has_panels:
            return self.weight(x, self.bias)
        return self.weight(x.to(self.weight.dtype)).to(self.bias.dtype) + self.bias


def prepack(module: Any, dtype: torch.dtype) -> Any:
    """Return a copy of `module` for prediction only, in which dense layers are prepacked in the data type `dtype`, and
    a character CNN is a `PackedCNN`, if its C function exists. The copy shares all other parameters with `module`."""
    if isinstance(module, Dense):
        return PrepackedDense(module, dtype)
    other = copy.copy(module)
    if isinstance(module, CharacterCNN) and dtype in functions("word_vectors", module.characters):
        other.packed = PackedCNN(module)
    else:
        modules = module._modules.items()
        other._modules = {name: child and prepack(child, dtype) for name, child in modules}
    return other


class Highway(nn.Module):
    """A highway layer (Srivastava et al. 2015; bilm-tf `model.py:high`).

    c = σ(x W_c + b_c); t = relu(x W_t + b_t); y = c t + (1 - c) x, computed as x + c (t - x). The name *carry* gate
    for c is from bilm-tf. In Srivastava et al., the carry gate scales x, but here c scales the transformed input t.

    If you change the formula, change it in `bilm/reference.py` and `converters/onnx.py` as well.

    *Shape:* (words, width) -> (words, width).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry = Dense(width, width)
        self.transform = Dense(width, width)
        # As in bilm-tf. Before training, most of the input passes unchanged.
        nn.init.constant_(self.carry.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        # In a network for inference, both can be prepacked.
        carry: Dense | PrepackedDense = self.carry
        transform: Dense | PrepackedDense = self.transform
        if isinstance(carry, Dense) and not torch.is_autocast_enabled(x.device.type):
            parameters: Any = carry.weight, carry.bias, transform.weight, transform.bias
            if functions("highway", x, *parameters):
                return _Highway.apply(x, *parameters)
        return x + carry(x).sigmoid() * (transform(x).relu() - x)


class _Highway(torch.autograd.Function):
    """A highway layer by the C functions, from the input, the carry gate's W and b, and those of the transform."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        x, (carry, carry_bias, transform, transform_bias) = x.contiguous(), parameters
        gates = x.new_empty((len(x), 2 * x.shape[1]))
        c, t = gates.chunk(2, 1)
        multiply(x, carry, carry_bias, c)
        multiply(x, transform, transform_bias, t)
        out = torch.empty_like(x)
        functions("highway")[torch.float32](torch.get_num_threads(), *x.shape, x, gates, out)
        ctx.save_for_backward(x, carry, transform, gates)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, carry, transform, gates = ctx.saved_tensors
        c, t = gates.chunk(2, 1)
        dgates = torch.empty_like(gates)
        dcarry, dtransform = dgates.chunk(2, 1)
        torch.mul(dy * (t - x), c * (1 - c), out=dcarry)
        torch.mul(dy * c, t > 0, out=dtransform)
        dx = None
        if ctx.needs_input_grad[0]:
            dx = dy - dy * c
            dx += matmul(dcarry, carry.t())
            dx += matmul(dtransform, transform.t())
        dweights, dbiases = weight_gradient(x, dgates).chunk(2, 1), dgates.sum(0).chunk(2)
        return dx, dweights[0], dbiases[0], dweights[1], dbiases[1]


class CharacterCNN(nn.Module):
    """A character CNN: character vectors, convolutions, the maximum over the positions in a word, an
    activation, highway layers, and a projection, if a subclass sets it.

    Args:
        config: the hyperparameters.
        characters: number of character ids.
        padding: id of the padding character, which fills the positions after a word.
    """

    def __init__(self, config: BiLMConfig, *, characters: int, padding: int) -> None:
        super().__init__()
        self.config = config
        self.padding = padding
        self.characters = nn.Parameter(torch.empty(characters, config.char_dim))
        self.filters = nn.ParameterList(
            torch.empty(width, config.char_dim, number) for width, number in config.filters
        )
        self.filter_biases = nn.ParameterList(torch.empty(number) for _, number in config.filters)
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.highways))
        self.projection: Dense | None = None
        self.packed: PackedCNN | None = None
        """A copy for prediction only, which is used if there is one; see `prepack`."""
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the character vectors and the convolutions as bilm-tf's `training.py` does.

        With the activation relu, filters are drawn from a uniform distribution. With tanh, filters are drawn
        from a normal distribution with variance 1 / (filter width * size of a character vector).
        """
        nn.init.uniform_(self.characters, -1.0, 1.0)
        for weight in self.filters:
            if self.config.activation == "relu":
                nn.init.uniform_(weight, -0.05, 0.05)
            else:
                nn.init.normal_(weight, std=(weight.shape[0] * weight.shape[1]) ** -0.5)
        for bias in self.filter_biases:
            nn.init.zeros_(bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Compute the features of each word from its character ids: (words, max_characters) integers ->
        (words, n_filters), or the vector of each word, if there is a projection."""
        if self.packed is not None:
            return self.packed(ids)
        ids = ids.to(self.characters.device)
        x = (
            self._convolve(ids)
            if len(ids)
            else self.characters.new_zeros((0, self.config.n_filters))
        )
        for layer in (*self.highways, self.projection):
            x = x if layer is None else layer(x)
        return x

    def _convolve(self, ids: Tensor) -> Tensor:
        # Padding takes part in the maximum, so a word must not be cropped to its length. But behind its length plus the
        # widest filter, all windows contain only padding, so cropping there changes no result.
        lengths = (ids != self.padding).sum(1)
        lengths += max(width for width, _ in self.config.filters)
        lengths.clamp_(max=self.config.max_characters)
        compute_dtype = matmul_dtype(self.characters)
        if compute_dtype in functions("convolution", self.characters):
            parameters = self.characters, [*self.filters], [*self.filter_biases]
            return maxima(ids.int(), lengths, *parameters, self.config.activation, compute_dtype)
        x = self._convolve_blocks(ids, lengths)
        return x.relu() if self.config.activation == "relu" else x.tanh()

    def _convolve_blocks(self, ids: Tensor, lengths: Tensor) -> Tensor:
        # The words of a block have similar lengths, so one long URL does not add positions to a thousand short words.
        # On a GPU, few large blocks are faster.
        order = lengths.argsort()
        size = WORDS_PER_BLOCK if ids.is_cpu else _WORDS_PER_BLOCK_ON_GPU
        blocks = [
            self._convolve_block(ids[rows, : int(lengths[rows[-1]])]) for rows in order.split(size)
        ]
        return torch.cat(blocks).index_select(0, order.argsort())

    def _convolve_block(self, ids: Tensor) -> Tensor:
        count, columns = ids.shape
        dim = self.config.char_dim
        x = nn.functional.embedding(ids.int(), self.characters)
        pooled = []
        for weight, bias in zip(self.filters, self.filter_biases, strict=True):
            width, _, number = weight.shape
            positions = columns - width + 1
            windows = torch.cat([x[:, shift : shift + positions] for shift in range(width)], 2)
            features = matmul(windows.view(-1, width * dim), weight.view(width * dim, number))
            # The bias does not change which position has the maximum, so it is added only once, after the maximum.
            pooled.append(features.view(count, -1, number).amax(1) + bias)
        return torch.cat(pooled, 1)


def maxima(
    ids: Tensor, lengths: Tensor, characters: Tensor, filters: Sequence[Tensor], biases: Sequence[Tensor],
    activation: str, compute_dtype: torch.dtype,
) -> Tensor:  # fmt: skip
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
    return _Maxima.apply(
        ids, lengths, activation, compute_dtype, len(filters), characters, *filters, *biases
    )


class PackedFilters(NamedTuple):
    """The parameters of a convolution in the memory layout of the C function; `convolution.c` explains them."""

    characters: Tensor
    weights: Tensor
    biases: Tensor
    widths: Tensor
    numbers: Tensor
    features: int


def pack_filters(
    characters: Tensor, filters: Sequence[Tensor], biases: Sequence[Tensor], compute_dtype: torch.dtype
) -> PackedFilters:  # fmt: skip
    """Pack the parameters of a convolution; see `maxima`."""
    wide = [_padded_columns(weight) for weight in filters]
    table = _padded_columns(characters[..., None])[..., 0].contiguous()
    weights = [pack([weight.flatten(0, 1)[:, None]], compute_dtype).flatten() for weight in wide]
    starts = [nn.functional.pad(bias, (0, padded(len(bias)) - len(bias))) for bias in biases]
    shape = *_shape(filters), sum(map(len, biases))
    return PackedFilters(table.to(compute_dtype), torch.cat(weights), torch.cat(starts), *shape)


class PackedCNN:
    """A character CNN for prediction with one C function, with packed parameters. It has no autograd graph."""

    def __init__(self, cnn: CharacterCNN) -> None:
        self._filters = pack_filters(
            cnn.characters, [*cnn.filters], [*cnn.filter_biases], torch.float32
        )
        self._highways = len(cnn.highways)
        self._padding, self._widest = cnn.padding, max(width for width, _ in cnn.config.filters)
        self._activation = _ACTIVATIONS.index(cnn.config.activation)
        layers: list[tuple[Tensor, Tensor]] = []
        for highway in cnn.highways:
            parts: Any = highway.carry, highway.transform
            weights = torch.cat([part.weight for part in parts], 1)
            layers.append((weights, torch.cat([part.bias for part in parts])))
        self._columns = 0
        if cnn.projection is not None:
            layers.append((cnn.projection.weight, cnn.projection.bias))
            self._columns = len(cnn.projection.bias)
        self._tensors: list[Tensor | None] = []
        for weight, bias in layers:
            panels = pack([weight[:, None]], torch.float32)
            self._tensors += [panels, half_of(panels), bias.detach().contiguous()]
        self._table = addresses(self._tensors)
        self._run = functions("word_vectors")[torch.float32]

    def __call__(self, character_ids: Tensor) -> Tensor:
        """Return the result of `CharacterCNN.forward`."""
        filters, ids = self._filters, character_ids.numpy()
        (words, columns), dim, features = ids.shape, filters.characters.shape[1], filters.features
        lengths = np.minimum((ids != self._padding).sum(1) + self._widest, columns)
        scratch, gates, result = (
            np.empty((words, size), dtype=np.float32)
            for size in (columns * dim, 2 * features, features)
        )
        vectors = np.empty((words, self._columns), dtype=np.float32) if self._columns else None
        self._run(
            torch.get_num_threads(), words, columns, dim, len(filters.widths), features,
            filters.widths, filters.numbers, lengths, ids.astype(np.int32), filters.characters,
            filters.weights, filters.biases, scratch, result, None, self._activation,
            self._highways, self._table, gates, self._columns, vectors,
        )  # fmt: skip
        return torch.from_numpy(result if vectors is None else vectors)


class _Maxima(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, ids: Tensor, lengths: Tensor, activation: str, compute_dtype: torch.dtype, count: int,
        characters: Tensor, *parameters: Tensor,
    ) -> Tensor:  # fmt: skip
        filters, biases = parameters[:count], parameters[count:]
        packed = pack_filters(characters, filters, biases, compute_dtype)
        ids, lengths = ids.contiguous(), lengths.contiguous()
        (words, columns), dim = ids.shape, packed.characters.shape[1]
        pooled = characters.new_empty((words, packed.features))
        winners = torch.empty_like(pooled, dtype=torch.int32) if any(ctx.needs_input_grad) else None
        scratch = packed.characters.new_empty((words, columns, dim))
        functions("convolution")[compute_dtype](
            torch.get_num_threads(), words, columns, dim, count, packed.features,
            packed.widths, packed.numbers, lengths, ids, packed.characters, packed.weights, packed.biases,
            scratch, pooled, winners, _ACTIVATIONS.index(activation),
        )  # fmt: skip
        ctx.activation = activation
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
        dtable = table.new_zeros((parts, *table.shape))
        dweights = table.new_zeros((parts, len(weights)))
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
        dcharacters = dtable.sum(0)[:, : characters.shape[1]]
        return None, None, None, None, None, dcharacters, *dfilters, *dbiases


def _shape(filters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    widths, _, numbers = torch.tensor([weight.shape for weight in filters], device="cpu").unbind(1)
    return widths.contiguous(), numbers.contiguous()


def _padded_columns(weight: Tensor) -> Tensor:
    """Pad the middle dimension of a tensor with zeros to a multiple of 16, which the kernel requires."""
    return nn.functional.pad(weight, (0, 0, 0, padded(weight.shape[1]) - weight.shape[1]))

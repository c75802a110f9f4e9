"""Export of a biLM to an .onnx file, for programs without Python and torch.

The input of the graph is a padded batch of sentences. Each occurrence of a word is encoded, even if the word
occurs several times. One loop computes both directions of the LSTM. The outputs for padding are zeros. The
graph uses the operator `Scan` as the loop over the words, because ONNX's LSTM operator supports no projection
and no clipping.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

from ..bilm.character_cnn import CharacterCNN, Dense, Highway
from ..bilm.lstm import LSTMLayer
from ..bilm.model import BiLM
from ..bilm.token_encoder import CharEncoder, ManyLangsEncoder, TokenEncoder, WordEncoder
from ..bilm.weights import Weights
from ..files import atomic_write, check_output_file

# The file is one protobuf message, at most 2**31 bytes. The rest is for the graph and the vocabulary.
_MAX_BYTES = 2_000_000_000


def export(weights: Weights, path: str | Path, *, force: bool = False) -> list[Path]:
    """Atomically write a biLM to an .onnx file; see `onnx_model`.

    The metadata of the file contain four entries in JSON: `config`, `card`, `vocabulary` and `alphabet`. The
    vocabulary and the alphabet are in the order of the rows of the word and character embedding matrices. The
    alphabet does not contain the special symbols, which have the first rows.
    """
    path = Path(path)
    check_output_file(path, force=force)
    weights = weights.without_head()
    size = 4 * sum(tensor.numel() for tensor in weights.tensors.values())
    if size > _MAX_BYTES:
        raise ValueError(
            f"The weights have {size:,} bytes in float32, but an .onnx file can contain only {_MAX_BYTES:,}"
        )
    model = onnx_model(weights.build_bilm())
    metadata = {
        "config": weights.config.to_dict(),
        "card": weights.card,
        "vocabulary": weights.vocabulary,
        "alphabet": weights.alphabet,
    }
    helper.set_model_props(model, {name: json.dumps(value) for name, value in metadata.items()})
    atomic_write(path, model.SerializeToString())
    return [path]


# Supported by onnxruntime 1.14 (February 2023) and later.
_OPSET, _IR_VERSION = 18, 8
_INT = TensorProto.INT64


def onnx_model(bilm: BiLM) -> onnx.ModelProto:
    """Return an ONNX model that contains the graph and the weights of a biLM.

    The inputs are `ids` and `lengths`, and the output is `layers`. B is the number of sentences in the batch,
    at least 1. T is the number of words of the longest sentence. Shorter sentences are padded with any valid
    ids. M is the number of ids per word (see `BiLM.token_ids`), L the number of LSTM layers, and P the size
    of the projection.

        ids      int64 (B, T, M), or (B, T) if each word has one id
        lengths  int64 (B,): number of words of each sentence, 0 to T
        layers   float32 (L + 1, B, T, 2 * P), with zeros for padding
    """
    graph = _Graph()
    word = list(bilm.token_ids([]).shape[1:])
    tokens = _tokens(graph, bilm, word)
    layers = [graph("Concat", tokens, tokens, axis=2), *_lstm_layers(graph, bilm, tokens)]
    _stack(graph, layers)
    inputs = [_value("ids", ["B", "T", *word], _INT), _value("lengths", ["B"], _INT)]
    outputs = [_value("layers", [bilm.config.layers + 1, "B", "T", bilm.config.width])]
    return helper.make_model(
        graph.proto("bilm", inputs, outputs),
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid("", _OPSET)],
    )


class _Graph:
    """Builder of an ONNX graph. Its methods add nodes and constants.

    A value (tensor) in the graph is represented by its name.

    Args:
        prefix: prefix of the names of all values. The body of a loop is a graph inside another graph, and their
            values must have different names.
    """

    def __init__(self, prefix: str = "") -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._prefix = prefix

    def constant(self, value: Tensor | list[int] | int | float) -> str:
        """Add a constant tensor (float32, or int64 for integers), and return its name."""
        if not isinstance(value, Tensor):
            value = torch.tensor(value)
        name = f"{self._prefix}constant.{len(self._constants)}"
        array = value.detach().contiguous().numpy()
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node for an ONNX operator with one output, and return the name of the output."""
        name = f"{operator}.{len(self._nodes)}"
        (output,) = self.named([name], operator, *inputs, **attributes)
        return output

    def named(
        self, names: Sequence[str], operator: str, *inputs: str, **attributes: Any
    ) -> list[str]:
        """Add a node whose outputs have the names `names`. Return these names with the prefix of the
        graph."""
        outputs = [self._prefix + name for name in names]
        self._nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs

    def proto(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> onnx.GraphProto:
        """Return the graph as an ONNX message."""
        return helper.make_graph(self._nodes, name, inputs, outputs, self._constants)


def _value(name: str, shape: list[int | str], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _tokens(graph: _Graph, bilm: BiLM, word: list[int]) -> str:
    """Encode all words of the padded batch, and return their vectors, (words, sentences, projection size)."""
    ids = graph("Reshape", "ids", graph.constant([-1, *word]))
    vectors = _encode(graph, bilm.encoder, ids)
    sizes = graph("Shape", "ids", start=0, end=2)
    shape = graph("Concat", sizes, graph.constant([bilm.config.projection]), axis=0)
    return graph("Transpose", _reshape(graph, vectors, shape), perm=[1, 0, 2])


def _encode(graph: _Graph, encoder: TokenEncoder, ids: str) -> str:
    """Encode words: ids (words, ids per word) or (words,) -> vectors (words, projection size)."""
    if isinstance(encoder, WordEncoder):
        return graph("Gather", graph.constant(encoder.words), ids)
    if isinstance(encoder, ManyLangsEncoder):
        return _lexicon(graph, encoder, ids)
    if isinstance(encoder, CharEncoder):
        x = _features(graph, encoder, ids)
        return x if encoder.projection is None else _affine(graph, encoder.projection, x)
    raise TypeError(type(encoder))


def _lexicon(graph: _Graph, encoder: ManyLangsEncoder, ids: str) -> str:
    parts = []
    if encoder.words is not None:
        row = graph("Gather", ids, graph.constant(0), axis=1)
        parts.append(graph("Gather", graph.constant(encoder.words), row))
    if encoder.cnn is not None:
        characters = _slice(graph, ids, -encoder.config.max_characters, axis=1)
        parts.append(_features(graph, encoder.cnn, characters))
    return _affine(graph, encoder.projection, graph("Concat", *parts, axis=1))


def _features(graph: _Graph, cnn: CharacterCNN, ids: str) -> str:
    """Apply `CharacterCNN` to the character ids of words: (words, max_characters) -> (words, n_filters)."""
    vectors = graph("Gather", graph.constant(cnn.characters), ids)
    x = graph("Transpose", vectors, perm=[0, 2, 1])
    pooled = []
    for weight, bias in zip(cnn.filters, cnn.filter_biases, strict=True):
        # ONNX's filters have the shape (number, char_dim, width).
        weights = [graph.constant(weight.permute(2, 1, 0)), graph.constant(bias)]
        features = graph("Conv", x, *weights)
        pooled.append(graph("ReduceMax", features, graph.constant([2]), keepdims=0))
    y = graph("Concat", *pooled, axis=1)
    y = graph("Relu" if cnn.config.activation == "relu" else "Tanh", y)
    for highway in cnn.highways:
        assert isinstance(highway, Highway)
        carry = graph("Sigmoid", _affine(graph, highway.carry, y))
        transformed = graph("Relu", _affine(graph, highway.transform, y))
        y = graph("Add", y, graph("Mul", carry, graph("Sub", transformed, y)))
    return y


def _affine(graph: _Graph, affine: Dense, x: str) -> str:
    product = graph("MatMul", x, graph.constant(affine.weight))
    return graph("Add", product, graph.constant(affine.bias))


def _lstm_layers(graph: _Graph, bilm: BiLM, tokens: str) -> list[str]:
    """Compute the LSTM layers, each (words, sentences, 2 * projection size), from the vectors of the
    words."""
    x = _lstm_inputs(graph, bilm, tokens)
    layers = []
    for level, layer in enumerate(bilm.lstm):
        assert isinstance(layer, LSTMLayer)
        y = _lstm(graph, layer, x, level)
        x = graph("Add", x, y) if bilm.config.skip and level else y
        words = _slice(graph, x, 1, axis=1)
        forward, backward = (graph("Gather", words, graph.constant(d), axis=0) for d in (0, 1))
        layers.append(graph("Concat", forward, _reversed(graph, backward), axis=2))
    return layers


def _lstm_inputs(graph: _Graph, bilm: BiLM, tokens: str) -> str:
    """Return the inputs of both LSTM directions: (words, sentences, size) -> (2, words + 1, sentences, size).

    The first input is a sentence boundary, such as `<S>` forward and `</S>` backward. For the backward
    direction, the words of each sentence are in reverse order.
    """
    with torch.no_grad():
        boundaries = bilm.encoder(bilm.token_ids(bilm.encoder.boundaries))
    batch = graph("Shape", "lengths")
    width = bilm.config.projection
    shape = graph("Concat", graph.constant([2, 1]), batch, graph.constant([width]), axis=0)
    starts = graph("Expand", graph.constant(boundaries.view(2, 1, 1, width)), shape)
    axis = graph.constant([0])
    words = [graph("Unsqueeze", x, axis) for x in (tokens, _reversed(graph, tokens))]
    return graph("Concat", starts, graph("Concat", *words, axis=0), axis=1)


def _lstm(graph: _Graph, layer: LSTMLayer, x: str, level: int) -> str:
    """Apply the LSTM layer with the index `level`, from a state of zeros. The shape of the inputs and outputs
    is (2, words + 1, sentences, projection size). The first axis is the direction."""
    width, columns = layer.input.shape[1:]
    dim = columns // 4
    bias = layer.bias.clone()
    bias[:, 2 * dim : 3 * dim] += layer.forget_bias
    # Multiply the inputs of all steps by the weights at once.
    product = graph(
        "MatMul",
        graph("Reshape", x, graph.constant([2, -1, width])),
        graph.constant(layer.input),
    )
    gates = graph("Add", product, graph.constant(bias[:, None]))
    sizes = graph("Shape", x, start=0, end=3)
    shape = graph("Concat", sizes, graph.constant([columns]), axis=0)
    gates = _reshape(graph, gates, shape)
    zeros = []
    for size in (width, dim):
        shape = graph(
            "Concat", graph.constant([2]), graph("Shape", "lengths"), graph.constant([size]), axis=0
        )
        zeros.append(graph("Expand", graph.constant(0.0), shape))
    *_, outputs = graph.named(
        [f"lstm.{level}.{name}" for name in ("h", "c", "outputs")],
        "Scan",
        *zeros,
        gates,
        body=_step(layer, f"lstm.{level}.step."),
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[1],
    )
    return outputs


def _step(layer: LSTMLayer, prefix: str) -> onnx.GraphProto:
    """Return a graph that computes one time step of an LSTM layer in both directions, as `bilm/lstm.py`
    does."""
    graph = _Graph(prefix)
    dim, width = layer.bias.shape[1] // 4, layer.input.shape[1]
    h, c, gates = (prefix + name for name in ("h", "c", "gates"))
    z = graph("Add", gates, graph("MatMul", h, graph.constant(layer.recurrent)))
    i, j, f, o = graph.named(["i", "j", "f", "o"], "Split", z, num_outputs=4, axis=2)
    kept = graph("Mul", graph("Sigmoid", f), c)
    new_c = graph("Add", kept, graph("Mul", graph("Sigmoid", i), graph("Tanh", j)))
    new_c = _clip(graph, new_c, layer.cell_clip)
    new_h = graph("Mul", graph("Sigmoid", o), graph("Tanh", new_c))
    if layer.projection is not None:
        new_h = graph("MatMul", new_h, graph.constant(layer.projection))
        new_h = _clip(graph, new_h, layer.proj_clip)
    y = graph("Identity", new_h)
    inputs = [
        _value(h, [2, "B", width]),
        _value(c, [2, "B", dim]),
        _value(gates, [2, "B", 4 * dim]),
    ]
    outputs = [
        _value(new_h, [2, "B", width]),
        _value(new_c, [2, "B", dim]),
        _value(y, [2, "B", width]),
    ]
    return graph.proto(prefix + "body", inputs, outputs)


def _clip(graph: _Graph, x: str, limit: float | None) -> str:
    if limit is None:
        return x
    return graph("Clip", x, graph.constant(-limit), graph.constant(limit))


def _stack(graph: _Graph, layers: list[str]) -> None:
    """Stack the layers, each (words, sentences, width), to the output (layers, sentences, words, width), and
    set the padding to zeros."""
    axis = graph.constant([0])
    stacked = graph("Concat", *(graph("Unsqueeze", layer, axis) for layer in layers), axis=0)
    stacked = graph("Transpose", stacked, perm=[0, 2, 1, 3])
    longest = graph("Gather", graph("Shape", "ids"), graph.constant(1))
    positions = graph("Range", graph.constant(0), longest, graph.constant(1))
    ends = graph("Unsqueeze", "lengths", graph.constant([1]))
    is_word = graph("Unsqueeze", graph("Less", positions, ends), graph.constant([2]))
    graph.named(["layers"], "Where", is_word, stacked, graph.constant(0.0))


def _reshape(graph: _Graph, x: str, shape: str) -> str:
    """Reshape a tensor. A 0 in the shape means an axis of size 0, because `allowzero` is set. Without
    `allowzero`, ONNX would copy the size of the axis from `x`."""
    return graph("Reshape", x, shape, allowzero=1)


def _reversed(graph: _Graph, x: str) -> str:
    """Reverse the order of the words in each sentence of a tensor (words, sentences, width)."""
    return graph("ReverseSequence", x, "lengths", time_axis=0, batch_axis=1)


def _slice(graph: _Graph, x: str, start: int, *, axis: int) -> str:
    """Slice an axis from index `start` to the end."""
    end = torch.iinfo(torch.int64).max
    return graph("Slice", x, *(graph.constant([number]) for number in (start, end, axis)))

"""`spacy-elmo.ElmoEnhanced.v1`: an encoder with ELMo vectors concatenated to its input, its output, or
both."""

import itertools
from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc
from thinc.api import Maxout, Model, chain, concatenate, with_array
from thinc.types import Floats2d
from thinc.util import get_width


def ElmoEnhanced_v1(
    *,
    encode: Model[list[Floats2d], list[Floats2d]],
    embed: Model[list[Doc], list[Floats2d]] | None = None,
    input: Model[list[Doc], list[Floats2d]] | None = None,
    output: Model[list[Doc], list[Floats2d]] | None = None,
) -> Model[list[Doc], list[Floats2d]]:
    """Build the network of the paper around any embedding and encoder of spaCy: `[x ; ELMo] -> encode -> [h ; ELMo]`
    (Peters et al. 2018, section 3.3), (n_tokens, width) per Doc. Set `input`, `output` or both. The input is projected
    to the width that `encode` expects.

    Args:
        encode: the encoder, whose output is h, such as `spacy-elmo.BiLSTMEncoder.v1`.
        embed: the embedding, whose output is x, such as `spacy.MultiHashEmbed.v2`. null: ELMo is the only input.
        input: the ELMo vectors beside x: a `spacy-elmo.ElmoListener.v1` or `spacy-elmo.ElmoTok2Vec.v1`. null: none.
        output: the ELMo vectors beside h, with a mix of their own. null: none.
    """
    if input is None and output is None:
        raise ValueError(
            "ElmoEnhanced has neither input nor output, so it would not use ELMo. Add a block [...input] or [...output]"
            ' with @architectures = "spacy-elmo.ElmoListener.v1", or use spacy.Tok2Vec.v2 instead'
        )
    inputs = [layer for layer in (embed, input) if layer is not None]
    if not inputs:
        raise ValueError(
            "ElmoEnhanced has neither embed nor input, so encode has no input: add one of these blocks"
        )
    model: Model[list[Doc], list[Floats2d]] = chain(join(*inputs), project_to_width(encode), encode)
    if output is not None:
        h, elmo = encode.maybe_get_dim("nO"), output.maybe_get_dim("nO")
        model = join(model, output)
        if h is not None and elmo is not None:
            model.set_dim("nO", h + elmo)
    model.set_ref("input", input)
    model.set_ref("output", output)
    return model


def join(*layers: Model[list[Doc], list[Floats2d]]) -> Model[list[Doc], list[Floats2d]]:
    """Build a layer that concatenates the vectors of some layers, as thinc's `concatenate` does, but also if the
    array of an empty Doc does not have the width of the other arrays. That of a transformer has width 0."""
    joined: Model[list[Doc], list[Floats2d]] = concatenate(*layers)
    if len(layers) == 1:
        return joined
    return Model(
        "elmo-join", forward_join, init=joined.init, dims={"nO": None}, layers=joined.layers
    )


def forward_join(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Compute and concatenate the vectors of all layers."""
    outputs, callbacks = zip(*(layer(docs, is_train) for layer in model.layers), strict=True)
    widths = [max((x.shape[1] for x in output), default=0) for output in outputs]
    bounds = list(itertools.pairwise(itertools.accumulate(widths, initial=0)))
    joined = [
        model.ops.xp.hstack(arrays) if len(arrays[0]) else model.ops.alloc2f(0, sum(widths))
        for arrays in zip(*outputs, strict=True)
    ]

    def backprop(gradient: list[Floats2d]) -> list[Doc]:
        for callback, (start, end) in zip(callbacks, bounds, strict=True):
            callback([model.ops.as_contig(d[:, start:end]) for d in gradient])
        return []

    return joined, backprop


def project_to_width(
    encode: Model[list[Floats2d], list[Floats2d]],
) -> Model[list[Floats2d], list[Floats2d]]:
    """Build a layer that projects vectors to the input width of an encoder with a Maxout layer, as spaCy's
    embeddings do. Vectors that already have this width are not changed.

    The input width is the encoder's dim "nI". If "nI" is not set, the input width is the encoder's dim "nO",
    because spaCy's window encoders add their input to their output. If neither dim is set, no vectors are
    changed.
    """
    width = encode.maybe_get_dim("nI") or encode.maybe_get_dim("nO")
    # dropout = 0.0, not None, because [training] dropout changes only layers that have a dropout.
    layers: list[Model] = [with_array(Maxout(nO=width, nP=3, normalize=True, dropout=0.0))]
    return Model("elmo-project-to-width", forward, init=init, dims={"nO": width}, layers=layers)


def init(model: Model, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    """Initialize the Maxout layer, which maps the vectors X to the input width of the encoder. Do nothing if X
    already has this width, because `forward` then does not use the layer."""
    if X is None or model.maybe_get_dim("nO") not in (None, get_width(X)):
        model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Floats2d], list[Floats2d]], X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Apply the Maxout layer if it has weights. Otherwise, return X unchanged."""
    maxout = model.layers[0]
    return maxout(X, is_train) if maxout.has_dim("nI") else (X, lambda gradient: gradient)

"""`spacy-elmo.ElmoEnhanced.v1`: ELMo concatenated with the input of an encoder, with its output, or with both."""

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
    """Build [x ; ELMo] -> encode -> [h ; ELMo] (Peters et al. 2018, section 3.3): (n_tokens, width) per Doc.

    Each ELMo is a separate layer, with a mix and weights of its own; the model's refs "input" and "output" are the
    two. `project_to_width` projects the input of `encode` to its width. The output's width is that of `encode`, plus
    the width of ELMo if there is an `output`.

    Args:
        encode: h from the vectors of each Doc, such as `spacy.TorchBiLSTMEncoder.v1`.
        embed: x, such as `spacy.MultiHashEmbed.v2`; null: the input of `encode` is ELMo alone.
        input: ELMo beside x, an `ElmoListener_v1` or an `ElmoTok2Vec_v1`; null: the input of `encode` is x alone.
        output: ELMo beside h, likewise; null: the output is h.

    Raises:
        ValueError: there is no ELMo, or no input for `encode`.
    """
    if input is None and output is None:
        raise ValueError(
            "ElmoEnhanced has neither input nor output, and so no ELMo: give it a block [...input], [...output] or"
            ' both with @architectures = "spacy-elmo.ElmoListener.v1", or use spacy.Tok2Vec.v2'
        )
    inputs = [layer for layer in (embed, input) if layer is not None]
    if not inputs:
        raise ValueError(
            "ElmoEnhanced has neither embed nor input, and so nothing to encode: give it one of them"
        )
    model: Model[list[Doc], list[Floats2d]] = chain(
        concatenate(*inputs), project_to_width(encode), encode
    )
    if output is not None:
        h, elmo = encode.maybe_get_dim("nO"), output.maybe_get_dim("nO")
        model = concatenate(model, output)
        if h is not None and elmo is not None:
            model.set_dim("nO", h + elmo)
    model.set_ref("input", input)
    model.set_ref("output", output)
    return model


def project_to_width(
    encode: Model[list[Floats2d], list[Floats2d]],
) -> Model[list[Floats2d], list[Floats2d]]:
    """Build a layer that projects vectors to the input width of an encoder, by the Maxout layer that ends spaCy's
    embeddings.

    The width is the encoder's nI; if that is not set its nO, because spaCy's window encoders add their input to their
    output. Vectors that already have this width pass unchanged, and so do all vectors if the encoder sets neither.
    """
    width = encode.maybe_get_dim("nI") or encode.maybe_get_dim("nO")
    # dropout = 0.0 lets [training] dropout reach it; None would not.
    maxout = Maxout(nO=width, nP=3, normalize=True, dropout=0.0)
    return Model(
        "elmo-project-to-width", forward, init=init, dims={"nO": width}, layers=[with_array(maxout)]
    )


def init(model: Model, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    """Initialize the Maxout layer if a sample has another width. A layer that is not needed has no weights."""
    if X is None or model.maybe_get_dim("nO") not in (None, get_width(X)):
        model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Floats2d], list[Floats2d]], X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """Apply the Maxout layer if it has weights."""
    maxout = model.layers[0]
    return maxout(X, is_train) if maxout.has_dim("nI") else (X, _same)


def _same(gradient: list[Floats2d]) -> list[Floats2d]:
    return gradient

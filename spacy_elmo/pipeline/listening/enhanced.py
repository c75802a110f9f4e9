"""`spacy-elmo.ElmoEnhanced.v1`: ELMo beside what an encoder reads, beside what it writes, or both."""

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
    """[x ; ELMo] -> encode -> [h ; ELMo] (Peters et al. 2018, section 3.3): (n_tokens, width) per Doc.

    Each ELMo is a layer of its own, and so a mix with weights of its own; the refs "input" and "output" of the
    model are the two. What `encode` reads is `fitted` to it. The width is that of `encode`, with `output` that
    of its ELMo more.

    Args:
        encode: h from the vectors of each Doc, such as `spacy.TorchBiLSTMEncoder.v1`.
        embed: x, such as `spacy.MultiHashEmbed.v2`; null: `encode` reads ELMo alone.
        input: ELMo beside x, an `ElmoListener_v1` or an `ElmoTok2Vec_v1`; null: `encode` reads x alone.
        output: ELMo beside h, likewise; null: the vectors are h.

    Raises:
        ValueError: there is no ELMo, or nothing for `encode` to read.
    """
    if input is None and output is None:
        raise ValueError(
            "ElmoEnhanced has neither input nor output, and so no ELMo: give it a block [...input], [...output] or"
            ' both with @architectures = "spacy-elmo.ElmoListener.v1", or use spacy.Tok2Vec.v2'
        )
    read = [layer for layer in (embed, input) if layer is not None]
    if not read:
        raise ValueError(
            "ElmoEnhanced has neither embed nor input, and so nothing to encode: give it one of them"
        )
    model: Model[list[Doc], list[Floats2d]] = chain(concatenate(*read), fitted(encode), encode)
    if output is not None:
        h, elmo = encode.maybe_get_dim("nO"), output.maybe_get_dim("nO")
        model = concatenate(model, output)
        if h is not None and elmo is not None:
            model.set_dim("nO", h + elmo)
    model.set_ref("input", input)
    model.set_ref("output", output)
    return model


def fitted(encode: Model[list[Floats2d], list[Floats2d]]) -> Model[list[Floats2d], list[Floats2d]]:
    """Bring vectors to the width that an encoder reads: its nI; where that is open its nO, because spaCy's window
    encoders add what they read to what they write. By the Maxout layer that ends spaCy's embeddings; vectors
    that have this width already pass as they are, and so do all where the encoder states none.
    """
    width = encode.maybe_get_dim("nI") or encode.maybe_get_dim("nO")
    # dropout = 0.0 lets [training] dropout reach it; None would not.
    maxout = Maxout(nO=width, nP=3, normalize=True, dropout=0.0)
    return Model("elmo-fitted", forward, init=init, dims={"nO": width}, layers=[with_array(maxout)])


def init(model: Model, X: list[Floats2d] | None = None, Y: Any = None) -> None:
    """Decide from a sample whether the Maxout layer is needed. One that is not is left without weights."""
    if X is None or model.maybe_get_dim("nO") not in (None, get_width(X)):
        model.layers[0].initialize(X=X)


def forward(
    model: Model[list[Floats2d], list[Floats2d]], X: list[Floats2d], is_train: bool
) -> tuple[list[Floats2d], Callable]:
    """The Maxout layer, if it has weights."""
    maxout = model.layers[0]
    return maxout(X, is_train) if maxout.has_dim("nI") else (X, _same)


def _same(gradient: list[Floats2d]) -> list[Floats2d]:
    return gradient

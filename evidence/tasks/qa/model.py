"""`evidence.AnswerPointer.v1`: a model of the scores of each token as the first and the last token of the answer."""

from collections.abc import Callable
from typing import Any

import spacy
from spacy.tokens import Doc
from thinc.api import (
    ArgsKwargs,
    Maxout,
    Model,
    PyTorchWrapper,
    chain,
    torch2xp,
    with_array,
    xp2torch,
)
from thinc.types import Floats2d, Floats3d
from torch import Tensor

from ..pairs import Pair, padded, pairs
from .bidaf import Bidaf


@spacy.registry.architectures("evidence.AnswerPointer.v1")
def answer_pointer(
    tok2vec: Model[list[Doc], list[Floats2d]], hidden_width: int, dropout: float
) -> Model[list[Doc], list[Floats2d]]:
    """Return a model of the logits of the first and the last token of the answer, (n_tokens of the context, 2) per Doc.

    It is the BiDAF of Seo et al. (2017), on which the paper's baseline (Clark and Gardner 2018) is based. It is
    simplified: it is narrower, has one layer instead of two, and has no self-attention and no shared norm.

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the BiDAF.
        dropout: dropout rate in the BiDAF. The rest of the model has `[training] dropout`.
    """
    model: Model[list[Doc], list[Floats2d]] = chain(
        pairs(
            chain(tok2vec, with_array(Maxout(nO=hidden_width, nP=3, normalize=True, dropout=0.0)))
        ),
        PyTorchWrapper(
            Bidaf(hidden_width, dropout), convert_inputs=padded, convert_outputs=unpadded
        ),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def unpadded(
    model: Model, inputs_outputs: tuple[list[Pair], Tensor], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], ArgsKwargs]]:
    """Convert padded logits to the logits of each context, and their gradients to padded tensors."""
    asked, output = inputs_outputs
    logits: Floats3d = torch2xp(output.detach(), ops=model.ops)

    def back(d_logits: list[Floats2d]) -> ArgsKwargs:
        gradient: Any = xp2torch(model.ops.pad(d_logits))
        return ArgsKwargs(args=((output,),), kwargs={"grad_tensors": gradient})

    return model.ops.unpad(logits, [len(context) for _, context in asked]), back

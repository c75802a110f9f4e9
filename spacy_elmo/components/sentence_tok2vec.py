"""`spacy-elmo.SentenceTok2Vec.v1`: an encoder that reads each sentence alone, and the sentences for its training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model
from thinc.types import Floats2d

from .augment import Augmenter
from .bilstm import split


def SentenceTok2Vec_v1(
    embed: Model[list[Doc], list[Floats2d]], encode: Model[list[Floats2d], list[Floats2d]]
) -> Model[list[Doc], list[Floats2d]]:
    """Build spaCy's `Tok2Vec` with an encoder that reads each sentence of a Doc alone, as in the training data of a
    treebank, whatever other sentences the Doc has.

    A component before it must set the sentences; a Doc without sentences is an error. In training, the augmenter
    `spacy-elmo.gold_sentences.v1` sets them.

    Args:
        embed: the vectors of the words, (n_tokens, width) per Doc, such as `concatenate.v1` of several
            embeddings and listeners.
        encode: the encoder, such as `spacy-elmo.BiLSTMEncoder.v1`. Its input has the width of `embed`.
    """
    return Model(
        "sentence-tok2vec",
        forward,
        init=init,
        dims={"nO": encode.maybe_get_dim("nO")},
        layers=[embed, encode],
    )


def init(
    model: Model[list[Doc], list[Floats2d]], X: list[Doc] | None = None, Y: Any = None
) -> None:
    """Initialize both layers with the Docs X."""
    embed, encode = model.layers
    embed.initialize(X=X)
    encode.initialize(X=None if X is None else embed.predict(X))
    model.set_dim("nO", encode.get_dim("nO"))


def forward(
    model: Model[list[Doc], list[Floats2d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    """Compute the outputs of the encoder for each Doc, (n_tokens, width)."""
    embed, encode = model.layers
    sentences = [len(sentence) for doc in docs for sentence in doc.sents]
    if not sentences:
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], lambda gradient: []
    vectors, backprop_vectors = embed(docs, is_train)
    lengths = [len(doc) for doc in docs]
    outputs, backprop_outputs = encode(split(model.ops.flatten(vectors), sentences), is_train)

    def backprop(gradient: list[Floats2d]) -> list[Doc]:
        d_vectors = backprop_outputs(split(model.ops.flatten(gradient), sentences))
        return backprop_vectors(split(model.ops.flatten(d_vectors), lengths))

    return split(model.ops.flatten(outputs), lengths), backprop


def gold_sentences_v1() -> Augmenter:
    """Return an augmenter that changes no text: it gives the Docs of a corpus the sentences of their annotation, for
    components that read `doc.sents`, such as `biaffine_parser`. If no component sets sentences, the dev part needs it,
    too."""
    return gold_sentences


def gold_sentences(nlp: Language, example: Example) -> Iterator[Example]:
    """Set the sentences of the predicted Doc to those of the reference."""
    if example.reference.has_annotation("SENT_START"):
        starts = example.get_aligned_sent_starts()
        for token, start in zip(example.predicted, starts, strict=True):
            token.is_sent_start = token.i == 0 or start == 1
    yield example

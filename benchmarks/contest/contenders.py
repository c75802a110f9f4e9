"""What is measured against each other, all behind the same two calls."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import spacy
import torch
from allennlp_elmo import AllenNLP
from matrix_products import MatrixProducts, multiply
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.bilm.matmul_precision import Precision
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.reading.encoder import shim_of

Sentences = Sequence[Sequence[str]]

RUNNING_TEXT, A_FEW = 512, 8


class Contender(Protocol):
    """Whoever reads sentences."""

    warm_up: int
    """Sentences that are read before what is timed. Who remembers words gets as many as make running text of it."""

    def prepare(self, sentences: Sentences, batch: int) -> Any:
        """What is read from: sentences in order, `batch` of them at once. Its time does not count."""

    def read(self, prepared: Any) -> None:
        """Give vectors to all words."""

    def forget(self) -> None:
        """Begin anew, as if no word had been read."""


class Network:
    """The bare biLM: the layers of every word, from the strings of the distinct words of a batch."""

    warm_up = RUNNING_TEXT

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self.bilm = bilm.ready(precision)

    def prepare(self, sentences: Sentences, batch: int) -> list[tuple[list[str], Any, list[int]]]:
        prepared = []
        for part in batches(sentences, batch):
            types, words = np.unique([w for words in part for w in words], return_inverse=True)
            prepared.append((types.tolist(), words, [len(words) for words in part]))
        return prepared

    @torch.no_grad()
    def read(self, prepared: list[tuple[list[str], Any, list[int]]]) -> None:
        for types, words, lengths in prepared:
            self.bilm(self.bilm.token_ids(types), words, lengths)

    def forget(self) -> None:
        self.bilm.forget()


class Pipe:
    """A pipeline, which reads a stream of Docs of one sentence each; the Docs are given up as they come."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.warm_up = RUNNING_TEXT if "elmo" in nlp.pipe_names else A_FEW

    def prepare(self, sentences: Sentences, batch: int) -> tuple[list[Doc], int]:
        return [Doc(self.nlp.vocab, words=list(words)) for words in sentences], batch

    def read(self, prepared: tuple[list[Doc], int]) -> None:
        docs, batch = prepared
        docs.reverse()
        stream = (docs.pop() for _ in range(len(docs)))
        collections.deque(self.nlp.pipe(stream, batch_size=batch), maxlen=0)

    def forget(self) -> None:
        if "elmo" in self.nlp.pipe_names:
            shim_of(self.nlp.get_pipe("elmo").model).forget()


class Products:
    """The matrix products of the bare biLM: see `MatrixProducts`."""

    warm_up = RUNNING_TEXT

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self.products = MatrixProducts(bilm, precision)

    def prepare(self, sentences: Sentences, batch: int) -> list[Any]:
        return [self.products.operands(part) for part in batches(sentences, batch)]

    def read(self, prepared: list[Any]) -> None:
        for operands in prepared:
            multiply(operands)

    def forget(self) -> None:
        self.products.forget()


class AllenNLPs:
    """AllenNLP's biLM with the same weights."""

    warm_up = A_FEW

    def __init__(self, net: AllenNLP) -> None:
        self.net = net

    def prepare(self, sentences: Sentences, batch: int) -> list[Sentences]:
        return list(batches(sentences, batch))

    @torch.no_grad()
    def read(self, prepared: list[Sentences]) -> None:
        for part in prepared:
            self.net.layers(part)

    def forget(self) -> None:
        """It remembers nothing."""


def make(kind: str, precision: Precision, files: Path, allennlp: Path | None) -> Contender:
    """A contender by its name.

    Args:
        kind: "network", "nlp.pipe", "products", "AllenNLP", or the name of a folder of `write_transformer`.
        precision: of its products.
        files: the folder with `weights.safetensors` and those of the transformers.
        allennlp: where pip has put the package.
    """
    weights = files / "weights.safetensors"
    if kind == "nlp.pipe":
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": str(weights), "precision": precision})
        return Pipe(nlp)
    if kind in ("network", "products", "AllenNLP"):
        bilm = Weights.read(weights).bilm()
        if kind == "AllenNLP":
            assert allennlp is not None, "without it nobody asks for this contender"
            return AllenNLPs(AllenNLP.of(bilm, allennlp))
        return Network(bilm, precision) if kind == "network" else Products(bilm, precision)
    from transformer import transformer_pipeline  # seconds, and memory, that no other needs

    return Pipe(transformer_pipeline(files / kind))


def batches(sentences: Sentences, size: int) -> Iterator[Sentences]:
    """So many sentences at a time, the last ones fewer."""
    for start in range(0, len(sentences), size):
        yield sentences[start : start + size]

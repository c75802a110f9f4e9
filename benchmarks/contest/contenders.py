"""The contenders. All have the same interface: prepare sentences, then run on them."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.bilm.matmul_precision import Precision
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.onnx.export import export
from spacy_elmo.pipeline.encode.encoder import shim_of

from .allennlp_elmo import AllenNLP
from .matrix_products import MatrixProducts, multiply

Sentences = Sequence[Sequence[str]]

RUNNING_TEXT, A_FEW = 512, 8


class Contender(Protocol):
    """Interface of a network, or a pipeline with a network, that computes vectors of words."""

    warm_up: int
    """Number of sentences to run before the timed sentences. A contender with a cache of words needs many, so that its
    cache is filled as in the middle of a text."""

    def prepare(self, sentences: Sentences, batch: int) -> Any:
        """Prepare the input of `run` from sentences, in batches of `batch` sentences. This is not timed."""

    def run(self, prepared: Any) -> None:
        """Compute the vectors of all words."""

    def clear_cache(self) -> None:
        """Clear the cache of words, if there is one."""


class Network:
    """The biLM without a pipeline. It computes the layers of every word from the strings of a batch's distinct
    words."""

    warm_up = RUNNING_TEXT

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self.bilm = bilm.prepare_for_inference(precision)

    def prepare(self, sentences: Sentences, batch: int) -> list[tuple[list[str], Any, list[int]]]:
        prepared = []
        for part in batches(sentences, batch):
            types, words = np.unique([w for words in part for w in words], return_inverse=True)
            prepared.append((types.tolist(), words, [len(words) for words in part]))
        return prepared

    @torch.no_grad()
    def run(self, prepared: list[tuple[list[str], Any, list[int]]]) -> None:
        for types, words, lengths in prepared:
            self.bilm(self.bilm.token_ids(types), words, lengths)

    def clear_cache(self) -> None:
        self.bilm.clear_cache()


class Pipe:
    """A pipeline that processes a stream of Docs of one sentence each. They are freed as soon as they are processed."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.warm_up = RUNNING_TEXT if "elmo" in nlp.pipe_names else A_FEW

    def prepare(self, sentences: Sentences, batch: int) -> tuple[list[Doc], int]:
        return [Doc(self.nlp.vocab, words=list(words)) for words in sentences], batch

    def run(self, prepared: tuple[list[Doc], int]) -> None:
        docs, batch = prepared
        docs.reverse()
        stream = (docs.pop() for _ in range(len(docs)))
        collections.deque(self.nlp.pipe(stream, batch_size=batch), maxlen=0)

    def clear_cache(self) -> None:
        if "elmo" in self.nlp.pipe_names:
            shim_of(self.nlp.get_pipe("elmo").model).clear_cache()


class Products:
    """The matrix products of the biLM; see `MatrixProducts`."""

    warm_up = RUNNING_TEXT

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        self.products = MatrixProducts(bilm, precision)

    def prepare(self, sentences: Sentences, batch: int) -> list[Any]:
        return [self.products.operands(part) for part in batches(sentences, batch)]

    def run(self, prepared: list[Any]) -> None:
        for operands in prepared:
            multiply(operands)

    def clear_cache(self) -> None:
        self.products.clear_cache()


class AllenNLPNetwork:
    """AllenNLP's biLM with the same weights. It has no cache."""

    warm_up = A_FEW

    def __init__(self, net: AllenNLP) -> None:
        self.net = net

    def prepare(self, sentences: Sentences, batch: int) -> list[Sentences]:
        return list(batches(sentences, batch))

    @torch.no_grad()
    def run(self, prepared: list[Sentences]) -> None:
        for part in prepared:
            self.net.layers(part)

    def clear_cache(self) -> None:
        pass


class OnnxRuntime:
    """onnxruntime with the exported network. It has no cache. Character ids are computed in `prepare`, so not timed."""

    warm_up = A_FEW

    def __init__(self, bilm: BiLM, model: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self.bilm = bilm
        self.session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])

    def prepare(self, sentences: Sentences, batch: int) -> list[dict[str, np.ndarray]]:
        prepared = []
        for part in batches(sentences, batch):
            lengths = np.array([len(words) for words in part])
            ids = np.zeros((len(part), lengths.max(), self.bilm.config.max_characters), np.int64)
            for row, words in zip(ids, part, strict=True):
                row[: len(words)] = self.bilm.token_ids(words)
            prepared.append({"ids": ids, "lengths": lengths})
        return prepared

    def run(self, prepared: list[dict[str, np.ndarray]]) -> None:
        for inputs in prepared:
            self.session.run(["layers"], inputs)

    def clear_cache(self) -> None:
        pass


def make(kind: str, precision: Precision, files: Path, allennlp: Path | None) -> Contender:
    """Create a contender by its name.

    Args:
        kind: "network", "nlp.pipe", "products", "onnxruntime", "AllenNLP", or the name of a folder of
            `write_transformer`.
        precision: data type of the matrix products.
        files: the folder with `weights.safetensors` and with the folders of the transformers.
        allennlp: the folder into which pip has installed AllenNLP.
    """
    weights = files / "weights.safetensors"
    if kind == "nlp.pipe":
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": str(weights), "precision": precision})
        return Pipe(nlp)
    if kind in ("network", "products", "onnxruntime", "AllenNLP"):
        bilm = Weights.load(weights).build_bilm()
        if kind == "onnxruntime":
            (model,) = export(Weights.load(weights), files / "model.onnx", force=True)
            return OnnxRuntime(bilm, model)
        if kind == "AllenNLP":
            assert allennlp is not None, "the contender AllenNLP needs its folder"
            return AllenNLPNetwork(AllenNLP.from_bilm(bilm, allennlp))
        return Network(bilm, precision) if kind == "network" else Products(bilm, precision)
    # Imported here, because it takes seconds and memory that no other contender needs.
    from .transformer import transformer_pipeline

    return Pipe(transformer_pipeline(files / kind))


def batches(sentences: Sentences, size: int) -> Iterator[Sentences]:
    """Yield batches of `size` sentences. The last batch may have fewer."""
    for start in range(0, len(sentences), size):
        yield sentences[start : start + size]

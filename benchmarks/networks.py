"""The networks that `bench.py` compares. All have the weights of one biLM, except BERT, which is random."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.allennlp_elmo import AllenNLP
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.onnx import export
from spacy_elmo.pipeline.encode.encoder import shim_of

Sentences = Sequence[Sequence[str]]

SIZES = {
    # The size of en_mini_v4.
    "mini": BiLMConfig(
        dim=512, projection=128, highways=1,
        filters=((1, 16), (2, 32), (3, 64), (4, 96), (5, 128), (6, 96), (7, 80)),
    ),
    # The size of en_base_v2.
    "base": BiLMConfig(
        dim=1024, projection=256, highways=1,
        filters=((1, 32), (2, 64), (3, 128), (4, 192), (5, 192), (6, 160), (7, 128)),
    ),
    # AllenNLP's elmo_2x1024_128_2048cnn_1xhighway.
    "small": BiLMConfig(dim=1024, projection=128, highways=1),
    # AllenNLP's elmo_2x4096_512_2048cnn_2xhighway, the size of the paper.
    "original": BiLMConfig(),
}  # fmt: skip
BERT_LAYERS = {"BERT-base": 12, "BERT, 6 layers": 6}


@dataclass
class Network:
    """A network and its input."""

    prepare: Callable[[Sentences, int], Any]
    """Makes the input of `run` from sentences, in batches of so many sentences. This is not timed."""
    run: Callable[[Any], object]
    """Computes the vectors of all words."""
    clear_cache: Callable[[], object] | None = None
    """Clears the cache of words; None: there is none."""


def networks(
    size: str, folder: Path, words: Sequence[str], precisions: Sequence[str], allennlp: Path | None
) -> dict[str, Network]:
    """Return the networks of a size by their names.

    Args:
        folder: an empty folder for the files of the networks.
        words: the words of the text, for BERT's vocabulary.
        precisions: precisions of the biLM.
        allennlp: the folder into which pip has installed AllenNLP; None: without AllenNLP.
    """
    torch.manual_seed(0)
    path = folder / "weights.safetensors"
    Weights.from_bilm(BiLM(SIZES[size]), card={"language": "en"}).save(path)
    bilm = Weights.load(path).build_bilm()
    found = {}
    for precision in precisions:
        found[f"network, {precision}"] = _bilm(Weights.load(path).build_bilm(), precision)
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"weights": str(path), "precision": precision})
        found[f"nlp.pipe, {precision}"] = _pipe(nlp)
    if size != "original":  # Its export has 375 MB.
        (model,) = export(Weights.load(path), folder / "model.onnx", force=True)
        found["onnxruntime"] = _onnxruntime(bilm, model)
    if allennlp:
        found["AllenNLP"] = _allennlp(AllenNLP.from_bilm(bilm, allennlp))
    if size == "small":  # BERT has only one size, so it runs once.
        for name, layers in BERT_LAYERS.items():
            found[name] = _pipe(_bert(folder / name, layers, words))
    return found


def batches(sentences: Sentences, size: int) -> Iterator[Sentences]:
    """Yield batches of `size` sentences. The last batch may have fewer."""
    for start in range(0, len(sentences), size):
        yield sentences[start : start + size]


def _bilm(bilm: BiLM, precision: Any) -> Network:
    bilm = bilm.prepare_for_inference(precision)

    def prepare(sentences: Sentences, batch: int) -> list[tuple[list[str], Any, list[int]]]:
        prepared = []
        for part in batches(sentences, batch):
            types, words = np.unique([w for words in part for w in words], return_inverse=True)
            prepared.append((types.tolist(), words, [len(words) for words in part]))
        return prepared

    @torch.no_grad()
    def run(prepared: list[tuple[list[str], Any, list[int]]]) -> None:
        for types, words, lengths in prepared:
            vectors = bilm.encode_words(types)
            collections.deque(bilm.forward_chunks(vectors, words, lengths, len(words)), maxlen=0)

    return Network(prepare, run, bilm.encoder.clear)


def _pipe(nlp: Language) -> Network:
    """Return a pipeline that processes a stream of Docs of one sentence each, which are freed at once."""

    def prepare(sentences: Sentences, batch: int) -> tuple[list[Doc], int]:
        return [Doc(nlp.vocab, words=list(words)) for words in reversed(sentences)], batch

    def run(prepared: tuple[list[Doc], int]) -> None:
        docs, batch = prepared
        stream = (docs.pop() for _ in range(len(docs)))
        collections.deque(nlp.pipe(stream, batch_size=batch), maxlen=0)

    def clear_cache() -> None:
        shim_of(nlp.get_pipe("elmo").model).bilm_for_inference().encoder.clear()

    return Network(prepare, run, clear_cache if "elmo" in nlp.pipe_names else None)


def _allennlp(net: AllenNLP) -> Network:
    @torch.no_grad()
    def run(prepared: list[Sentences]) -> None:
        for part in prepared:
            net.layers(part)

    return Network(lambda sentences, batch: list(batches(sentences, batch)), run)


def _onnxruntime(bilm: BiLM, model: Path) -> Network:
    """Return onnxruntime with the exported network. The time does not include the computation of character ids."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])

    def prepare(sentences: Sentences, batch: int) -> list[dict[str, np.ndarray]]:
        prepared = []
        for part in batches(sentences, batch):
            lengths = np.array([len(words) for words in part])
            ids = np.zeros((len(part), lengths.max(), bilm.config.max_characters), np.int64)
            for row, words in zip(ids, part, strict=True):
                row[: len(words)] = bilm.token_ids(words)
            prepared.append({"ids": ids, "lengths": lengths})
        return prepared

    def run(prepared: list[dict[str, np.ndarray]]) -> None:
        for inputs in prepared:
            session.run(["layers"], inputs)

    return Network(prepare, run)


def _bert(folder: Path, layers: int, words: Sequence[str]) -> Language:
    """Return a pipeline with a random BERT of the base size, made without a download. Each Doc is one sequence.

    Its vocabulary contains the words of the text, so each word is one word piece. This is its best case.
    """
    from transformers import BertConfig, BertModel, BertTokenizerFast

    config = BertConfig(num_hidden_layers=layers)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    folder.mkdir()
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join([*special, *sorted(set(words))][: config.vocab_size]), "utf8")
    BertTokenizerFast(vocab_file=str(vocabulary), do_lower_case=False).save_pretrained(folder)
    BertModel(config).eval().save_pretrained(folder)
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(folder),
        "get_spans": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    return nlp

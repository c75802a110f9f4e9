"""Words per second of the biLM and of two other implementations, in prediction and in training, on the same batches.

The others are the plain network of `spacy_elmo/bilm/reference.py`, trained with torch's autograd, and AllenNLP. All
have the same weights. Training is the forward pass, the sampled softmax loss of both directions and the backward pass,
without the optimizer. The sentences of a batch have similar lengths, which is the best case for networks that pad.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.allennlp_elmo import AllenNLP
from benchmarks.networks import SIZES
from benchmarks.sentences import read_sentences
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.reference import ReferenceBiLM
from spacy_elmo.pretraining import corpus
from spacy_elmo.pretraining.loss import loss_sum
from spacy_elmo.pretraining.process_settings import reuse_memory
from spacy_elmo.pretraining.sampled_softmax import Negatives, sampled_loss

START, END, FIRST_WORD = 0, 1, 3
VOCABULARY, NEGATIVES = 50_000, 2_048
BATCH_WORDS = 2_000


class Batch:
    """Sentences, and the inputs and targets of the networks."""

    def __init__(self, sentences: list[list[str]], classes: dict[str, int]) -> None:
        self.sentences = sentences
        self.lengths = [len(sentence) for sentence in sentences]
        types, type_of_word = np.unique(
            [word for s in sentences for word in s], return_inverse=True
        )
        self.types, self.type_of_word = types.tolist(), type_of_word
        self.classes = np.array([*(classes[word] for word in self.types), START, END])
        bodies = [[classes[word] for word in sentence] for sentence in sentences]
        self.forward = torch.tensor([target for body in bodies for target in [*body, END]])
        self.backward = torch.tensor([target for body in bodies for target in [START, *body]])


class Ours:
    """The biLM of `spacy_elmo`."""

    def __init__(self, bilm: BiLM, head: Head, negatives: Negatives, precision: str) -> None:
        self.bilm, self.head, self.negatives = bilm, head, negatives
        self.parameters = [*bilm.parameters(), *head.parameters()]
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")

    def layers(self, batch: Batch) -> list[Tensor]:
        """Return the layers of each sentence, (L+1, n, 2P)."""
        config, n_words = self.bilm.config, len(batch.type_of_word)
        layers = torch.empty(config.layers + 1, n_words, 2, config.projection)
        with self.autocast:
            types = self.bilm.encode_words(batch.types)
            for chunk in self.bilm.forward_chunks(
                types, batch.type_of_word, batch.lengths, n_words
            ):
                for layer, values in enumerate(chunk.layers):
                    for direction, words in enumerate(chunk.places):
                        layers[layer, words, direction] = values[direction].float()
        return list(layers.flatten(2).split(batch.lengths, 1))

    def loss(self, batch: Batch) -> Tensor:
        """Return the mean sampled softmax loss per target over both directions, a scalar."""
        step = corpus.Batch(
            types=np.arange(len(batch.types)),
            token_ids=self.bilm.token_ids(batch.types),
            classes=batch.classes,
            type_of_word=batch.type_of_word,
            lengths=np.array(batch.lengths),
        )
        with self.autocast:
            total = loss_sum(self.bilm, self.head, step, [self.negatives] * 2, dropout=0.0)
        return total / (2 * len(batch.forward))


class Rival:
    """Another implementation of the network. It is trained with our loss, because AllenNLP's loss is different."""

    def __init__(
        self,
        network: ReferenceBiLM | AllenNLP,
        parameters: list[nn.Parameter],
        head: Head,
        negatives: Negatives,
    ) -> None:
        self.network, self.head, self.negatives = network, head, negatives
        self.parameters = [*parameters, *head.parameters()]

    def layers(self, batch: Batch) -> list[Tensor]:
        """As `Ours.layers`."""
        return self.network.layers(batch.sentences)

    def loss(self, batch: Batch) -> Tensor:
        """As `Ours.loss`."""
        forward, backward = self.network.contexts(batch.sentences)
        losses = [
            sampled_loss(self.head, forward, batch.forward, self.negatives),
            sampled_loss(self.head, backward, batch.backward, self.negatives),
        ]
        return torch.stack(losses).sum() / (2 * len(batch.forward))


@torch.no_grad()
def predict(network: Ours | Rival, batch: Batch) -> list[Tensor]:
    """Compute the layers of a batch without a graph."""
    return network.layers(batch)


def train(network: Ours | Rival, batch: Batch) -> Tensor:
    """Run the forward and the backward pass, and return the loss."""
    for parameter in network.parameters:
        parameter.grad = None
    loss = network.loss(batch)
    loss.backward()
    return loss.detach()


def measure(
    size: str, text: Path, words: int, precisions: list[str], allennlp: Path | None, passes: int = 2
) -> dict[str, dict[str, float]]:
    """Return the words per second of each network in "prediction" and "training", in its fastest pass over the text.

    The networks take turns.

    Args:
        size: a name of `SIZES`.
        text: raw text, one paragraph per line, of which about `words` words are used.
        allennlp: the folder into which pip has installed AllenNLP; None: without AllenNLP.

    Raises:
        ValueError: the networks compute different layers or losses.
    """
    reuse_memory()
    torch.manual_seed(0)
    bilm, head = BiLM(SIZES[size]), Head(VOCABULARY, SIZES[size].projection)
    negatives = Negatives(VOCABULARY, NEGATIVES, np.random.default_rng(0))
    batches = _batches(read_sentences(text, words))
    parameters = dict(bilm.named_parameters())
    reference = ReferenceBiLM(SIZES[size], parameters)
    rivals = {"plain PyTorch": Rival(reference, list(parameters.values()), head, negatives)}
    if allennlp:
        network = AllenNLP.from_bilm(bilm, allennlp, trained=True)
        rivals["AllenNLP"] = Rival(network, network.parameters(), head, negatives)
    ours = {precision: Ours(bilm, head, negatives, precision) for precision in precisions}
    for rival in rivals.values():
        check(rival, ours["float32"], batches[len(batches) // 2])
    tasks: dict[str, Callable[..., Any]] = {"prediction": predict, "training": train}
    n_words = sum(sum(batch.lengths) for batch in batches)
    speeds: dict[str, dict[str, float]] = {}
    for task, run in tasks.items():
        networks: dict[str, Ours | Rival] = {**rivals, **ours}
        best = dict.fromkeys(networks, float("inf"))
        for _ in range(passes):
            for name, each in networks.items():
                run(each, batches[0])  # Fills the processor's caches again.
                start = time.perf_counter()
                for batch in batches:
                    run(each, batch)
                best[name] = min(best[name], time.perf_counter() - start)
        speeds[task] = {name: n_words / seconds for name, seconds in best.items()}
    return speeds


def check(rival: Rival, ours: Ours, batch: Batch) -> None:
    """Compare the layers and losses of two networks.

    Raises:
        ValueError: they differ by more than rounding.
    """
    pairs = zip(predict(rival, batch), predict(ours, batch), strict=True)
    layers = max(float((one - other).abs().max()) for one, other in pairs)
    losses = [float(train(network, batch)) for network in (rival, ours)]
    if layers > 1e-5 or abs(losses[0] / losses[1] - 1) > 1e-5:
        raise ValueError(f"The networks differ: layers by {layers:.1e}, losses are {losses}")


def _batches(sentences: list[list[str]]) -> list[Batch]:
    words = sorted({word for sentence in sentences for word in sentence})
    classes = {word: row for row, word in enumerate(words, FIRST_WORD)}
    sentences = sorted(filter(None, sentences), key=len)
    number = np.cumsum([len(sentence) for sentence in sentences]) // BATCH_WORDS
    parts = np.split(np.arange(len(sentences)), np.flatnonzero(np.diff(number)) + 1)
    return [Batch([sentences[row] for row in part], classes) for part in parts]

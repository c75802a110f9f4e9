"""Forward pass, loss and backward pass of the biLM and of its rivals on the same batches."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import nn

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.reference import ReferenceBiLM
from spacy_elmo.pretraining.corpus.batches import TrainBatch
from spacy_elmo.pretraining.training.loss import loss_sum
from spacy_elmo.pretraining.training.sampled_softmax import Negatives, sampled_loss

from .allennlp_elmo import AllenNLP

START, END, FIRST_WORD = 0, 1, 3


class Batch:
    """Sentences, and the inputs and targets of the networks."""

    def __init__(self, sentences: list[list[str]], classes: dict[str, int]) -> None:
        self.sentences = sentences
        self.lengths = [len(sentence) for sentence in sentences]
        self.n_words = sum(self.lengths)
        types, words = np.unique(
            [word for sentence in sentences for word in sentence], return_inverse=True
        )
        self.types, self.words = types.tolist(), words
        self.classes = np.array([*(classes[word] for word in self.types), START, END])
        bodies = [[classes[word] for word in sentence] for sentence in sentences]
        self.forward = torch.tensor([target for body in bodies for target in [*body, END]])
        self.backward = torch.tensor([target for body in bodies for target in [START, *body]])


class Learner(Protocol):
    """Interface of a network that computes layers and is trained."""

    def layers(self, batch: Batch) -> list[torch.Tensor]:
        """Return the layers of each sentence, (L+1, n, 2P)."""

    def loss(self, batch: Batch) -> torch.Tensor:
        """Return the mean sampled softmax loss per target over both directions, a scalar."""

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the network without the head."""


class Ours:
    """The biLM of `spacy_elmo`, with products in float32 or bfloat16."""

    def __init__(self, bilm: BiLM, head: Head, negatives: Negatives, dtype: torch.dtype) -> None:
        self.bilm, self.head, self.negatives = bilm, head, negatives
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)

    def layers(self, batch: Batch) -> list[torch.Tensor]:
        with self.autocast:
            output = self.bilm(self.bilm.token_ids(batch.types), batch.words, batch.lengths)
        return list(output.layers.split(batch.lengths, 1))

    def loss(self, batch: Batch) -> torch.Tensor:
        step = TrainBatch(
            types=np.arange(len(batch.types)),
            token_ids=self.bilm.token_ids(batch.types),
            classes=batch.classes,
            words=batch.words,
            lengths=np.array(batch.lengths),
        )
        with self.autocast:
            total = loss_sum(self.bilm, self.head, step, [self.negatives] * 2, dropout=0.0)
        return total / (2 * len(batch.forward))

    def parameters(self) -> list[nn.Parameter]:
        return list(self.bilm.parameters())


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
        self._parameters = parameters

    def layers(self, batch: Batch) -> list[torch.Tensor]:
        return self.network.layers(batch.sentences)

    def loss(self, batch: Batch) -> torch.Tensor:
        forward, backward = self.network.contexts(batch.sentences)
        losses = [
            sampled_loss(self.head, forward, batch.forward, self.negatives),
            sampled_loss(self.head, backward, batch.backward, self.negatives),
        ]
        return torch.stack(losses).sum() / (2 * len(batch.forward))

    def parameters(self) -> list[nn.Parameter]:
        return self._parameters


def predict(learner: Learner, batch: Batch) -> list[torch.Tensor]:
    """Compute the layers of a batch without a graph."""
    with torch.no_grad():
        return learner.layers(batch)


def train(learner: Learner, batch: Batch, head: Head) -> torch.Tensor:
    """Run the forward and the backward pass, and return the loss. The gradients of the previous batch are replaced."""
    for parameter in [*learner.parameters(), *head.parameters()]:
        parameter.grad = None
    loss = learner.loss(batch)
    loss.backward()
    return loss.detach()


def make_batches(sentences: list[list[str]], batch_words: int) -> list[Batch]:
    """Return batches of sentences of similar length, each with about `batch_words` words."""
    words = sorted({word for sentence in sentences for word in sentence})
    classes = {word: row for row, word in enumerate(words, FIRST_WORD)}
    sentences = sorted(sentences, key=len)
    number = np.cumsum([len(sentence) for sentence in sentences]) // batch_words
    borders = np.flatnonzero(np.diff(number)) + 1
    parts = np.split(np.arange(len(sentences)), borders)
    return [Batch([sentences[b] for b in part], classes) for part in parts]

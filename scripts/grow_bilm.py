"""Write initial weights for a large biLM that computes the same vectors as a trained smaller biLM.

    python -m scripts.grow_bilm la_elmo_mini_v1 CONFIG CORPUS OUT
    python -m spacy elmo pretrain CONFIG RUN --paths.corpus CORPUS --paths.init OUT

CONFIG is the config of the large biLM, and CORPUS is a prepared corpus. Packages of biLMs contain no
softmax head, so the program also computes a head. Training from these weights needs fewer words than
training from random weights.
"""

import argparse
import dataclasses
import fnmatch

import numpy as np
import torch
from torch import Tensor

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.corpus.batches import Batcher, Epoch
from spacy_elmo.pretraining.corpus.prepared import Corpus
from spacy_elmo.pretraining.training.loss import targets
from spacy_elmo.weight_names import find_weights

_BATCH_TOKENS, _MAX_LENGTH = 4096, 100
_PRIOR_COUNT = 30.0
"""Number of average outputs that are added to the outputs before each word, so that rare words get
small weights."""
_SCALE = 0.2
"""Factor of the weights of the head. The discriminant analysis assumes Gaussian outputs, so its
probabilities are too sure. Of the factors 0.2 to 1, the smallest had the lowest perplexity."""


def grown(source: Weights, config: BiLMConfig) -> BiLM:
    """Return a biLM of the size `config`, whose outputs begin with the outputs of a smaller biLM.

    The weights of the smaller network are blocks of the new matrices. The weights from the new cells to the
    old cells are 0, so the old cells compute what they computed before. All other new weights are random.
    Net2Net (Chen et al. 2016) has the same aim, but copies cells.

    Args:
        source: a biLM with the same number of layers, and in each part with at most as many cells as `config`.
        config: hyperparameters of the new biLM.

    Raises:
        ValueError: the smaller biLM does not fit into `config`.
    """
    _check(source.config, config)
    bilm = BiLM(config)
    for name, parameter in bilm.named_parameters():
        old = source.tensors[name].float()
        *rows, columns = _places(name, old, source.config, config)
        with torch.no_grad():
            if rows:
                parameter[..., columns] = 0
                parameter[..., rows[0][:, None], columns] = old
            else:
                parameter[..., columns] = old
    return bilm


def _check(small: BiLMConfig, large: BiLMConfig) -> None:
    """Check that only the numbers of cells, outputs and filters differ, and that the large biLM has not fewer."""
    sizes = {name: getattr(small, name) for name in ("dim", "projection", "filters")}
    if differences := dataclasses.replace(large, **sizes).differences(small):
        raise ValueError(f"The biLMs differ in more than their size: {differences}")
    pairs = zip(small.filters, large.filters, strict=True)
    fits = all(old[0] == new[0] and old[1] <= new[1] for old, new in pairs)
    if not fits or small.dim > large.dim or small.projection > large.projection:
        raise ValueError(f"The biLM {small} does not fit into {large}")


def _places(name: str, old: Tensor, small: BiLMConfig, large: BiLMConfig) -> list[Tensor]:
    """Return where the old weights of a parameter are in the new one: row indices of a matrix, and column indices."""
    width, cells = torch.arange(small.projection), torch.arange(small.dim)
    gates = torch.cat([gate * large.dim + cells for gate in range(4)])
    starts = np.cumsum([0] + [number for _, number in large.filters])
    filters = torch.cat(
        [
            int(start) + torch.arange(number)
            for start, (_, number) in zip(starts[:-1], small.filters, strict=True)
        ]
    )
    known = {
        "lstm.*.input": [width, gates],
        "lstm.*.recurrent": [width, gates],
        "lstm.*.projection": [cells, width],
        "lstm.*.bias": [gates],
        "encoder.highways.*.weight": [filters, filters],
        "encoder.highways.*.bias": [filters],
        "encoder.projection.weight": [filters, width],
        "encoder.projection.bias": [width],
    }
    for pattern, places in known.items():
        if fnmatch.fnmatch(name, pattern):
            return places
    return [torch.arange(size) for size in old.shape[-2:]]


@torch.no_grad()
def fitted_head(bilm: BiLM, corpus: Corpus, vocabulary: list[str], words: int) -> Head:
    """Return a softmax head for a trained biLM from one reading of a text, without gradients.

    The method is linear discriminant analysis: if the outputs before each word had a Gaussian distribution
    with the same covariance S for all words, the weights of a word with the mean output m would be S^-1 m.

    Args:
        words: number of training words to read.
    """
    batcher = Batcher(bilm, corpus.types, vocabulary)
    sentences = corpus.train.cut(_MAX_LENGTH)
    epoch = Epoch(sentences, batch_tokens=_BATCH_TOKENS, seed=0, epoch=0)
    width = bilm.config.projection
    sums, counts, products = (
        np.zeros((len(vocabulary), width)),
        np.zeros(len(vocabulary)),
        np.zeros((width, width)),
    )
    for number in range(len(epoch)):
        batch = batcher(*sentences.take(epoch[number]))
        output = bilm.forward_packed(batch.token_ids, batch.words, batch.lengths, dropout=0.0)
        hidden = output.outputs[-1].flatten(0, 1).double().numpy()
        classes = targets(output, batch.classes).ravel()
        np.add.at(sums, classes, hidden)
        counts += np.bincount(classes, minlength=len(vocabulary))
        products += hidden.T @ hidden
        if counts.sum() >= 2 * words:
            break
    total = counts.sum()
    mean = sums.sum(0) / total
    centred = (sums - counts[:, None] * mean) / (counts[:, None] + _PRIOR_COUNT)
    within = (
        products / total - np.outer(mean, mean) - (centred * counts[:, None]).T @ centred / total
    )
    weight = _SCALE * np.linalg.solve(within, centred.T).T
    # `corpus.counts` does not count the first three classes, `<S>`, `</S>` and `<UNK>`.
    frequency = counts / total
    in_text = corpus.counts[3 : len(vocabulary)]
    frequency[3:] = in_text / in_text.sum() * frequency[3:].sum()
    bias = np.log(frequency.clip(1e-9)) - (weight * centred).sum(1) / 2 - weight @ mean
    head = Head(len(vocabulary), width)
    head.weight.copy_(torch.from_numpy(weight))
    head.bias[:, 0].copy_(torch.from_numpy(bias))
    return head


def main() -> None:
    """Grow a biLM, fit a head, and write both to a weights file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("source", "config", "corpus", "out"):
        parser.add_argument(name)
    parser.add_argument(
        "--words", type=int, default=1_800_000, help="number of words that the head is fitted to"
    )
    args = parser.parse_args()
    config = PretrainConfig.read(args.config, {"paths.corpus": args.corpus})
    corpus = Corpus.open(args.corpus)
    assert config.training.vocab_size, "CONFIG must have a vocab_size"
    vocabulary = corpus.vocabulary(config.training.vocab_size)
    source = Weights.load(find_weights(args.source))
    torch.manual_seed(config.training.seed)
    bilm = grown(source, config.bilm)
    small_head = fitted_head(source.build_bilm(), corpus, vocabulary, args.words)
    head = Head(len(vocabulary), config.bilm.projection)
    with torch.no_grad():
        head.weight.zero_()
        head.weight[:, : source.config.projection] = small_head.weight
        head.bias.copy_(small_head.bias)
    card = {name: value for name, value in source.card.items() if name != "perplexity"}
    Weights.from_bilm(bilm, head, vocabulary=vocabulary, card=card).save(args.out)


if __name__ == "__main__":
    main()

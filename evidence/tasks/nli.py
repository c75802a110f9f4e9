"""Textual entailment: a model and a scorer for `textcat`.

    python -m tasks.nli IN.jsonl OUT.spacy

A line is {"premise": "...", "hypothesis": "...", "label": "..."}. A pair becomes one Doc: the premise, a line break,
the hypothesis. Every Doc gets all labels of the file: its own label has the value 1.0, the others have 0.0.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Maxout, Model, PyTorchWrapper, Softmax, chain
from thinc.types import Floats2d
from torch import Tensor, nn

from tasks.conversion import run
from tasks.networks import BiLSTM, attend, mask, padded, pairs, reduced


def convert(records: Iterable[dict[str, Any]], nlp: Language) -> Iterator[Doc]:
    """Yield the Docs of labelled pairs."""
    records = list(records)
    labels = sorted({record["label"] for record in records})
    for record in records:
        # All whitespace becomes single spaces, so that the only line break is that between the two texts.
        texts = (" ".join(record[key].split()) for key in ("premise", "hypothesis"))
        doc = nlp.make_doc("\n".join(texts))
        # A Doc needs all labels, because spaCy treats a missing label as unknown, not as false.
        doc.cats = {label: float(label == record["label"]) for label in labels}
        yield doc


class Esim(nn.Module):
    """Network that encodes two sentences, aligns each to the other by attention, compares and pools them.

    Args:
        width: width of the input and of both LSTMs (both directions together); the output has four times this width.
        dropout: dropout rate on the input of each layer.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.encode = BiLSTM(width, width)
        self.compare = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU())
        self.compose = BiLSTM(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        premise: Tensor,
        premise_lengths: Tensor,
        hypothesis: Tensor,
        hypothesis_lengths: Tensor,
    ) -> Tensor:
        """Compute the features of pairs.

        Args:
            premise, hypothesis: (batch, longest, width), padded.
            premise_lengths, hypothesis_lengths: (batch,), each at least 1.

        Returns:
            (batch, 4 * width), the mean and the maximum of the premise, then of the hypothesis.
        """
        # The lengths stay on the CPU, because packing requires this.
        premise_mask = mask(premise_lengths).to(premise.device)
        hypothesis_mask = mask(hypothesis_lengths).to(premise.device)
        a = self.encode(self.dropout(premise), premise_lengths)
        b = self.encode(self.dropout(hypothesis), hypothesis_lengths)
        similarity = a @ b.transpose(1, 2)
        aligned_a = attend(similarity, b, hypothesis_mask)
        aligned_b = attend(similarity.transpose(1, 2), a, premise_mask)
        pooled = [
            pool(self.compose(self.dropout(self._compared(h, aligned)), lengths), present)
            for h, aligned, lengths, present in (
                (a, aligned_a, premise_lengths, premise_mask),
                (b, aligned_b, hypothesis_lengths, hypothesis_mask),
            )
        ]
        return torch.cat(pooled, dim=1)

    def _compared(self, h: Tensor, aligned: Tensor) -> Tensor:
        return self.compare(self.dropout(torch.cat([h, aligned, h - aligned, h * aligned], dim=2)))


def pool(x: Tensor, present: Tensor) -> Tensor:
    """Return the mean and the maximum over positions with a token: (batch, n, width) -> (batch, 2 * width)."""
    kept = present[:, :, None]
    mean = x.masked_fill(~kept, 0).sum(dim=1) / kept.sum(dim=1)
    return torch.cat([mean, x.masked_fill(~kept, -torch.inf).amax(dim=1)], dim=1)


@spacy.registry.architectures("evidence.PairClassifier.v1")
def pair_classifier(
    tok2vec: Model[list[Doc], list[Floats2d]],
    hidden_width: int,
    dropout: float,
    nO: int | None = None,
) -> Model[list[Doc], Floats2d]:
    """Return a model of label probabilities, (n_docs, nO). It has the paper's baseline, the ESIM of Chen et al. (2017).

    It is simplified: it has no trees, is narrower, and classifies with a Maxout layer instead of tanh. The input of
    `tok2vec` is the whole Doc, so its window includes a few words across the line break.

    Args:
        tok2vec: model of the vectors of tokens.
        hidden_width: width of the ESIM.
        dropout: dropout rate in the ESIM. The rest of the model has `[training] dropout`.
        nO: number of labels; null: `initialize` determines it.
    """
    model: Model[list[Doc], Floats2d] = chain(
        pairs(reduced(tok2vec, hidden_width)),
        PyTorchWrapper(Esim(hidden_width, dropout), convert_inputs=padded),
        Maxout(nO=hidden_width, nP=3, normalize=True, dropout=0.0),
        Softmax(nO=nO),
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def score_nli(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the most probable label of each pair.

    Returns:
        `nli_acc`, the share of pairs with the correct label, and `nli_per_type`, the precision, recall and F1 of each
        label.
    """
    per_type: dict[str, PRFScore] = {}
    right = total = 0
    for example in examples:
        predicted, gold = (
            max(doc.cats, key=doc.cats.__getitem__) for doc in (example.x, example.y)
        )
        right += predicted == gold
        total += 1
        for label in example.y.cats:
            per_type.setdefault(label, PRFScore()).score_set(
                {predicted} & {label}, {gold} & {label}
            )
    return {
        "nli_acc": right / total if total else None,
        "nli_per_type": {label: score.to_dict() for label, score in sorted(per_type.items())},
    }


@spacy.registry.scorers("evidence.nli_scorer.v1")
def make_nli_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of an nli component."""
    return score_nli


if __name__ == "__main__":
    run(convert, __doc__)

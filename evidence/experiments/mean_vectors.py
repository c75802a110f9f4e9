"""Classification of texts by softmax regression on the mean of their ELMo vectors, without any other network.

python -m experiments.mean_vectors corpus/textcat/sst5
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import spacy
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from spacy.language import Language
from spacy.tokens import Doc, DocBin

_DOCS_AT_ONCE = 128
_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Inverse strengths of the L2 regularization to choose from."""


def accuracy(nlp: Language, train: Sequence[Doc], dev: Sequence[Doc], test: Sequence[Doc]) -> float:
    """Return the accuracy on `test` with the regularization that is best on `dev`.

    Args:
        nlp: a pipeline with an elmo. The means of its layers are concatenated.
        train: texts with `cats`. The category with the highest value is the class.
    """

    def labelled(docs: Sequence[Doc]) -> tuple[np.ndarray, list[str]]:
        read = nlp.pipe((doc.copy() for doc in docs), batch_size=_DOCS_AT_ONCE)
        means = [doc._.elmo_layers.mean(axis=1).reshape(-1) for doc in read]
        return np.stack(means), [_label(doc) for doc in docs]

    texts, on_dev = labelled(train), labelled(dev)
    fits = [
        make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000)).fit(*texts)
        for strength in _STRENGTHS
    ]
    return float(max(fits, key=lambda fit: fit.score(*on_dev)).score(*labelled(test)))


def _label(doc: Doc) -> str:
    return max(doc.cats, key=doc.cats.__getitem__)


def main() -> None:
    """Parse the arguments and print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "corpus", metavar="CORPUS", help="start of the names CORPUS-{train,dev,test}.spacy"
    )
    parser.add_argument("--weights", default="en_base_v2")
    args = parser.parse_args()
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": args.weights})
    parts = []
    for part in ("train", "dev", "test"):
        path = Path(f"{args.corpus}-{part}.spacy")
        if not path.is_file():
            raise SystemExit(f"There is no corpus {path}; `spacy project run runs` makes it")
        parts.append(list(DocBin().from_disk(path).get_docs(nlp.vocab)))
    print(f"Accuracy on the test part: {100 * accuracy(nlp, *parts):.1f}")


if __name__ == "__main__":
    main()

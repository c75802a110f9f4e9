"""Bounds for the scores of question answering: the agreement of annotated answers, and a baseline without a network.

python -m experiments.answer_bounds corpus/qa/subjqa-test.spacy
"""

import argparse
import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin
from tasks.pairs import line_break
from tasks.qa.annotation import answer
from tasks.qa.scorer import normal_words, word_f1


def agreement(docs: Iterable[Doc]) -> float | None:
    """Return the mean F1 in percent between all pairs of answers to the same question on the same context; None if no
    question has two answers.

    Args:
        docs: Docs of `tasks.qa.convert`, one for each answer. Docs with the same text have the same question.
    """
    answers = defaultdict(list)
    for doc in docs:
        found = answer(doc)
        assert found is not None
        answers[doc.text].append(found.text)
    pairs = [pair for each in answers.values() for pair in itertools.combinations(each, 2)]
    return 100 * statistics.mean(word_f1(*pair) for pair in pairs) if pairs else None


def nearest_sentence(docs: Iterable[Doc]) -> float:
    """Return the mean F1 in percent if the answer is the sentence with most words of the question."""
    sentencizer = spacy.blank("en").add_pipe("sentencizer")
    scores = []
    for doc in docs:
        found, border = answer(doc), line_break(doc)
        assert found is not None
        asked = Counter(normal_words(doc[:border].text))
        sentences = [sentence.text for sentence in sentencizer(doc[border + 1 :].as_doc()).sents]
        nearest = max(sentences, key=lambda text: (Counter(normal_words(text)) & asked).total())
        scores.append(word_f1(nearest, found.text))
    return 100 * statistics.mean(scores)


def main() -> None:
    """Parse the arguments and print both scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, metavar="CORPUS.spacy")
    path = parser.parse_args().corpus
    if not path.is_file():
        raise SystemExit(f"There is no corpus {path}; `spacy project run runs` makes it")
    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))
    same = agreement(docs)
    print(
        f"Other annotated answers to the same question: F1 {'-' if same is None else f'{same:.1f}'}"
    )
    print(f"Sentence with most words of the question: F1 {nearest_sentence(docs):.1f}")


if __name__ == "__main__":
    main()

"""Convert questions on contexts in JSONL to Docs for the qa configs.

    python -m tasks.qa.convert IN.jsonl OUT.spacy [--without OTHER.jsonl]

A line is {"question": "...", "context": "...", "answers": [{"text": "...", "start": 34}, ...]}, where `start` is a
character offset in the context; other keys are ignored. A question becomes one Doc: the question, a line break, the
context. Its answer is the first one, extended to whole tokens. Questions without an answer are left out. With
--without, questions that another file has for the same context are left out too.
"""

from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..conversion import arguments, read_records, run, write_docs
from .annotation import set_answer


class Question(NamedTuple):
    """A question, its context, and the answer as a range of characters of the context."""

    question: str
    context: str
    answer: tuple[int, int] | None


class Counts(NamedTuple):
    """Numbers of Docs, tokens and extended answers, and of questions that were left out for either reason."""

    docs: int
    tokens: int
    widened: int
    without: int
    elsewhere: int


def read_jsonl(path: Path) -> list[Question]:
    """Return the questions of a file.

    Raises:
        ValueError: a line is invalid, or there is no question. The message names the file and the line.
    """
    return read_records(
        path, _parsed, "question", '{"question": ..., "context": ..., "answers": [...]}'
    )


def _parsed(record: Any) -> Question:
    try:
        # All whitespace becomes single spaces, so that the first line break of the Doc is that after the question.
        question = " ".join(record["question"].split())
        context = record["context"]
        answers = [(each["text"], each["start"]) for each in record["answers"]]
        blank = not question or not context.strip()
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f'expected {{"question": "...", "context": "...", "answers": [{{"text": "...", "start": ...}}]}} '
            f"({type(error).__name__}: {error})"
        ) from error
    if blank:
        raise ValueError(
            f"the question is {question!r} and the context {context[:60]!r}, but neither may be empty"
        )
    for text, start in answers:
        if not text or context[start : start + len(text)] != text:
            raise ValueError(
                f"the answer is {text!r}, but the context has "
                f"{context[start : start + len(text)]!r} at character {start}"
            )
    return Question(
        question, context, (answers[0][1], answers[0][1] + len(answers[0][0])) if answers else None
    )


def make_doc(nlp: Language, asked: Question) -> tuple[Doc, bool]:
    """Return the Doc of an answered question, and True if the answer was extended to whole tokens."""
    doc = nlp.make_doc(f"{asked.question}\n{asked.context}")
    start, end = (len(asked.question) + 1 + offset for offset in asked.answer)
    span = doc.char_span(start, end, alignment_mode="expand")
    set_answer(doc, span.start, span.end)
    return doc, (span.start_char, span.end_char) != (start, end)


def convert(path: Path, out: Path, *, other: Path | None = None, lang: str = "en") -> Counts:
    """Convert one file and return the counts.

    Args:
        path: JSONL file of labelled questions.
        out: `.spacy` file to write.
        other: another JSONL file. Questions that it has for the same context are left out, even if it has no answer.
        lang: language of the tokenizer.
    """
    questions = read_jsonl(path)
    known = set() if other is None else {each[:2] for each in read_jsonl(other)}
    answered = [each for each in questions if each.answer]
    nlp = spacy.blank(lang)
    made = [make_doc(nlp, each) for each in answered if each[:2] not in known]
    write_docs([doc for doc, _ in made], out)
    return Counts(
        docs=len(made),
        tokens=sum(len(doc) for doc, _ in made),
        widened=sum(widened for _, widened in made),
        without=len(questions) - len(answered),
        elsewhere=len(answered) - len(made),
    )


def main() -> None:
    """Convert a file and print the counts."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--without", dest="other", type=Path, metavar="OTHER.jsonl",
        help="leave out the questions of this file",
    )  # fmt: skip
    run(
        convert,
        parser,
        "{out}: {docs} Docs, {tokens} tokens, {widened} answers extended to whole tokens; left out: "
        "{without} questions without an answer, {elsewhere} that are in the other file",
    )


if __name__ == "__main__":
    main()

"""Turn questions on contexts in JSONL into the binary Docs that the qa configs read.

    python scripts/convert_qa.py IN.jsonl OUT.spacy

A line is {"question": "...", "context": "...", "answers": [{"text": "...", "start": 34}, ...]} where `start` counts
characters of the context; other keys are left out. A question becomes one Doc: the question, a line break, the context.
Its answer is the first one, widened to whole tokens. Questions without an answer are left out.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

# A script sees its own folder only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tasks.qa_annotation import set_answer  # noqa: E402


class Question(NamedTuple):
    """A question, its context, and the characters of that from which, and up to which, the answer stands."""

    question: str
    context: str
    answer: tuple[int, int] | None


class Counts(NamedTuple):
    """What a conversion wrote, and how many questions it left out."""

    docs: int
    tokens: int
    widened: int
    without: int


def read_jsonl(path: Path) -> Iterator[Question]:
    """The questions of a file. Empty lines are passed over.

    Raises:
        ValueError: a line that cannot be right, or no question at all; it names file and line.
    """
    empty = True
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parsed(line, f"{path}:{number}")
                    empty = False
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error}); save it as UTF-8 first") from error
    if empty:
        raise ValueError(
            f"{path}: no question in it; expected lines of "
            '{"question": ..., "context": ..., "answers": [...]}'
        )


def _parsed(line: str, where: str) -> Question:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: not JSON ({error}): {line.strip()[:80]!r}") from error
    try:
        # One space for whitespace of any kind: the first line break of the Doc is that behind the question.
        question = " ".join(record["question"].split())
        context = record["context"]
        answers = [(each["text"], each["start"]) for each in record["answers"]]
        blank = not question or not context.strip()
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f'{where}: expected {{"question": "...", "context": "...", "answers": [{{"text": "...", "start": ...}}]}} '
            f"({type(error).__name__}: {error})"
        ) from error
    if blank:
        raise ValueError(
            f"{where}: the question is {question!r} on the context {context[:60]!r}; neither may be empty"
        )
    for text, start in answers:
        if not text or context[start : start + len(text)] != text:
            raise ValueError(
                f"{where}: the answer is {text!r}, but from character {start} the context says "
                f"{context[start : start + len(text)]!r}"
            )
    return Question(
        question, context, (answers[0][1], answers[0][1] + len(answers[0][0])) if answers else None
    )


def make_doc(nlp: Language, asked: Question) -> tuple[Doc, bool]:
    """The Doc of a question that has an answer, and whether that had to be widened to whole tokens."""
    doc = nlp.make_doc(f"{asked.question}\n{asked.context}")
    start, end = (len(asked.question) + 1 + place for place in asked.answer)
    span = doc.char_span(start, end, alignment_mode="expand")
    set_answer(doc, span.start, span.end)
    return doc, (span.start_char, span.end_char) != (start, end)


def convert(path: Path, out: Path, *, lang: str = "en") -> Counts:
    """Convert one file, tokenized by the blank pipeline of a language, and say what was written."""
    questions = list(read_jsonl(path))
    nlp = spacy.blank(lang)
    made = [make_doc(nlp, each) for each in questions if each.answer]
    out.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=[doc for doc, _ in made]).to_disk(out)
    return Counts(
        docs=len(made),
        tokens=sum(len(doc) for doc, _ in made),
        widened=sum(widened for _, widened in made),
        without=len(questions) - len(made),
    )


def main() -> None:
    """Parse, convert, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="IN.jsonl")
    parser.add_argument("out", type=Path, metavar="OUT.spacy")
    parser.add_argument("--lang", default="en", help="language whose tokenizer splits the text")
    args = parser.parse_args()
    try:
        counts = convert(args.path, args.out, lang=args.lang)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(
        f"{args.out}: {counts.docs} Docs, {counts.tokens} tokens, {counts.widened} answers widened to whole tokens; "
        f"{counts.without} questions without an answer left out"
    )


if __name__ == "__main__":
    main()

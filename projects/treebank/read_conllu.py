"""Read CoNLL-U strictly. What is wrong is named with file, line and `sent_id`; what is harmless is dropped and counted.

https://universaldependencies.org/format.html
"""

import lzma
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

COLUMNS = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(10)
PARTS_OF_SPEECH = set(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X _".split()
)


@dataclass
class Sentence:
    """A sentence without empty nodes (ID "5.1"). The text is in Unicode's normal form NFC."""

    comments: list[str]
    rows: list[list[str]]
    """The ten columns of each word, and of each multiword token (ID "3-4") before its words."""

    @property
    def words(self) -> list[list[str]]:
        """The rows without those of multiword tokens."""
        return [row for row in self.rows if row[ID].isdigit()]

    @property
    def is_tree(self) -> bool:
        """True if all words have a head and a label."""
        return not any(lacks(row, HEAD) for row in self.words)

    @property
    def starts_paragraph(self) -> bool:
        """True if a comment says that a document or a paragraph starts here."""
        return any(re.match(r"#\s*new(doc|par)\b", comment) for comment in self.comments)

    @property
    def has_text(self) -> bool:
        """True if the sentence says how its text is spaced."""
        return _text(self.comments) is not None or not all(map(_space_follows, self.rows))

    @property
    def text(self) -> str:
        """The text: the comment `# text`, or else the tokens."""
        text = _text(self.comments)
        return self.tokens_text() if text is None else text

    @property
    def tokens(self) -> list[tuple[list[str], list[str]]]:
        """The row of each token, and the forms of its words."""
        tokens, forms, end = [], [], 0
        for row in self.rows:
            if "-" in row[ID]:
                forms, end = [], int(row[ID].split("-")[1])
                tokens.append((row, forms))
            elif int(row[ID]) <= end:
                forms.append(row[FORM])
            else:
                tokens.append((row, [row[FORM]]))
        return tokens

    @property
    def spaces(self) -> list[bool]:
        """For each word, whether a space follows. Words of a multiword token are apart unless they are parts of it."""
        return [
            space
            for row, forms in self.tokens
            for space in [*[row[FORM] != "".join(forms)] * (len(forms) - 1), _space_follows(row)]
        ]

    def tokens_text(self) -> str:
        """Return the tokens with the spaces between them."""
        return "".join(row[FORM] + " " * _space_follows(row) for row, _ in self.tokens).strip()

    def __str__(self) -> str:
        """The lines in CoNLL-U, with the empty line after a sentence."""
        return "\n".join([*self.comments, *map("\t".join, self.rows)]) + "\n\n"


def lacks(row: list[str], column: int) -> bool:
    """Return True if a word has no annotation in a column. A word without a label has no head, either."""
    if column == LEMMA:
        return row[LEMMA] == "_" != row[FORM]
    if column in (HEAD, DEPREL):
        return "_" in (row[HEAD], row[DEPREL])
    return row[column] == "_"


def is_annotated(sentences: Iterable[Sentence], column: int) -> bool:
    """Return True if a column has something to learn: values that differ, in a twentieth of the words or more. A few
    treebanks have lemmas of punctuation only, or features of single words."""
    words = [word for sentence in sentences for word in sentence.words if word[UPOS] != "PUNCT"]
    values = [word[column] for word in words if not lacks(word, column)]
    return len(set(values)) > 1 and len(values) >= len(words) / 20


def read_conllu(path: Path) -> tuple[list[Sentence], Counter[str], list[str]]:
    """Read a file, which can be compressed as .xz.

    Returns:
        the sentences; how often something harmless was dropped, by its name; what is wrong, one message a sentence.
    """
    sentences, dropped, problems = [], Counter[str](), []
    with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
        for block in _blocks(file, dropped):
            try:
                sentence = _sentence(block, dropped)
            except _Malformed as error:
                number, problem = error.args
                names = [re.match(rb"#\s*sent_id\s*=\s*(.*)", line) for _, line in block]
                known = [f", sentence {name[1].decode(errors='replace')}" for name in names if name]
                problems.append(f"{path}, line {number}{known[-1] if known else ''}: {problem}")
                continue
            if sentence.rows:
                sentences.append(sentence)
            else:
                dropped["blocks without words"] += 1
    return sentences, dropped, problems


class _Malformed(Exception):
    """Number of a line, and what is wrong with it."""


def _blocks(file: Iterable[bytes], dropped: Counter[str]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the lines between empty lines, with their numbers."""
    block: list[tuple[int, bytes]] = []
    for number, line in enumerate(file, 1):
        line = line.rstrip(b"\r\n")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            block.append((number, line))
            continue
        if line:
            dropped["spaces in empty lines"] += 1
        if block:
            yield block
        block = []
    if block:
        yield block


def _sentence(block: list[tuple[int, bytes]], dropped: Counter[str]) -> Sentence:
    sentence, numbers, end = Sentence([], []), [], 0
    for number, line in block:
        try:
            text = unicodedata.normalize("NFC", line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise _Malformed(number, f"{line[error.start : error.end]!r} is not UTF-8") from error
        if text.startswith("#"):
            if sentence.rows:
                dropped["comments between words"] += 1
            else:
                sentence.comments.append(text)
            continue
        row, following = text.split("\t"), len(numbers) + 1
        if len(row) != len(COLUMNS):
            raise _Malformed(number, f"{len(row)} columns, not 10: {text[:60]!r}")
        empty = [name for name, value in zip(COLUMNS, row, strict=True) if not value.strip()]
        if empty:
            raise _Malformed(number, f"the column {empty[0]} is empty. Write _ for no value")
        span = re.fullmatch(r"(\d+)-(\d+)", row[ID])
        if re.fullmatch(r"\d+\.\d+", row[ID]):
            continue  # an empty node of the enhanced graph
        if span and end < following == int(span[1]) < int(span[2]):
            end = int(span[2])
        elif row[ID] == str(following):
            numbers.append(number)
            _check_word(number, row)
        elif row[ID] == "1":
            raise _Malformed(number, "a new sentence starts without an empty line before it")
        else:
            raise _Malformed(number, f"the ID is {row[ID]}, not {following}")
        row[DEPS] = "_"  # the enhanced graph
        sentence.rows.append(row)
    if end > len(numbers):
        raise _Malformed(block[-1][0], f"the multiword token that ends with word {end} is cut off")
    _check_tree(numbers, sentence.words)
    _drop_wrong_text(sentence, dropped)
    return sentence


def _check_word(number: int, row: list[str]) -> None:
    if row[UPOS] not in PARTS_OF_SPEECH:
        raise _Malformed(number, f"UPOS {row[UPOS]!r} is no part of speech of UD")
    if row[FEATS] != "_" and not re.fullmatch(r"([^=|]+=[^=|]+)(\|[^=|]+=[^=|]+)*", row[FEATS]):
        raise _Malformed(number, f"FEATS {row[FEATS]!r} is not of the form Name=Value|Name=Value")
    if row[HEAD] != "_" and not row[HEAD].isdecimal():
        raise _Malformed(number, f"HEAD {row[HEAD]!r} is no number")


def _check_tree(numbers: list[int], words: list[list[str]]) -> None:
    """Check that the words are one tree, as far as they have heads."""
    heads = {int(row[ID]): int(row[HEAD]) for row in words if not lacks(row, HEAD)}
    roots = [word for word, head in heads.items() if head == 0]
    for word, head in heads.items():
        if head > len(words):
            problem = f"HEAD {head} of word {word} is outside the sentence of {len(words)} words"
            raise _Malformed(numbers[word - 1], problem)
        above, path = head, [word]
        while above in heads and above not in path:
            path.append(above)
            above = heads[above]
        if above == word:
            raise _Malformed(numbers[word - 1], f"a cycle: the words {', '.join(map(str, path))}")
    if len(roots) > 1:
        problem = f"{len(roots)} roots: the words {', '.join(map(str, roots))}"
        raise _Malformed(numbers[roots[1] - 1], problem)


def _drop_wrong_text(sentence: Sentence, dropped: Counter[str]) -> None:
    """Drop the comment `# text` if it has other characters than the tokens."""
    text = _text(sentence.comments)
    if text is not None and "".join(text.split()) != "".join(sentence.tokens_text().split()):
        dropped["texts (# text) that differ from their words"] += 1
        sentence.comments = [line for line in sentence.comments if _text([line]) is None]


def _space_follows(row: list[str]) -> bool:
    return "SpaceAfter=No" not in row[MISC].split("|")


def _text(comments: Iterable[str]) -> str | None:
    found = (re.match(r"#\s*text\s*=\s*(.*)", comment) for comment in comments)
    return next((match[1].strip() for match in found if match), None)

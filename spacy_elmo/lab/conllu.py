"""CoNLL-U, the format of Universal Dependencies: a reader of sentences, and a writer of Docs.

The tokens of a Doc are the words of CoNLL-U. A Doc with multiword tokens remembers its text (`text/source_text.py`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from ..text.reading import lines
from ..text.source_text import set_source

ID, FORM, UPOS, MISC = 0, 1, 3, 9
"""Indices of columns: number in the sentence, word, universal part-of-speech tag, other attributes."""


class Sentence(NamedTuple):
    """A sentence of a CoNLL-U file, without empty nodes (ID "5.1")."""

    comments: list[str]
    """The lines that start with "#"."""
    words: list[list[str]]
    """The ten columns of each word."""
    multiword: dict[int, tuple[int, list[str]]]
    """{index of the first word: number of words, and the ten columns} of each multiword token."""

    def __len__(self) -> int:
        """Number of characters."""
        return sum(len(columns[FORM]) for columns in self.words)


def read_conllu(file: Path) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL-U file, which can be compressed as .gz, .xz or .zst. A ValueError about a line
    names the file, the line and the `sent_id`."""
    sentence, end = Sentence([], [], {}), 0
    rows = (line.rstrip("\r\n") for _, line in lines(file))
    for number, row in enumerate(itertools.chain(rows, [""]), 1):
        columns, following = row.split("\t"), len(sentence.words) + 1
        is_complete = len(columns) == 10 and columns[FORM].strip() != ""
        span = re.fullmatch(r"(\d+)-(\d+)", columns[ID])
        if row.startswith("#"):
            sentence.comments.append(row)
        elif not row.strip() and end < following:
            if sentence.words:
                yield sentence
                sentence, end = Sentence([], [], {}), 0
        elif is_complete and columns[ID] == str(following):
            sentence.words.append(columns)
        elif is_complete and span and end < following == int(span[1]) < int(span[2]):
            end = int(span[2])
            sentence.multiword[following - 1] = end - following + 1, columns
        elif not (is_complete and re.fullmatch(r"\d+\.\d+", columns[ID])):
            ids = [comment[2:] for comment in sentence.comments if _key(comment) == "sent_id"]
            raise ValueError(
                f"{file}, line {number}{''.join(f' ({sent_id})' for sent_id in ids)} is not CoNLL-U: expected the ID"
                f" {following}, a word and eight more columns, separated by tabs, but got {row!r:.100}"
            )


def make_doc(vocab: Vocab, sentence: Sentence) -> Doc:
    """Return a Doc with the words of a sentence in Unicode's normal form NFC, and no annotation but its start."""
    source = ""
    offsets: list[tuple[int, int]] = []
    spaces: list[bool] = []
    words = [normalize("NFC", columns[FORM]) for columns in sentence.words]
    while (first := len(offsets)) < len(words):
        size, columns = sentence.multiword.get(first, (1, sentence.words[first]))
        surface = normalize("NFC", columns[FORM])
        space = "SpaceAfter=No" not in columns[MISC].split("|")
        offsets += [(len(source), len(source) + len(surface))] * size
        apart = "".join(words[first : first + size]) != surface  # not in "don't" of "do" and "n't"
        spaces += [apart] * (size - 1) + [space]
        source += surface + " " * space
    doc = Doc(vocab, words, spaces, sent_starts=[True, *[False] * (len(words) - 1)])
    set_source(doc, source, offsets)
    return doc


def with_metadata(comments: Iterable[str], sent_id: str, text: str) -> list[str]:
    """Return the comments of a sentence, with this text, and with this `sent_id` if they have none."""
    keys = set(map(_key, comments))
    new = [row for row in (f"# sent_id = {sent_id}", "# text =") if _key(row) not in keys]
    return [f"# text = {text}" if _key(row) == "text" else row for row in (*comments, *new)]


def _key(comment: str) -> str:
    return comment[1:].partition("=")[0].strip()


def conllu_sentences(
    doc: Doc, sentences: Iterable[Span], *, space_after: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yield the text of each sentence of a Doc, and the lines of its words and multiword tokens.

    Whitespace tokens are left out. In the tree, the words below them depend on the word above them. Missing annotation
    is "_". Names are attributes in MISC: `ner=B-PER` for the first word of a name, `ner=I-PER` for the others.

    Args:
        doc: a Doc with annotation. Its labels are written as they are, except `root` for the root of each sentence.
        sentences: its sentences.
        space_after: True if whitespace or the end of the text follows the Doc.
    """
    source, offsets = doc._.source_text, doc._.source_offsets
    # After a merge, the offsets are those of other tokens.
    if source is None or len(offsets) != len(doc):
        source, offsets = doc.text, np.array([(token.idx, token.idx + len(token)) for token in doc])
    spans = [(start, end) for start, end in offsets.tolist()]
    end = len(source) + space_after
    spans_of_words = [spans[token.i] for token in doc if not token.is_space]
    pairs = itertools.pairwise([*spans_of_words, (end, end)])
    before_space = {span for span, following in pairs if span[1] < following[0]}
    for sentence in sentences:
        words = [token for token in sentence if not token.is_space]
        numbered = list(zip(itertools.count(1), words, _trees(words)))
        text, rows = "", []
        for span, group in itertools.groupby(numbered, lambda item: spans[item[1].i]):
            members = list(group)
            surface, is_multiword = _value(source[slice(*span)]), len(members) > 1
            text += surface + " " * (span in before_space)
            space = [] if span in before_space else ["SpaceAfter=No"]
            if is_multiword:
                numbers = f"{members[0][0]}-{members[-1][0]}"
                rows.append([numbers, surface, *"_" * 7, _joined(space)])
            for number, word, tree in members:
                form = _value(word.text) if is_multiword else surface
                name = [f"ner={word.ent_iob_}-{word.ent_type_}"] if word.ent_type_ else []
                misc = _joined(name + ([] if is_multiword else space))
                rows.append([str(number), form, *_word(word), *tree, "_", misc])
        if rows:
            yield text.rstrip(), list(map("\t".join, rows))


def _value(text: str) -> str:
    return " ".join(text.split()) or "_"


def _joined(attributes: list[str]) -> str:
    return "|".join(attributes) or "_"


def _word(word: Token) -> list[str]:
    """Return the columns LEMMA, UPOS, XPOS and FEATS of a word."""
    features = []
    for name, values in word.morph.to_dict().items():
        features.append(f"{name}={','.join(sorted(values.split(','), key=str.lower))}")
    # spaCy sorts capitals before small letters.
    features.sort(key=str.lower)
    return [*map(_value, (word.lemma_, word.pos_, word.tag_)), _joined(features)]


def _trees(words: list[Token]) -> list[tuple[str, str]]:
    """Return the columns HEAD and DEPREL of the words of a sentence, which become one tree."""
    if not words or not words[0].doc.has_annotation("DEP"):
        return [("_", "_")] * len(words)
    numbers = {word.i: number for number, word in enumerate(words, 1)}
    heads = [numbers.get(_head(word)) for word in words]
    # The first root is the top; else the first word below a root that is whitespace.
    tops = [number for number, head in enumerate(heads, 1) if head is None]
    top = min(tops, key=lambda number: words[number - 1].dep_ != "ROOT")
    columns = []
    for number, (word, head) in enumerate(zip(words, heads, strict=True), 1):
        label = "parataxis" if word.dep_ == "ROOT" else word.dep_ or "dep"
        columns.append(("0", "root") if number == top else (str(head or top), label))
    return columns


def _head(word: Token) -> int:
    """Return the index of the closest word above a word, or -1 for a root."""
    head = word.head
    while head.is_space and head.head.i != head.i:
        head = head.head
    return -1 if head.i == word.i else head.i

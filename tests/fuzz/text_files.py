"""Text files of every kind: plain, compressed, records, DocBins, treebanks."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.lab.corpora.documents import read_documents
from spacy_elmo.text.documents import documents
from tests.fuzz.bytes_and_values import Damage, damaged_bytes, damaged_json, damaged_text
from tests.fuzz.containers import damaged_docbin, packed
from tests.fuzz.target import Target

_TEXT = "The cat sat.\nIt rained!\n\nA naïve 鳥 on the bank \t of the river.\n" * 3
_RECORDS = [{"text": "The cat sat.\nIt rained."}, {"tokens": ["a", "naïve", "鳥"]}, {"text": ""}]
_TREEBANK = "# text = It rains\n" + "".join(
    f"{number}\t{word}\t_\tX\tX\t_\t0\troot\t_\t_\n"
    for number, word in (("1-2", "Itrains"), ("1", "It"), ("2", "rains"))
)


def _load(folder: Path) -> object:
    """Read a file in both ways: as documents for pretraining, and as documents of a corpus."""
    files = sorted(folder.iterdir())
    read = [] if files[0].suffix != ".conllu" else read_documents(str(files[0]))
    return [*documents(files, "strict")], [document.text for document in read]


def _target(name: str, content: bytes, damage: Damage, *, digests: bool = False) -> Target:
    def make(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return Target(name, make, _load, {name: damage}, digests=digests)


def _repacked(suffix: str, damage: Damage, content: bytes) -> Damage:
    """Return a function that damages the bytes before or after their compression."""

    def damaged(random: Random, data: bytes) -> bytes:
        kind = random.randrange(10)
        if kind == 0:
            return packed(suffix, b"a " * random.choice((1, 1 << 20)))
        if kind < 4:
            return packed(suffix, damage(random, content))
        return damaged_bytes(random, data)

    return damaged


def _docbin() -> bytes:
    vocab = spacy.blank("en").vocab
    docs = [Doc(vocab, words=words) for words in (["The", "cat", "sat", "."], ["naïve", "鳥"])]
    return DocBin(docs=docs, store_user_data=True).to_bytes()


_LINES = "".join(json.dumps(record) + "\n" for record in _RECORDS).encode()


def _damaged_records(random: Random, data: bytes) -> bytes:
    lines = data.splitlines()
    place = random.randrange(len(lines))
    damage: Callable[[Random, bytes], bytes] = random.choice((damaged_json, damaged_text))
    lines[place] = damage(random, lines[place])
    return b"\n".join(lines)


TARGETS = (
    _target("a.txt", _TEXT.encode(), damaged_text),
    _target("a.jsonl", _LINES, _damaged_records),
    _target("a.spacy", _docbin(), damaged_docbin),
    _target("a.conllu", _TREEBANK.encode(), damaged_text),
    # These have checksums: bytes that are damaged after packing must not become other text. Text that is damaged
    # before is other text.
    *(
        _target(f"a.txt{suffix}", packed(suffix, _TEXT.encode()), damaged_bytes, digests=True)
        for suffix in (".gz", ".xz", ".zst")
    ),
    *(
        _target(
            f"a.jsonl{suffix}", packed(suffix, _LINES), _repacked(suffix, _damaged_records, _LINES)
        )
        for suffix in (".gz", ".xz", ".zst")
    ),
)

"""Labelled data sets as `.spacy` files, and raw text for static vectors. Each is made once.

A biLM respells words by the rule in its `[model]`, so that `via` and `uia` are one word. Hash embeddings and floret
have no such rule. So labelled data and raw text are respelled in advance, and the comparison shows only differences
between models.
"""

from __future__ import annotations

import math
import random
import runpy
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from spacy.attrs import ORTH
from spacy.strings import StringStore
from spacy.tokens import DocBin

from spacy_elmo.bilm.spelling import AS_GIVEN, Spelling
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import find_weights

from .ocr_noise import corrupt
from .plan import Corpus, Plan

FIELDS = ("tokens", "spaces", "flags", "cats", "span_groups", "user_data")
"""Fields of a DocBin that have an entry for each Doc."""
COMPARE = Path(__file__).parents[2] / "projects" / "compare"


def spelling_of(weights: str | None) -> Spelling:
    """Return the spelling rule of a biLM; None has a rule that changes no word."""
    return AS_GIVEN if weights is None else Weights.load(find_weights(weights)).config.spelling


def source(plan: Plan, corpus: Corpus, data_folder: Path) -> Path:
    """Return the labelled file that a corpus is made from."""
    return data_folder / plan.sources[f"{corpus.task}/{corpus.data}"].format(part=corpus.part)


def make(plan: Plan, corpus: Corpus, data_folder: Path, spelling: Spelling = AS_GIVEN) -> None:
    """Write the file of a corpus, if it does not exist.

    Args:
        spelling: the rule that respells the words. Artificial errors are made first, so that the rule changes them
            equally for all variants.
    """
    if corpus.path.exists():
        return
    whole = corpus._replace(limit=None, share=100)
    if corpus != whole:
        make(plan, whole, data_folder, spelling)
        docs = cut(DocBin().from_disk(whole.path), corpus.limit, corpus.share)
    else:
        with TemporaryDirectory() as folder:
            paths = {
                "source": source(plan, corpus, data_folder),
                "out": Path(folder, "out.spacy"),
                "folder": folder,
                "dev": source(plan, corpus._replace(part="dev"), data_folder),
            }
            name = corpus.task
            if f"{name}/{corpus.data}/{corpus.part}" in plan.converters:
                name = f"{name}/{corpus.data}/{corpus.part}"
            command = [argument.format_map(paths) for argument in plan.converters[name]]
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
            (made,) = Path(folder).glob("*.spacy")  # Converters choose the name of their output.
            docs = DocBin(store_user_data=True).from_disk(made)
        if corpus.noise:
            docs = corrupt(docs, corpus.noise / 100, seed=0)
        if spelling:
            docs = respell(docs, spelling)
    corpus.path.parent.mkdir(parents=True, exist_ok=True)
    docs.to_disk(corpus.path)


def cut(docs: DocBin, limit: int | None, share: int, *, seed: int = 0) -> DocBin:
    """Return `share` percent of the first `limit` of the shuffled Docs. A smaller cut is a subset of a larger one.

    The Docs are taken from the serialized form, so no annotation can be lost.
    """
    order = list(range(len(docs)))
    random.Random(seed).shuffle(order)
    first = order[:limit]
    chosen = first[: math.ceil(len(first) * share / 100)]
    # A DocBin from disk does not store whether it was written with user data.
    part = DocBin(store_user_data=any(data is not None for data in docs.user_data))
    part.attrs, part.strings = docs.attrs, docs.strings
    for field in FIELDS:
        values = getattr(docs, field)
        setattr(part, field, [values[number] for number in chosen])
    return part


def spelled(words: Sequence[str], spelling: Spelling) -> Sequence[str]:
    """Return the words as the rule spells them, with a letter and its accents as one code point.

    Affixes of hash embeddings and word pieces of floret have a fixed number of code points, so after a rule with NFD
    they would have fewer letters. The biLM applies its rule again, which separates letters and accents.
    """
    if not spelling:
        return words
    return [unicodedata.normalize("NFC", word) for word in spelling(words)]


def respell(docs: DocBin, spelling: Spelling) -> DocBin:
    """Respell the words of Docs, and return the Docs with their annotation.

    Their spaces are marked as unknown, so that no tokenizer splits the words of a treebank again.
    """
    strings = StringStore(docs.strings)
    column = docs.attrs.index(ORTH)
    # Arrays from disk are read-only.
    docs.tokens = [tokens.copy() for tokens in docs.tokens]
    for tokens, flags in zip(docs.tokens, docs.flags, strict=True):
        words = spelled([strings[int(word)] for word in tokens[:, column]], spelling)
        tokens[:, column] = [strings.add(word) for word in words]
        flags["has_unknown_spaces"] = True
    docs.strings.update(strings)
    return docs


def make_vectors(
    out: Path, raw_text: str, words: int | None, lang: str, spelling: Spelling
) -> None:
    """Train floret on raw text and write its vectors for spaCy, if they do not exist.

    Args:
        raw_text: glob pattern of the text.
        words: about how many words of the text are used; None: all.
    """
    if out.exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    text, count = out.with_suffix(".txt"), 0
    with text.open("w", encoding="utf8", newline="\n") as file:
        for line in runpy.run_path(str(COMPARE / "tokenize_text.py"))["tokenized"](raw_text, lang):
            if words is not None and count >= words:
                break
            tokens = spelled(line.split(" "), spelling)
            count += len(tokens)
            file.write(" ".join(tokens) + "\n")
    program = str(COMPARE / "floret_vectors.py")
    subprocess.run([sys.executable, program, str(text), str(out), "--lang", lang], check=True)
    text.unlink()

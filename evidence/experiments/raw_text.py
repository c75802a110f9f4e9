"""Raw text for the rivals of ELMo: the input files of floret and `spacy pretrain`.

raw.txt has the lines of the text with spaces between tokens. raw.jsonl has the first of these lines, or all, for
`spacy.JsonlCorpus.v1`. Both are respelled like the input of a biLM.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import spacy
from spacy.language import Language

from spacy_elmo.bilm.words.spelling import AS_GIVEN, Spelling
from spacy_elmo.files import atomic_file
from spacy_elmo.text.documents import documents
from spacy_elmo.text.files import text_files

from .spelling import spelled


def tokenized(nlp: Language, source: str, words: int | None) -> Iterator[list[str]]:
    """Yield the tokens of each line of raw text, until there are `words` tokens.

    Args:
        source: a file, a folder or a glob pattern, as `paths.raw_text` of `spacy elmo pretrain`.
        words: number of tokens; None: all.

    Raises:
        OSError, ValueError: the text does not exist or cannot be read.
    """
    count = 0
    for document in documents(text_files(source), "strict"):
        for line in [" ".join(document.parts)] if document.is_tokenized else document.parts:
            if words is not None and count >= words:
                return
            tokens = [token.text for token in nlp.make_doc(line) if not token.is_space]
            count += len(tokens)
            yield tokens


def write(
    source: str,
    out: Path,
    *,
    words: int | None = None,
    jsonl_words: int | None = None,
    lang: str = "en",
    spelling: Spelling = AS_GIVEN,
) -> int:
    """Write both files to the folder `out`, and return the number of words in the first.

    Args:
        words: largest number of words in raw.txt; None: all.
        jsonl_words: largest number of words in raw.jsonl; None: all.
        lang: language of the tokenizer.
        spelling: the rule that respells the words of both files.

    Raises:
        OSError, ValueError: the text does not exist or cannot be read.
    """
    count = 0
    out.mkdir(parents=True, exist_ok=True)
    with atomic_file(out / "raw.txt") as text_file, atomic_file(out / "raw.jsonl") as jsonl_file:
        with _opened(text_file) as text, _opened(jsonl_file) as jsonl:
            for tokens in tokenized(spacy.blank(lang), source, words):
                line = spelled(tokens, spelling)
                text.write(" ".join(line) + "\n")
                if jsonl_words is None or count < jsonl_words:
                    jsonl.write(json.dumps({"text": " ".join(line)}, ensure_ascii=False) + "\n")
                count += len(line)
        if count == 0:
            raise ValueError(f"{source} has no text")
    return count


def _opened(path: Path) -> TextIO:
    return path.open("w", encoding="utf8", newline="\n")

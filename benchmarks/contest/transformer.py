"""A BERT with random weights for spacy-transformers, created locally without any download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import spacy
from spacy.language import Language
from transformers import BertConfig, BertModel, BertTokenizerFast

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_transformer(folder: Path, layers: int, words: Iterable[str]) -> None:
    """Write a random BERT of the base size with `layers` layers: BERT-base has 12, a distilled one 6.

    Its vocabulary contains the words themselves, which is its best case: each is a single word piece.

    Args:
        folder: a new folder for its files.
        words: the words of the text. Those beyond the 30,522 pieces of BERT-base become `[UNK]`, which costs the same.
    """
    config = BertConfig(num_hidden_layers=layers)
    pieces = [*_SPECIAL, *sorted(set(words))][: config.vocab_size]
    folder.mkdir(parents=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(pieces), "utf8")
    BertTokenizerFast(vocab_file=str(vocabulary), do_lower_case=False).save_pretrained(folder)
    BertModel(config).eval().save_pretrained(folder)


def transformer_pipeline(folder: Path) -> Language:
    """Create a pipeline of this transformer alone; each Doc is one sequence."""
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(folder),
        "get_spans": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    return nlp

"""A BERT with random weights for spacy-transformers, which is created without a download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import spacy
from spacy.language import Language
from transformers import BertConfig, BertModel, BertTokenizerFast

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_transformer(folder: Path, layers: int, words: Iterable[str]) -> None:
    """Write a random BERT of the base size with `layers` layers. BERT-base has 12, a distilled BERT has 6.

    Its vocabulary contains the words of the text. This is its best case, because each word is a single word piece.

    Args:
        folder: a new folder for its files.
        words: the words of the text. If there are more than the 30,522 word pieces of BERT-base, the others become
            `[UNK]`, which takes the same time.
    """
    config = BertConfig(num_hidden_layers=layers)
    pieces = [*_SPECIAL, *sorted(set(words))][: config.vocab_size]
    folder.mkdir(parents=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(pieces), "utf8")
    BertTokenizerFast(vocab_file=str(vocabulary), do_lower_case=False).save_pretrained(folder)
    BertModel(config).eval().save_pretrained(folder)


def transformer_pipeline(folder: Path) -> Language:
    """Create a pipeline with only this transformer. Each Doc is one sequence."""
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(folder),
        "get_spans": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    }
    nlp.add_pipe("transformer", config={"model": model})
    nlp.initialize()
    return nlp

"""Creation of a word index for the commands `search index` and `explore`. A word index contains vectors of
the occurrences of each word in a corpus."""

from __future__ import annotations

from pathlib import Path

from .pipelines import load_pipeline
from .progress import reading_bar


def make_word_index(
    folder: Path, source: str, text: str, *, lang: str | None, tokenized: bool, quiet: bool
) -> int:
    """Write a word index of the corpus `text` to a folder, with the pipeline or weights `source`. Show a
    progress bar, and return the number of tokens."""
    from ..lab.contexts.write_occurrences import write_occurrences
    from ..lab.corpora.documents import corpus_files
    from ..lab.corpora.pipelines import source_of

    nlp = load_pipeline(source, lang=lang, tokenized=tokenized)
    about = source_of(nlp, source, lang=lang, tokenized=tokenized)
    tokens = 0
    # The text is read twice.
    with reading_bar(lambda: 2 * corpus_files(text), quiet=quiet) as bar:
        for added in write_occurrences(folder, nlp, text, about=about, tokenized=tokenized):
            tokens += added
            bar.set_postfix_str(f"{tokens:,} tokens")
    return tokens

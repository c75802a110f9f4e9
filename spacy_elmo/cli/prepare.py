"""`python -m spacy elmo prepare`: text becomes a prepared corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from wasabi import msg

from .errors import one_message
from .settings import read_settings

if TYPE_CHECKING:
    from ..pretrain.config import PretrainConfig
    from ..pretrain.corpus import Corpus


def prepare_cli(
    ctx: typer.Context,
    config_path: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Pretraining config (.cfg)")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to make")],
) -> None:
    """Tokenize raw text once, for any number of pretraining runs (their paths.corpus)."""
    with one_message():
        config = read_settings(config_path, ctx.args, training=False)
        from ..pretrain.prepare import prepare
        from ..pretrain.text import text_files

        for source in (config.paths.raw_text, config.paths.dev_text):
            if source is not None:
                msg.info(f"Text: {source}, files: {len(text_files(source)):,}")
        corpus = prepare(config.paths, config.prepare, out)
        show_corpus(corpus, config)
        msg.good(f"Prepared corpus: {out}")


def show_corpus(corpus: Corpus, config: PretrainConfig) -> None:
    """Print a corpus's sizes, and how much of it a vocabulary of its own covers."""
    words = len(corpus.train.ids)
    vocabulary = "that of paths.init"
    if config.training.vocab_size is not None:
        size = len(corpus.vocabulary(config.training.vocab_size))
        covered = corpus.counts[:size].sum() / max(words, 1)
        vocabulary = f"{size:,}, covers {covered:.1%} of the training words"
    msg.table(
        [
            ("training words", f"{words:,}"),
            ("training sentences", f"{len(corpus.train.lengths):,}"),
            ("held-out words", f"{len(corpus.dev.ids):,}"),
            ("held-out sentences", f"{len(corpus.dev.lengths):,}"),
            ("types", f"{len(corpus.types) - 3:,}"),
            ("vocabulary", vocabulary),
        ]
    )

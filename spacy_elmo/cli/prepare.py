"""`python -m spacy elmo prepare`: text becomes a prepared corpus."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .corpus_arguments import CodeOption
from .errors import one_message
from .settings import read_settings

if TYPE_CHECKING:
    from ..bilm.weights import Weights
    from ..pretrain.config import PretrainConfig
    from ..pretrain.corpus.prepared import Corpus
    from ..pretrain.report.estimate import Estimate


def prepare_cli(
    ctx: typer.Context,
    config_path: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Pretraining config (.cfg)")
    ],
    out: Annotated[Path, typer.Argument(help="Folder to make")],
    gpu_id: Annotated[
        int, typer.Option("--gpu-id", "-g", help="GPU of the estimate, or -1 for the CPU")
    ] = -1,
    code: CodeOption = None,
) -> None:
    """Tokenize raw text once, for any number of pretraining runs (their paths.corpus).

    If CONFIG limits a run, a few steps of it are tried, to say how long it will take and how much memory it needs.
    """
    with one_message():
        import_code(code)
        config = read_settings(config_path, ctx.args, training=False)
        from ..pretrain.corpus.prepare import prepare
        from ..pretrain.training.distributed import device
        from ..pretrain.training.initial_weights import read_initial_weights
        from ..text.files import text_files

        # What the run would start from is looked at before hours of tokenizing, not after.
        config, initial = read_initial_weights(config)
        where = device(gpu_id)
        for source in (config.paths.raw_text, config.paths.dev_text):
            if source is not None:
                msg.info(f"Text: {source}, files: {len(text_files(source)):,}")
        corpus = prepare(config.paths, config.prepare, out)
        msg.good(f"Prepared corpus: {out}")
        show_corpus(corpus, config, initial)
        if config.training.limited:
            from ..pretrain.report.estimate import estimate
            from ..pretrain.training.allocation import keep_freed_memory

            keep_freed_memory()  # as pretrain does
            msg.info(f"Trying a few steps of training, on {where}")
            _show_estimate(estimate(config, corpus, where, initial), len(corpus.train.ids))


def show_corpus(corpus: Corpus, config: PretrainConfig, initial: Weights | None = None) -> None:
    """Print a corpus's sizes, and how it looks to a run of `config`."""
    from ..pretrain.report.statistics import statistics

    found = statistics(config, corpus, initial)
    rows = [
        ("training words", f"{len(corpus.train.ids):,}"),
        ("training sentences", f"{len(corpus.train.lengths):,}"),
        ("held-out words", f"{len(corpus.dev.ids):,}"),
        ("held-out sentences", f"{len(corpus.dev.lengths):,}"),
        ("types", f"{len(corpus.types) - 3:,}"),
        (
            "vocabulary",
            f"{found.vocab_size:,}, covers {found.covered:.1%} of the training words and"
            f" {found.held_out_covered:.1%} of the held-out ones",
        ),
        (
            "cut words",
            f"{found.long_words:.3%} of the training words (longer than {config.bilm.max_characters - 2} bytes)",
        ),
        (
            "cut sentences",
            f"{found.long_sentences:.2%} of the training sentences (longer than {config.training.max_length} words)",
        ),
    ]
    if dropped := corpus.dropped.words:
        share = dropped / (dropped + len(corpus.train.ids))
        rows.append(
            ("dropped repeats", f"{corpus.dropped.sentences:,} sentences, {share:.1%} of the words")
        )
    msg.table(rows)


def _show_estimate(found: Estimate, words: int) -> None:
    rows = [
        ("speed", f"{found.words_per_second:,.0f} words/s"),
        ("one pass over the corpus", _time(words / found.words_per_second)),
    ]
    if found.minutes is not None:
        run = _time(60 * found.minutes)
        if found.words is not None:
            run += f" for {found.words:,} words"
        rows.append(("the run, evaluations left out", run))
    if found.memory is not None:
        rows.append(("memory", f"{found.memory / 1e9:.1f} GB, the peak so far, preparing included"))
    msg.table(rows)


def _time(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))

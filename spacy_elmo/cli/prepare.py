"""`python -m spacy elmo prepare`: tokenize raw text into a prepared corpus."""

from __future__ import annotations

import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .arguments import CodeOption, ConfigArgument, GpuOption, QuietOption
from .corpus_table import show_corpus
from .errors import report_errors
from .progress import reading_bar
from .settings import config_overrides

if TYPE_CHECKING:
    from ..pretraining.estimate import Estimate


def prepare_cli(
    ctx: typer.Context,
    config_path: ConfigArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder to create for the prepared corpus")
    ],
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Replace the prepared corpus in OUT")
    ] = False,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
    code: CodeOption = None,
) -> None:
    """Tokenize raw text once for many pretraining runs.

    To use the prepared corpus in a run, set paths.corpus to OUT.

    If CONFIG sets an end of the run (such as training.max_steps), the command also estimates the duration and
    memory of the run. For the estimate, the command trains a few steps.
    """
    with report_errors():
        import_code(code)
        from ..pretraining.config import PretrainConfig
        from ..pretraining.corpus.prepare import prepare
        from ..pretraining.training.distributed import device
        from ..pretraining.training.initial_weights import read_given_weights

        config = PretrainConfig.read(config_path, config_overrides(ctx.args), training=False)
        # Check the weights now, not after hours of tokenizing.
        config, given = read_given_weights(config)
        torch_device = device(gpu_id)
        texts = config.paths.text_files()
        for source, files in texts.items():
            msg.info(f"Text: {source}, files: {len(files):,}")
        with reading_bar(lambda: chain(*texts.values()), quiet=quiet):
            corpus = prepare(config.paths, config.prepare, out, config.bilm.spelling, force=force)
        msg.good(f"Prepared corpus: {out}")
        show_corpus(corpus, config, given)
        if config.training.limited:
            from ..pretraining.estimate import estimate
            from ..pretraining.training.runtime import reuse_memory

            reuse_memory()  # as in pretrain, which would otherwise be faster than the estimate
            msg.info(f"Training a few steps on {torch_device} to estimate the duration of the run")
            _show_estimate(estimate(config, corpus, torch_device, given), len(corpus.train.ids))


def _show_estimate(estimated: Estimate, words: int) -> None:
    rows = [
        ("speed", f"{estimated.words_per_second:,.0f} words/s"),
        ("one pass over the corpus", _time(words / estimated.words_per_second)),
    ]
    if estimated.minutes is not None:
        run = _time(60 * estimated.minutes)
        if estimated.words is not None:
            run += f" for {estimated.words:,} words"
        rows.append(("the run, without evaluations", run))
    if estimated.memory is not None:
        rows.append(("peak memory", f"{estimated.memory / 1e9:.1f} GB, including the preparation"))
    msg.table(rows)


def _time(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))

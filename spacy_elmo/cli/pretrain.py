"""`python -m spacy elmo prepare`: tokenize raw text into a prepared corpus. `python -m spacy elmo pretrain`: train a
biLM on raw text."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import threading
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code
from wasabi import row

from .arguments import CodeOption, ConfigArgument, ForceOption, GpuOption, config_overrides
from .output import msg, reading_bar

if TYPE_CHECKING:
    from ..pretraining.config import PretrainConfig
    from ..pretraining.corpus import Corpus
    from ..pretraining.estimate import Estimate
    from ..pretraining.run import Stage
    from ..pretraining.source_weights import SourceWeights
    from ..pretraining.trainer import Progress

_HEADER = ("Step", "Epoch", "Words", "Loss", "Perplexity", "Forward", "Backward", "Words/s", "Left")
_WIDTHS = (8, 6, 12, 7, 10, 8, 8, 8, 8)
_MANY_PASSES = 20


def prepare_cli(
    ctx: typer.Context,
    config_path: ConfigArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder to create for the prepared corpus")
    ],
    force: ForceOption = False,
    gpu_id: GpuOption = -1,
    code: CodeOption = None,
) -> None:
    """Tokenize raw text once for many pretraining runs.

    To use the prepared corpus in a run, set paths.corpus to OUT.

    If CONFIG sets an end of the run (such as training.max_steps), the command also estimates the duration and
    memory of the run. For the estimate, the command trains a few steps.
    """
    import_code(code)
    from ..pretraining.config import PretrainConfig
    from ..pretraining.distributed import device
    from ..pretraining.prepare import prepare
    from ..pretraining.source_weights import read_source_weights

    config = PretrainConfig.read(config_path, config_overrides(ctx.args), training=False)
    # Check the weights now, not after hours of tokenizing.
    config, sources = read_source_weights(config)
    torch_device = device(gpu_id)
    texts = config.paths.text_files()
    for source, files in texts.items():
        msg.info(f"Text: {source}, files: {len(files):,}")
    with reading_bar(chain(*texts.values())):
        corpus = prepare(config.paths, config.prepare, out, config.bilm.spelling, force=force)
    msg.good(f"Prepared corpus: {out}")
    _show_corpus(corpus, config, sources)
    if config.training.limited:
        from ..pretraining.estimate import estimate

        msg.info(f"Training a few steps on {torch_device} to estimate the duration of the run")
        _show_estimate(estimate(config, corpus, torch_device, sources), len(corpus.train.ids))


def pretrain_cli(
    ctx: typer.Context,
    config_path: ConfigArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder for the weights, log and checkpoint")
    ],
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in OUT")] = False,
    force: ForceOption = False,
    gpu_id: GpuOption = -1,
    init: Annotated[
        str | None, typer.Option(help="Initial weights: file or name. Same as --paths.init")
    ] = None,
    code: CodeOption = None,
) -> None:
    """Train a biLM on raw text.

    To override a setting of CONFIG, give the setting's section and name, for example
    --training.max_steps 1000

    The command writes model-best.safetensors, model-last.safetensors, log.jsonl, report.html, config.cfg and
    checkpoint/ to OUT. The loss in the log is the training loss. The perplexity is computed on held-out text,
    with the full softmax.

    Ctrl-C or SIGTERM saves a checkpoint and ends the run. To continue the run, use --resume. To train with
    several processes or machines, use torchrun: torchrun --nproc-per-node 2 -m spacy elmo pretrain CONFIG OUT
    """
    import_code(code)
    overrides = config_overrides(ctx.args)
    if init is not None:
        overrides["paths.init"] = init
    from ..pretraining.run import pretrain
    from ..pretraining.trainer import PretrainingStopped

    stop, screen = _StopSignal(), _Screen(out, resume)
    with screen.bar:
        run = pretrain(
            config_path, out, overrides=overrides, resume=resume, force=force, gpu_id=gpu_id, stop=stop,
            notify=screen.show,
        )  # fmt: skip
        try:
            with contextlib.closing(run):
                for progress in run:
                    print(_format(progress, screen.max_minutes), flush=True)
        except PretrainingStopped as stopped:
            # With torchrun, another process can have received the signal, and only the first process prints.
            if screen.is_first:
                number = stop.number
                name = signal.Signals(number).name if number else "a signal to another process"
                msg.warn(f"{stopped}, because of {name}. Use --resume to continue")
            raise typer.Exit(128 + (stop.number or signal.SIGTERM)) from stopped


class _StopSignal(threading.Event):
    """Event that the first SIGINT or SIGTERM inside the `with` block sets. A second signal ends the program."""

    number: int | None = None
    """Number of the received signal, such as 2 for SIGINT; None if no signal was received."""

    def __enter__(self) -> _StopSignal:
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._handlers = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.__exit__()
        self.number = number
        self.set()


class _Screen:
    """Messages about the stages of a run. With `torchrun`, `pretrain` calls `show` only in the first process."""

    def __init__(self, out: Path, resume: bool) -> None:
        self._out, self._resume = out, resume
        self.bar = contextlib.ExitStack()
        self.is_first = False
        self.max_minutes: float | None = None

    def show(self, stage: Stage) -> None:
        """Print that the run has reached a stage. Show a progress bar while text is read."""
        from ..pretraining.run import CorpusReady, Finished, FolderReady, Preparing

        self.is_first = True
        self.bar.close()
        match stage:
            case FolderReady(has_checkpoint):
                if has_checkpoint:
                    msg.info(f"Resuming the run in {self._out}")
                elif self._resume:
                    msg.info(f"Nothing to resume in {self._out}. Starting a new run")
            case Preparing(paths):
                msg.info(f"Preparing the corpus: tokenizing {paths.raw_text}")
                self.bar.enter_context(reading_bar(chain(*paths.text_files().values())))
            case CorpusReady(config, corpus, sources):
                self.max_minutes = config.training.max_minutes
                _show_corpus(corpus, config, sources)
                _warn_of_busy_cores()
                print(row(_HEADER, widths=_WIDTHS, aligns=["r"] * len(_WIDTHS)), flush=True)
            case Finished(last):
                self._show_end(last)

    def _show_end(self, last: Progress | None) -> None:
        if last is None:
            msg.info(
                "This run is already complete. To train further, use --resume and raise the limit that ended the run:"
                " --training.max_steps, --training.max_epochs, --training.max_tokens, --training.max_minutes or"
                " --training.patience"
            )
        elif (dev := last.dev) is not None:
            msg.info(
                f"Held-out perplexity: {dev.mean:.1f} with a vocabulary of {dev.vocab_size:,}. Perplexity"
                f" without <UNK> targets ({dev.unk_share:.1%} of all targets): {dev.mean_known:.1f}"
            )
        best = self._out / "model-best.safetensors"
        if best.exists():
            msg.good(f"Weights: {best}")
        else:
            msg.warn(
                "The held-out perplexity was always infinite, so there are no best weights. Start again with a lower"
                " learning rate (`--force --training.learn_rate`)"
            )


def _show_corpus(corpus: Corpus, config: PretrainConfig, sources: SourceWeights) -> None:
    from ..pretraining.estimate import statistics

    stats = statistics(config, corpus, sources)
    rows = [
        ("training words", f"{len(corpus.train.ids):,}"),
        ("training sentences", f"{len(corpus.train.lengths):,}"),
        ("held-out words", f"{len(corpus.dev.ids):,}"),
        ("held-out sentences", f"{len(corpus.dev.lengths):,}"),
        ("types", f"{len(corpus.types) - 3:,}"),
        (
            "vocabulary",
            f"{stats.vocab_size:,}, covers {stats.covered:.1%} of the training words and"
            f" {stats.held_out_covered:.1%} of the held-out words",
        ),
        (
            "cut words",
            f"{stats.long_words:.3%} of the training words (longer than {config.bilm.max_characters - 2} bytes)",
        ),
        (
            "cut sentences",
            f"{stats.long_sentences:.2%} of the training sentences (longer than {config.training.max_length} words)",
        ),
    ]
    if stats.passes is not None:
        rows.append(("passes", f"{stats.passes:,.1f} over the training words"))
    msg.table(rows)
    if stats.passes is not None and stats.passes > _MANY_PASSES:
        msg.warn(
            f"The run reads the training words {stats.passes:,.0f} times. After 5 to 10 passes, the held-out perplexity"
            " usually rises again. Use more text, or lower the limit that ends the run, for example with"
            " --training.max_epochs 10. model-best keeps the best weights"
        )
    if stats.covered == 1 and stats.held_out_covered < 1 and not any(sources):
        repeated = 3 + int((corpus.counts[3:] > 1).sum())
        size, negatives = min(repeated, stats.vocab_size - 1), config.training.negatives
        fewer = f" and training.negatives to at most {size}" if (negatives or 0) > size else ""
        advice = f"set training.vocab_size to {size}{fewer}" if size > 3 else "use more text"
        msg.warn(
            "The vocabulary contains every training word, so the model never learns <UNK>. Unknown words in the"
            f" held-out text will have a very high perplexity. So that rare words become <UNK>, {advice}"
        )


def _show_estimate(estimated: Estimate, words: int) -> None:
    rows = [
        ("speed", f"{estimated.words_per_second:,.0f} words/s"),
        ("one pass over the corpus", _time(words / estimated.words_per_second)),
    ]
    if estimated.minutes is not None:
        size = "" if estimated.words is None else f" for {estimated.words:,} words"
        rows.append(("the run, without evaluations", _time(60 * estimated.minutes) + size))
    if estimated.memory is not None:
        rows.append(("peak memory", f"{estimated.memory / 1e9:.1f} GB, including the preparation"))
    msg.table(rows)


def _warn_of_busy_cores() -> None:
    import torch

    threads, free = torch.get_num_threads(), free_cores()
    if 1 < threads and free < threads:
        msg.warn(
            f"torch uses {threads} threads, but only {max(free, 0):.1f} cores are free. The threads wait for each"
            f" other, which can make training ten times slower. Set OMP_NUM_THREADS={max(1, int(free))}"
        )


def free_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the number of cores that this process can use: those of the machine, or of the container's quota
    (cgroup v2), without those that other processes kept busy in the last minute.

    If torch has more threads, OpenMP's threads wait for each other, and a step can take ten times as long.
    """
    cores = float(os.cpu_count() or 1)
    with contextlib.suppress(OSError, ValueError):
        quota, period = (cgroup / "cpu.max").read_text().split()
        cores = min(cores, int(quota) / int(period))
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return cores - max(load - 1, 0.0)  # the load contains this process


def _format(progress: Progress, max_minutes: float | None) -> str:
    dev = progress.dev
    cells = [
        f"{progress.step}", f"{progress.epoch:.2f}", f"{progress.tokens:,}",
        "" if progress.loss is None else f"{progress.loss:.3f}",
        *([f"{p:.1f}" for p in (dev.mean, dev.forward, dev.backward)] if dev else [""] * 3),
        f"{progress.tokens_per_second:,.0f}" if progress.step else "",
        _time_left(progress, max_minutes)
    ]  # fmt: skip
    return row(cells, widths=_WIDTHS, aligns=["r"] * len(cells))


def _time_left(progress: Progress, max_minutes: float | None) -> str:
    """Return the estimated time until the end of the run, or "?" if no limit tells it."""
    minutes = []
    if progress.total_steps and progress.step:
        minutes.append((progress.total_steps - progress.step) * progress.minutes / progress.step)
    if max_minutes is not None:
        minutes.append(max_minutes - progress.minutes)
    return _time(60 * max(min(minutes), 0.0)) if minutes else "?"


def _time(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))

"""`python -m spacy elmo pretrain`: train a biLM on raw text."""

from __future__ import annotations

import contextlib
import datetime
import signal
import threading
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg, row

from .arguments import CodeOption, ConfigArgument, GpuOption
from .corpus_table import show_corpus
from .errors import report_errors
from .progress import reading_bar
from .settings import config_overrides

if TYPE_CHECKING:
    from ..pretraining.run import Stage
    from ..pretraining.training.trainer import PretrainingStopped, Progress

_HEADER = ("Step", "Epoch", "Words", "Loss", "Perplexity", "Forward", "Backward", "Words/s", "Left")
_WIDTHS = (8, 6, 12, 7, 10, 8, 8, 8, 8)


def pretrain_cli(
    ctx: typer.Context,
    config_path: ConfigArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder for the weights, log and checkpoint")
    ],
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in OUT")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the run in OUT")] = False,
    gpu_id: GpuOption = -1,
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            help="Initial weights: weights file, or name of a bundled or installed biLM. Same as --paths.init",
        ),
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
    with report_errors():
        import_code(code)
        overrides = config_overrides(ctx.args)
        from ..pretraining.run import pretrain
        from ..pretraining.training.trainer import PretrainingStopped

        stop = _StopSignal()
        with _Screen(out, resume) as screen:
            run = pretrain(
                config_path, out, overrides=overrides, resume=resume, force=force, init=init, gpu_id=gpu_id,
                stop=stop, notify=screen.show,
            )  # fmt: skip
            try:
                with contextlib.closing(run):
                    for progress in run:
                        screen.show_row(progress)
            except PretrainingStopped as stopped:
                screen.show_stop(stopped, stop.number)
                raise typer.Exit(stop.exit_code) from stopped


class _StopSignal(threading.Event):
    """Event that stops a pretraining run. Inside the `with` block, the first SIGINT or SIGTERM sets the
    event. A second signal ends the program."""

    def __init__(self) -> None:
        super().__init__()
        self.number: int | None = None
        """Number of the received signal, such as 2 for SIGINT; None if no signal was received."""

    @property
    def exit_code(self) -> int:
        """Exit code for the received signal: 128 plus its number. Without a received signal: 128 plus the
        number of SIGTERM."""
        return 128 + (self.number or signal.SIGTERM)

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
    """Context manager that prints messages about a pretraining run.

    If `torchrun` has started several processes, only the first process prints, because `pretrain` calls
    `show` only in this process.
    """

    def __init__(self, out: Path, resume: bool) -> None:
        self._out, self._resume = out, resume
        self._bar = contextlib.ExitStack()
        self._is_first = False
        self._max_minutes: float | None = None

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def show(self, stage: Stage) -> None:
        """Print that the run has reached a stage. Show a progress bar while text is read."""
        from ..pretraining.run import CorpusReady, Finished, FolderReady, Preparing

        self._is_first = True
        self._bar.close()
        match stage:
            case FolderReady(has_checkpoint):
                if has_checkpoint:
                    msg.info(f"Resuming the run in {self._out}")
                elif self._resume:
                    msg.info(f"Nothing to resume in {self._out}. Starting a new run")
            case Preparing(paths):
                msg.info(f"Preparing the corpus: tokenizing {paths.raw_text}")
                self._bar.enter_context(reading_bar(lambda: chain(*paths.text_files().values())))
            case CorpusReady(config, corpus, given):
                self._max_minutes = config.training.max_minutes
                show_corpus(corpus, config, given)
                _warn_of_busy_cores()
                print(row(_HEADER, widths=_WIDTHS, aligns=["r"] * len(_WIDTHS)), flush=True)
            case Finished(last):
                self._show_end(last)

    def show_row(self, progress: Progress) -> None:
        """Print one row of the training log."""
        print(_format(progress, self._max_minutes), flush=True)

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

    def show_stop(self, stopped: PretrainingStopped, number: int | None) -> None:
        """Print which signal has stopped the run. The number of the signal is None if another process of
        `torchrun` has received the signal."""
        if self._is_first:
            name = signal.Signals(number).name if number else "a signal to another process"
            msg.warn(f"{stopped}, because of {name}. Use --resume to continue")


def _warn_of_busy_cores() -> None:
    import torch

    from ..pretraining.training.runtime import free_cores

    threads, free = torch.get_num_threads(), free_cores()
    if 1 < threads and free < threads:
        msg.warn(
            f"torch uses {threads} threads, but only {max(free, 0):.1f} cores are free. The threads wait for each"
            f" other, which can make training ten times slower. Set OMP_NUM_THREADS={max(1, int(free))}"
        )


def _format(progress: Progress, max_minutes: float | None) -> str:
    dev = progress.dev
    perplexities = (
        [f"{p:.1f}" for p in (dev.mean, dev.forward, dev.backward)] if dev else ["", "", ""]
    )
    cells = [
        f"{progress.step}", f"{progress.epoch:.2f}", f"{progress.tokens:,}",
        "" if progress.loss is None else f"{progress.loss:.3f}",
        *perplexities, f"{progress.tokens_per_second:,.0f}" if progress.step else "", _time_left(progress, max_minutes),
    ]  # fmt: skip
    return row(cells, widths=_WIDTHS, aligns=["r"] * len(cells))


def _time_left(progress: Progress, max_minutes: float | None) -> str:
    """Estimate the time until the end of the run, as h:mm:ss. Return "?" if the run has no limit from which
    the time can be estimated."""
    minutes = []
    if progress.steps and progress.step:
        minutes.append((progress.steps - progress.step) * progress.minutes / progress.step)
    if max_minutes is not None:
        minutes.append(max_minutes - progress.minutes)
    if not minutes:
        return "?"
    return str(datetime.timedelta(seconds=round(60 * max(min(minutes), 0.0))))

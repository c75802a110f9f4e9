"""`python -m spacy elmo pretrain`: raw text to a weights file."""

from __future__ import annotations

import contextlib
import datetime
import signal
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from spacy.cli._util import import_code
from wasabi import msg, row

from .arguments import CodeOption, ConfigArgument, GpuOption
from .corpus_table import show_corpus
from .errors import report_errors
from .progress import reading_bar
from .settings import load_pretrain_config, raw_text_files
from .signals import stop_signal

if TYPE_CHECKING:
    from ..pretrain.training.log import Progress

_HEADER = ("Step", "Epoch", "Words", "Loss", "Perplexity", "Forward", "Backward", "Words/s", "Left")
_WIDTHS = (8, 6, 12, 7, 10, 8, 8, 8, 8)


def pretrain_cli(
    ctx: typer.Context,
    config_path: ConfigArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the run")],
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in OUT")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the run in OUT")] = False,
    gpu_id: GpuOption = -1,
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            help="Initial weights: a weights file, or name of a bundled biLM (sets paths.init)",
        ),
    ] = None,
    code: CodeOption = None,
) -> None:
    """Train a biLM on raw text. Settings can be overridden: --training.max_steps 1000

    OUT receives model-best.safetensors and model-last.safetensors, log.jsonl, report.html, config.cfg and
    checkpoint/.
    The loss is that of the training softmax; the perplexity is of held-out text under the full softmax.
    Ctrl-C or SIGTERM saves a checkpoint, which --resume continues. Several processes or machines train one model:
    torchrun --nproc-per-node 2 -m spacy elmo pretrain CONFIG OUT
    """
    with report_errors():
        if resume and force:
            raise ValueError(
                "--resume continues the run in OUT and --force replaces it; choose one of them"
            )
        from ..pipeline.weight_names import find_weights, known_names

        import_code(code)
        if init in known_names():
            init = str(find_weights(init))
        overrides = ["--paths.init", init] if init is not None else []
        config = load_pretrain_config(config_path, [*ctx.args, *overrides])
        from ..pretrain.training import distributed
        from ..run_lock import locked_folder

        device = distributed.device(gpu_id)
        with distributed.join(device) as processes, contextlib.ExitStack() as lock:
            processes.on_first_rank(lambda: lock.enter_context(locked_folder(out)))
            # After the lock, so that a second run is refused before it imports the network.
            from ..pretrain.run_folder import REPLACED, finish, prepare_run_folder, run_corpus
            from ..pretrain.training.allocation import reuse_memory
            from ..pretrain.training.initial_weights import read_initial_weights
            from ..pretrain.training.loop import Stopped, pretrain

            reuse_memory()
            config, initial = read_initial_weights(config)

            def prepare() -> None:
                """Claim the folder and prepare the corpus, in one process for all."""
                has_checkpoint = prepare_run_folder(
                    out, config, initial=initial, resume=resume, force=force
                )
                if resume:
                    msg.info(
                        f"Resuming the run in {out}"
                        if has_checkpoint
                        else f"Nothing to resume in {out}, starting a new run"
                    )
                if (out / REPLACED).exists():
                    msg.info(
                        f"The run that this one replaces is in {out / REPLACED} until this one is complete"
                    )
                if config.paths.corpus is None and not (out / "corpus").exists():
                    msg.info(f"Preparing {config.paths.raw_text}")
                    with reading_bar(lambda: chain(*raw_text_files(config).values())):
                        run_corpus(config, out)

            processes.on_first_rank(prepare)
            corpus = run_corpus(config, out)
            if processes.first:
                show_corpus(corpus, config, initial)
                print(row(_HEADER, widths=_WIDTHS, aligns=["r"] * len(_WIDTHS)), flush=True)
            try:
                with stop_signal() as stop:
                    run = pretrain(
                        config, corpus, out, initial=initial, resume=resume, device=device, ranks=processes, stop=stop,
                    )  # fmt: skip
                    if processes.first:
                        _show(run, out, config.training.max_minutes)
                        finish(out)
                    else:
                        for _ in run:
                            pass
            except Stopped as stopped:
                if processes.first:
                    name = signal.Signals(stop.number).name if stop.number else "another process"
                    msg.warn(f"{name}: {stopped}. --resume continues from there")
                raise typer.Exit(stop.exit_code) from stopped


def _show(run: Iterator[Progress], out: Path, max_minutes: float | None) -> None:
    """Print the progress of a run to its end, and update its report."""
    from ..pretrain.report.report import write_report

    progress = None
    for progress in run:
        print(_format(progress, max_minutes), flush=True)
        if progress.dev is not None:
            write_report(out)
    if progress is None:
        msg.info(
            "The run was complete before. To continue it, raise the limit that has ended it: --training.max_steps,"
            " max_epochs, max_tokens, max_minutes or patience"
        )
        # The run may have been killed between the last row of the log and its report.
        write_report(out)
    elif (dev := progress.dev) is not None:
        msg.info(
            f"Perplexity {dev.mean:.1f} over {dev.vocab_size:,} classes, {dev.unk_share:.1%} of the targets <UNK>;"
            f" {dev.mean_known:.1f} without them"
        )
    msg.good(f"Weights: {out / 'model-best.safetensors'}")


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
    """Return the estimated time to the first limit, as h:mm:ss; "?" if no limit predicts it."""
    minutes = []
    if progress.steps and progress.step:
        minutes.append((progress.steps - progress.step) * progress.minutes / progress.step)
    if max_minutes is not None:
        minutes.append(max_minutes - progress.minutes)
    if not minutes:
        return "?"
    return str(datetime.timedelta(seconds=round(60 * max(min(minutes), 0.0))))

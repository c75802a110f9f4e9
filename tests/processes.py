"""Commands in separate processes without import time: each is forked from a process that has imported everything."""

import contextlib
import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["spacy.cli", "spacy_elmo.cli", "spacy_elmo.pretraining.run", "torch._dynamo", __name__]
)


def start(function: Callable[..., object], *args: Any) -> BaseProcess:
    """Call a function of a module in a new process."""
    process = _CONTEXT.Process(target=function, args=args, daemon=True)
    process.start()
    return process


def start_together(function: Callable[..., object], *args: Any, size: int = 2) -> list[BaseProcess]:
    """Call a function in processes with the environment variables that `torchrun` sets."""
    return [start(_as_rank, variables, function, *args) for variables in torchrun_variables(size)]


def torchrun_variables(size: int) -> list[dict[str, str]]:
    """Return the environment variables that `torchrun` sets, for each of `size` processes."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    every = {
        "TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": str(size),
    }  # fmt: skip
    return [{**every, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]


def _as_rank(variables: dict[str, str], function: Callable[..., object], *args: Any) -> None:
    os.environ |= variables
    function(*args)


def command(args: list[str], output: Path) -> None:
    """Run `python -m spacy elmo ARGS` and redirect its output to a file, that of a rank to `FILE.RANK`."""
    from spacy_elmo.cli import elmo_cli

    if rank := os.environ.get("RANK"):
        output = output.with_name(f"{output.name}.{rank}")
    with (
        output.open("w", encoding="utf8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        elmo_cli(args)

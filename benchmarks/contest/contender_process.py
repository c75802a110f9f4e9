"""A contender in its own process, which computes on request. So its memory can be measured, and contenders can take
turns.

Linux only, because resident memory is read from /proc.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TypedDict

import spacy
import torch
from measuring.process_memory import peak, reset_peak, resident

from .contenders import make

_BENCHMARKS = Path(__file__).parents[1]


class Measurement(TypedDict):
    """Time and memory for computing the vectors of some sentences."""

    seconds: float
    peak: float
    """The largest memory in MB, minus the memory after all imports."""


class ContenderProcess:
    """A handle of the parent process for a process that runs one contender.

    Args:
        kind, precision, files, allennlp: see `contenders.make`; `files` also contains `sentences.json`.
        threads: number of torch's threads.
    """

    def __init__(
        self, kind: str, precision: str, files: Path, threads: int, allennlp: Path | None
    ) -> None:
        command = [sys.executable, "-m", "contest.contender_process"]
        command += [kind, precision, str(files), str(threads)]
        if allennlp:
            command.append(str(allennlp))
        path = os.pathsep.join([str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def measure(self, start: int, stop: int, batch: int) -> Measurement:
        """Run the contender on the sentences from `start` to `stop` (not included), in batches of `batch` sentences.

        Raises:
            RuntimeError: the process has ended. It has printed the reason.
        """
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps([start, stop, batch]), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # there will be no answer either
        if not (answer := self._process.stdout.readline()):
            raise RuntimeError(
                f"{' '.join(map(str, self._process.args))} has failed; its message is above"
            )
        return json.loads(answer)

    def __enter__(self) -> ContenderProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # the process ends at the end of its input


def main() -> None:
    """Run the contender. Each input line of JSON is answered by an output line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind")
    parser.add_argument("precision")
    parser.add_argument("files", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("allennlp", type=Path, nargs="?")
    args = parser.parse_args()
    answers, sys.stdout = (
        sys.stdout,
        sys.stderr,
    )  # so that text which a library prints is not taken for an answer
    torch.set_num_threads(args.threads)
    spacy.blank("en")  # imports all packages that are installed for spaCy
    before = resident()
    contender = make(args.kind, args.precision, args.files, args.allennlp)
    sentences = json.loads((args.files / "sentences.json").read_text("utf8"))
    for line in sys.stdin:
        start, stop, batch = json.loads(line)
        # Before each measurement, the cache of words has the same words, and the processor's caches are filled.
        contender.clear_cache()
        contender.run(contender.prepare(sentences[-contender.warm_up :], 32))
        prepared = contender.prepare(sentences[start:stop], batch)
        gc.collect()
        reset_peak()
        clock = time.perf_counter()
        contender.run(prepared)
        seconds = time.perf_counter() - clock
        measurement = Measurement(seconds=seconds, peak=peak() - before)
        print(json.dumps(measurement), file=answers, flush=True)


if __name__ == "__main__":
    main()

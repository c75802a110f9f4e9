"""A contender in a process of its own, which reads when it is told to: so its memory is its own, and several can take
turns. Linux only: resident memory is what /proc says.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TypedDict

import spacy
import torch
from contenders import make
from memory import forget_peak, peak, resident


class Reading(TypedDict):
    """What a contender says of its reading of some sentences."""

    seconds: float
    peak: float
    """MB of memory at its highest, beyond those of a process that has imported everything."""


class ContenderProcess:
    """The end that asks.

    Args:
        kind, precision, files, allennlp: as of `contenders.make`; `files` also has `sentences.json`.
        threads: of torch.
    """

    def __init__(
        self, kind: str, precision: str, files: Path, threads: int, allennlp: Path | None
    ) -> None:
        command = [sys.executable, __file__, kind, precision, str(files), str(threads)]
        if allennlp:
            command.append(str(allennlp))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self, start: int, stop: int, batch: int) -> Reading:
        """Let it read the sentences from `start` up to `stop`, `batch` at once.

        Raises:
            RuntimeError: it has come to an end; why, it has said itself.
        """
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps([start, stop, batch]), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # there will be no answer either
        if not (answer := self._process.stdout.readline()):
            raise RuntimeError(f"{' '.join(map(str, self._process.args))} has failed: see above")
        return json.loads(answer)

    def __enter__(self) -> ContenderProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # the end of its input is the end of its work


def main() -> None:
    """The end that answers: a line of JSON for each line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind")
    parser.add_argument("precision")
    parser.add_argument("files", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("allennlp", type=Path, nargs="?")
    args = parser.parse_args()
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    torch.set_num_threads(args.threads)
    spacy.blank("en")  # imports whatever is installed for spaCy
    before = resident()
    contender = make(args.kind, args.precision, args.files, args.allennlp)
    sentences = json.loads((args.files / "sentences.json").read_text("utf8"))
    for line in sys.stdin:
        start, stop, batch = json.loads(line)
        # Every time the same words are known, and what others have driven out of the caches is back.
        contender.forget()
        contender.read(contender.prepare(sentences[-contender.warm_up :], 32))
        prepared = contender.prepare(sentences[start:stop], batch)
        gc.collect()
        forget_peak()
        clock = time.perf_counter()
        contender.read(prepared)
        seconds = time.perf_counter() - clock
        reading = Reading(seconds=seconds, peak=peak() - before)
        print(json.dumps(reading), file=answers, flush=True)


if __name__ == "__main__":
    main()

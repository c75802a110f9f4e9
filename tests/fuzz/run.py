"""Run many mutations in child processes, so that a crash, a hang or too much memory only ends a child and is
counted."""

import resource
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests import processes
from tests.fuzz import foreign_models, index_files, own_files, settings, text_files
from tests.fuzz.target import CRASH, DEFECTS, HANG, MAX_BYTES, MEMORY, Outcome, Target, Workplace

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *own_files.TARGETS, *index_files.TARGETS, *text_files.TARGETS, *foreign_models.TARGETS,
        *settings.TARGETS
    )
}  # fmt: skip
MAX_SECONDS = 20.0
# Importing everything takes seconds; a child that is forked from a process that has done so starts at once.
processes.preload(__name__)


@dataclass
class Report:
    """Counts of a target's outcomes, and the seeds of its defects."""

    counts: Counter[str] = field(default_factory=Counter)
    defects: list[tuple[int, Outcome]] = field(default_factory=list)

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count an outcome."""
        self.counts[outcome.kind] += 1
        if outcome.kind in DEFECTS:
            self.defects.append((seed, outcome))


def run(name: str, seeds: range) -> Iterator[tuple[int, Outcome]]:
    """Yield each seed with the outcome of its mutation of a target's files."""
    while seeds:
        receiver, sender = Pipe(duplex=False)
        child = processes.start(_child, name, seeds, sender)
        sender.close()
        try:
            for seed in seeds:
                outcome = _receive(receiver, child)
                yield seed, outcome
                if outcome.kind in (CRASH, HANG, MEMORY):
                    break
            seeds = range(seed + 1, seeds.stop)
        finally:
            child.kill()
            child.join()
            receiver.close()


def _child(name: str, seeds: range, sender: Connection) -> None:
    """Send the outcomes of seeds, after a None when the valid files exist; send a text if the test itself fails."""
    target = TARGETS[name]
    try:
        with tempfile.TemporaryDirectory(prefix="spacy-elmo-fuzz-") as folder:
            (valid := Path(folder, "valid")).mkdir()
            target.make(valid)
            workplace = Workplace(target, valid, Path(folder, "damaged"))
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MAX_BYTES, resource.RLIM_INFINITY))
            sender.send(None)
            for seed in seeds:
                sender.send(workplace.run(seed))
    except Exception:
        sender.send(traceback.format_exc())


def _receive(receiver: Connection, child: BaseProcess) -> Outcome:
    """Return the next outcome, or the way in which the child has ended."""
    limit = MAX_SECONDS
    while True:
        started, used = time.monotonic(), _cpu_seconds(child)
        try:
            if receiver.poll(limit):
                message = receiver.recv()
                if isinstance(message, str):
                    raise RuntimeError(message)
                if message is not None:
                    return message
                continue
        except EOFError:
            child.join()
            return Outcome(CRASH, f"exit code {child.exitcode}")
        # A child that waits for its turn on a busy machine does not hang.
        busy = _cpu_seconds(child) - used
        if busy >= limit * 0.9 or _is_asleep(child):
            return Outcome(
                HANG, f"{time.monotonic() - started:.0f} seconds, {busy:.0f} of computing"
            )


def _stat(child: BaseProcess) -> list[str]:
    try:
        return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return ["Z"] + ["0"] * 20


def _cpu_seconds(child: BaseProcess) -> float:
    user, system = _stat(child)[11:13]
    return (int(user) + int(system)) / 100


def _is_asleep(child: BaseProcess) -> bool:
    return _stat(child)[0] == "S"

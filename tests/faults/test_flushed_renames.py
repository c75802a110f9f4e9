"""A renamed file survives a crash of the machine only after its folder was flushed. Every writer does both."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.writers import WRITERS, Writer

# Layers can be computed again, and flushing each would be most of the time of writing them.
_NOT_DURABLE = {"layers"}

_recorded: list[tuple[str, str]] | None = None


def _record_rename(event: str, arguments: tuple) -> None:
    if event == "os.rename" and _recorded is not None:
        _recorded.append(("renamed", str(arguments[1])))


# Such a hook stays until the process ends.
sys.addaudithook(_record_rename)


def unflushed(events: list[tuple[str, str]]) -> list[str]:
    """Return the targets of renames that exist in the end, but whose folder was not flushed afterwards."""
    return [
        path
        for number, (kind, path) in enumerate(events)
        if kind == "renamed"
        and Path(path).exists()
        and ("flushed", str(Path(path).parent)) not in events[number:]
    ]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the names of open files from /proc"),
    pytest.mark.filterwarnings("ignore"),
]


@contextmanager
def recorded(monkeypatch) -> Iterator[list[tuple[str, str]]]:
    """Yield the renames and flushes inside the `with` block."""
    global _recorded
    events, fsync = [], os.fsync

    def recorded_fsync(descriptor: int) -> None:
        events.append(("flushed", os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    _recorded = events
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", recorded_fsync)
            yield events
    finally:
        _recorded = None


def write(writer: Writer, folder: Path, version: int) -> None:
    if writer.setup is not None:
        writer.setup(folder / writer.name, version)
    writer.write(folder / writer.name, version)


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - _NOT_DURABLE))
def test_folders_are_flushed_after_renames(tmp_path, monkeypatch, name):
    write(WRITERS[name], tmp_path, 0)
    with recorded(monkeypatch) as events:
        write(WRITERS[name], tmp_path, 1)
    assert any(kind == "renamed" for kind, _ in events)
    assert unflushed(events) == []

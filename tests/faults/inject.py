"""`python -m tests.faults.inject MOST NAME...`: let calls of a writer that change a file fail, one after the other.

It prints a line of JSON for each failure that has another result than it must have. `failing_calls.c` must be
preloaded; see `test_write_paths.py`.
"""

import ctypes
import errno
import json
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.disk import tree
from tests.faults.writers import WRITERS, Writer

_C = ctypes.CDLL(None)
FAULTS = ((errno.ENOSPC, True), (errno.EIO, False))
"""A full disk, on which nothing can grow from some call on; and a single call that fails."""


def faults(name: str, folder: Path, most: int) -> Iterator[dict[str, object]]:
    """Yield the number of calls of a writer, and then what is wrong after one of them has failed.

    Args:
        most: the number of calls that fail, about; they are evenly spread.
    """
    writer, place = WRITERS[name], folder / "place"
    place.mkdir()
    _write(writer, place, 0)
    before = tree(place)
    calls, error = _write_failing(writer, place, 0, 0, False)
    assert error is None, error
    after = tree(place)
    yield {"name": name, "calls": calls}
    for number, stays in FAULTS:
        for at in range(1, calls + 1, max(1, calls // most)):
            _restore(place, before)
            print(json.dumps({"trying": [name, errno.errorcode[number], at]}), flush=True)
            _, error = _write_failing(writer, place, at, number, stays)
            if problem := _problem(writer, place, error, before, after):
                yield {"name": name, "error": errno.errorcode[number], "at": at, "problem": problem}


def _write_failing(
    writer: Writer, place: Path, at: int, number: int, stays: bool
) -> tuple[int, BaseException | None]:
    if writer.setup is not None:
        writer.setup(place / writer.name, 1)
    _C.fail_calls(str(place).encode(), ctypes.c_long(at), number, stays)
    error = None
    try:
        writer.write(place / writer.name, 1)
    except Exception as raised:
        error = raised
    calls = _C.counted_calls()
    _C.fail_calls(b"", ctypes.c_long(0), 0, 0)
    return calls, error


def _write(writer: Writer, place: Path, version: int) -> None:
    if writer.setup is not None:
        writer.setup(place / writer.name, version)
    writer.write(place / writer.name, version)


def _problem(
    writer: Writer,
    place: Path,
    error: BaseException | None,
    before: dict[str, bytes],
    after: dict[str, bytes],
) -> str | None:
    """Return what is wrong, if the old files are not intact and alone, and the new files are not complete."""
    present = tree(place)
    if error is None:
        # Some formats have a random order, so equal versions differ, but not in size.
        sizes, expected = ({n: len(c) for n, c in files.items()} for files in (present, after))
        return None if sizes == expected else f"no error, but {_differences(after, present)}"
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, OSError | ValueError):
        return text
    if writer.name not in str(error):
        return f"the message does not name {writer.name}\n{text}"
    if writer.setup is not None:
        before = before | {n: c for n, c in after.items() if not n.endswith(writer.name)}
    return None if present == before else f"{_differences(before, present)}\n{text}"


def _differences(expected: dict[str, bytes], present: dict[str, bytes]) -> str:
    changed = [n for n in expected.keys() & present.keys() if expected[n] != present[n]]
    lacking, more = expected.keys() - present.keys(), present.keys() - expected.keys()
    return f"changed {sorted(changed)}, lost {sorted(lacking)}, left over {sorted(more)}"


def _restore(place: Path, content: dict[str, bytes]) -> None:
    shutil.rmtree(place)
    place.mkdir()
    for name, data in content.items():
        path = place.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for _name in sys.argv[2:] or WRITERS:
        with tempfile.TemporaryDirectory(prefix="spacy-elmo-faults-") as _folder:
            for _line in faults(_name, Path(_folder), int(sys.argv[1])):
                print(json.dumps(_line), flush=True)

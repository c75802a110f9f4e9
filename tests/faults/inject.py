"""`python -m tests.faults.inject NAME`: let the calls of a writer that change a file fail, one after the other.

It prints a line for each failure after which the old files are not intact, or the new files not complete.
`failing_calls.c` must be preloaded; see `test_write_paths.py`.
"""

import ctypes
import errno
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.checkpoint import save_checkpoint
from spacy_elmo.pretraining.config import Paths, Prepare
from spacy_elmo.pretraining.prepare import prepare
from tests import tiny
from tests.pretraining.conftest import raw_text

FAULTS = ((errno.ENOSPC, True), (errno.EIO, False))
"""A full disk, on which nothing can grow from some call on; and a single call that fails."""


def write_weights(folder: Path, version: int) -> None:
    Weights.from_bilm(tiny.bilm(tiny.config(), version)).save(folder / "w.safetensors")


def write_checkpoint(folder: Path, version: int) -> None:
    save_checkpoint({"step": version, "tensor": torch.full((50,), float(version))}, folder)


def write_corpus(folder: Path, version: int) -> None:
    text = folder.with_name(f"text-{version}.txt")
    text.write_text(raw_text(seed=version))
    paths, settings = Paths(raw_text=str(text)), Prepare(tokenized=True)
    prepare(paths, settings, folder / "corpus", force=True)


WRITERS = {
    "weights": (write_weights, "w.safetensors"),
    "checkpoint": (write_checkpoint, "checkpoint"),
    "corpus": (write_corpus, "corpus"),
}
"""Writers of version 0 or 1 to a folder, and the name that an error must contain."""


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def problems(name: str, folder: Path, most: int = 8) -> list[str]:
    """Return what is wrong after a failed call. About `most` calls fail, evenly spread."""
    write, said = WRITERS[name]
    library = ctypes.CDLL(None)

    def write_failing(place: Path, at: int, number: int, stays: bool) -> Exception | None:
        library.fail_calls(str(place).encode(), ctypes.c_long(at), number, stays)
        try:
            write(place, 1)
        except Exception as error:
            return error
        finally:
            library.fail_calls(b"", ctypes.c_long(0), 0, 0)
        return None

    old, new, found = folder / "old", folder / "new", []
    for place in (old, new):
        place.mkdir()
        write(place, 0)
    library.fail_calls(str(new).encode(), ctypes.c_long(0), 0, False)
    write(new, 1)
    calls = library.counted_calls()
    assert calls > 3
    for number, stays in FAULTS:
        for at in range(1, calls + 1, max(1, calls // most)):
            place = folder / "place"
            shutil.copytree(old, place)
            print(f"trying {name}, {errno.errorcode[number]} at call {at}", flush=True)
            error = write_failing(place, at, number, stays)
            present, before, after = (contents(each) for each in (place, old, new))
            if error is None:
                is_right = present.keys() == after.keys()
            else:
                is_right = present == before and isinstance(error, OSError | ValueError)
                is_right = is_right and said in str(error)
            if not is_right:
                text = "".join(traceback.format_exception(error)) if error else "no error"
                found.append(f"{errno.errorcode[number]} at {at}: {sorted(present)}\n{text}")
            shutil.rmtree(place)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="spacy-elmo-faults-") as _folder:
        _found = problems(sys.argv[1], Path(_folder))
    print("\n".join(_found))
    sys.exit(bool(_found))

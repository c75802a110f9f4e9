"""A folder of exported files, which receives all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def all_or_nothing(folder: str | Path, names: Sequence[str], *, force: bool) -> Iterator[Path]:
    """A temporary folder whose files go to `folder` when the context ends without an error.

    Args:
        folder: is made if need be, in a folder that exists.
        names: of all files that an export of this kind may have. With `force`, those of an earlier one are replaced, or
            removed if there is no new one: an old softmax beside new weights would be taken for theirs.

    Raises:
        OSError: `folder` is a file, or its parent is missing or not writable; or it has one of the files, and
            `force` is not set.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give a folder to export to")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"{folder.parent}, the folder of {folder.name}, does not exist")
    if standing := [name for name in names if (folder / name).exists()]:
        if not force:
            raise FileExistsError(f"{folder} has {', '.join(standing)}; --force overwrites them")
    # Beside the folder, because only inside a file system is a move one step.
    with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        yield Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in names:
            if (Path(temporary) / name).exists():
                (Path(temporary) / name).replace(folder / name)
            else:
                (folder / name).unlink(missing_ok=True)

"""The file that a command is to write."""

from pathlib import Path


def check_out_file(path: Path, argument: str, *, force: bool) -> None:
    """What a typing mistake can spoil is found out before the work, not after it.

    Args:
        argument: what the help calls it.
        force: a file may be overwritten.

    Raises:
        OSError: there is a folder, or no folder for it; or a file, and `force` is not set.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; {argument} is the file to write")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}, the folder of {argument}, does not exist")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; --force overwrites it")

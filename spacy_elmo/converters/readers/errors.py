"""The error contract of the readers: whatever a parser raises becomes one ValueError that names the file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE)


@contextmanager
def one_error(path: Path, kind: str) -> Iterator[None]:
    """Turn any error of a parser into one ValueError that names the file.

    Unchanged are errors of the operating system and ValueErrors whose message starts with the path.

    Args:
        kind: the kind of the file with its article, "a JSON file".

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the content of the file is damaged, or beyond a limit.
    """
    try:
        yield
    except Exception as error:  # damaged bytes can raise any class of error
        # Parsers of damaged files raise OSErrors, too, such as EINVAL of a negative position.
        if isinstance(error, OSError) and (error.filename is not None or error.errno in _SYSTEM):
            raise
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
        raise ValueError(f"{path}: not {kind}, or truncated ({reason})") from error

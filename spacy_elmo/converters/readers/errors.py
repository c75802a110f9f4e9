"""Error handling of the file readers: any error of a parser becomes a ValueError that names the file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE)


@contextmanager
def one_error(path: Path, kind: str) -> Iterator[None]:
    """Turn any error in the `with` block into a ValueError that names the file.

    Errors of the operating system do not change, and neither do ValueErrors with a message that starts with
    the path.

    Args:
        kind: expected type of the file, for the message, such as "a JSON file".

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: the file is damaged, or exceeds a limit.
    """
    try:
        yield
    except Exception as error:  # a damaged file can raise an error of any class
        # A damaged file can also raise an OSError, such as EINVAL for a negative position.
        if isinstance(error, OSError) and (error.filename is not None or error.errno in _SYSTEM):
            raise
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
        raise ValueError(f"{path} is not {kind}, or is damaged ({reason})") from error

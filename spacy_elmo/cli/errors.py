"""The error contract of all commands: bad input becomes one message and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from wasabi import msg

from .terminal import printable


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn exceptions of bad input (ValueError) and of files (OSError) into one message and exit code 1.

    Any other exception is a bug and keeps its traceback.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        # wasabi would join the lines of a list, so only the first line is given to it.
        first, _, rest = str(error).strip().partition("\n")
        msg.fail(printable(first))
        for line in rest.splitlines():
            typer.echo(printable(line))
        raise typer.Exit(1) from error

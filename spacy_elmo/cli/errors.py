"""The error contract of all commands: bad input becomes one message and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from wasabi import msg

from .terminal import printable


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn a ValueError (bad input) or an OSError (a file) into one message and exit code 1.

    Any other exception is a bug and keeps its traceback.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        # wasabi joins lines, which would spoil a list. So it prints only the first one.
        first, _, rest = str(error).strip().partition("\n")
        msg.fail(printable(first))
        for line in rest.splitlines():
            typer.echo(printable(line))
        raise typer.Exit(1) from error

"""Error handling of all commands: invalid input gives one message and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from wasabi import msg

from .terminal import printable


@contextmanager
def report_errors() -> Iterator[None]:
    """Print the message of a ValueError (invalid input) or an OSError (such as a missing file), and exit with
    code 1. Any other exception is a bug, so its traceback is shown."""
    try:
        yield
    except (ValueError, OSError) as error:
        # wasabi joins lines, which would spoil a list. So wasabi prints only the first line.
        first, _, rest = str(error).strip().partition("\n")
        msg.fail(printable(first))
        for line in rest.splitlines():
            typer.echo(printable(line))
        raise typer.Exit(1) from error

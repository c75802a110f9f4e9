"""What a command does with an error."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from wasabi import msg


@contextmanager
def one_message() -> Iterator[None]:
    """Around the body of a command: bad input (ValueError) and file trouble (OSError) become one message, exit code 1.

    Anything else is a mistake in the program and keeps its traceback.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        # Only the first line: wasabi would run the lines of a list together.
        first, _, rest = str(error).strip().partition("\n")
        msg.fail(first)
        if rest:
            typer.echo(rest)
        raise typer.Exit(1) from error

"""Error handling of all commands: invalid input gives one message and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from wasabi import msg

from .terminal import printable

_EXTRAS = {
    "flask": "explore", "h5py": "h5", "pyarrow": "parquet", "sklearn": "probe", "usearch": "search",
    "vl_convert": "figures", "waitress": "explore",
}  # fmt: skip
"""Extra of this package that installs a library."""


@contextmanager
def report_errors() -> Iterator[None]:
    """Print the message of a ValueError (invalid input), an OSError (such as a missing file) or a missing library
    of an extra, and exit with code 1. Any other exception is a bug, so its traceback is shown."""
    try:
        yield
    except (ValueError, OSError) as error:
        # wasabi joins lines, which would spoil a list. So wasabi prints only the first line.
        first, _, rest = str(error).strip().partition("\n")
        msg.fail(printable(first))
        for line in rest.splitlines():
            typer.echo(printable(line))
        raise typer.Exit(1) from error
    except ModuleNotFoundError as error:
        if error.name not in _EXTRAS:
            raise
        extra = _EXTRAS[error.name]
        msg.fail(f'This needs the library {error.name}: pip install "spacy-elmo[{extra}]"')
        raise typer.Exit(1) from error

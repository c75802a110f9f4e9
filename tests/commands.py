"""Commands of `python -m spacy elmo`, called in this process."""

from typing import Any

from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli


def elmo_as_shown(*arguments: Any, stdin: str | bytes | None = None) -> tuple[int, str]:
    """Call a command. Return its exit code and its output as it is shown.

    Raises:
        Exception: an exception that the command does not turn into a message.
    """
    result = CliRunner().invoke(elmo_cli, [*map(str, arguments)], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def elmo(*arguments: Any, stdin: str | bytes | None = None) -> tuple[int, str]:
    """Call a command. Return its exit code and its output with single spaces, because a terminal folds lines."""
    code, output = elmo_as_shown(*arguments, stdin=stdin)
    return code, " ".join(output.split())

"""Some errors become one message; others keep their traceback."""

import pytest
import typer

from spacy_elmo.cli.errors import report_errors


@pytest.mark.parametrize(
    "error", [ValueError("a\n  b\n  c"), FileNotFoundError("\n\na\n  b\n  c\n")]
)
def test_bad_input_is_one_message(capsys, error):
    with pytest.raises(typer.Exit) as raised, report_errors():
        raise error
    assert raised.value.exit_code == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert "a" in first
    assert rest == ["  b", "  c"]


def test_terminal_escapes_are_shown_and_not_obeyed(capsys):
    with pytest.raises(typer.Exit), report_errors():
        raise ValueError("tensor \x1b[2J\n  \x1b]0;owned\x07")
    first, second = capsys.readouterr().out.splitlines()
    assert r"tensor \x1b[2J" in first and second == r"  \x1b]0;owned\x07"


@pytest.mark.parametrize("error", [KeyError("a"), TypeError("a"), AssertionError("a")])
def test_mistakes_keep_their_traceback(error):
    with pytest.raises(type(error)), report_errors():
        raise error


def test_as_a_decorator(capsys):
    @report_errors()
    def command():
        raise ValueError("a")

    for _ in range(2):
        with pytest.raises(typer.Exit):
            command()

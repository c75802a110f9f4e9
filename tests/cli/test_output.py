"""Messages, errors, progress bars and help texts."""

import gzip
import re
import sys

import pytest
import typer
from typer.testing import CliRunner

from spacy_elmo.cli import elmo_cli
from spacy_elmo.cli.output import reading_bar, report_errors
from spacy_elmo.text.reading import lines
from tests.commands import elmo


def test_bad_input_is_one_message(capsys):
    """Control characters are shown and not obeyed, and commands are not folded."""
    command = "python -m spacy elmo " + "convert " * 20
    with pytest.raises(typer.Exit) as raised, report_errors():
        raise ValueError(f"\n\n{command}\x1b[2J\n  \x1b]0;owned\x07")
    assert raised.value.exit_code == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith(command + r"\x1b[2J") and second == r"  \x1b]0;owned\x07"


def test_an_error_of_the_system_has_no_number(capsys):
    with pytest.raises(typer.Exit), report_errors():
        open("nowhere/a.json")
    shown = capsys.readouterr().out
    assert "No such file or directory: 'nowhere/a.json'" in shown and "Errno" not in shown


@pytest.mark.parametrize(
    "library, extra, line",
    [
        ("vl_convert", "figures", "layers one/best -o out.png"),
        ("h5py", "h5", "convert bilm-hdf5 bilm out.safetensors"),
        ("onnx", "onnx", "export onnx w.safetensors out.onnx"),
        ("tensorflow", "tensorflow", "convert bilm-tf bilm out.safetensors"),
    ],
)
def test_a_library_that_is_missing(folder, monkeypatch, library, extra, line):
    (folder / "bilm/model.ckpt-7.index").touch()
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, "spacy_elmo.converters.onnx", raising=False)
    code, output = elmo(*line.split())
    assert code == 1 and f'pip install "spacy-elmo[{extra}]"' in output


@pytest.mark.parametrize("error", [KeyError("a"), TypeError("a"), ModuleNotFoundError(name="a")])
def test_mistakes_keep_their_traceback(error):
    with pytest.raises(type(error)), report_errors():
        raise error


@pytest.mark.parametrize("packed, shown", [(False, r"100%.*850/850 \[.*B/s"), (True, r"^850B \[")])
def test_bar_on_a_terminal(tmp_path, monkeypatch, capsys, packed, shown):
    """Compressed text has no total. Elsewhere, a bar of a short run is not shown."""
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    text = b"the cat sleeps .\n" * 50
    path.write_bytes(gzip.compress(text) if packed else text)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with reading_bar([path]):
            list(lines(path))
        output = capsys.readouterr().err
        assert bool(output) == terminal
    assert re.search(shown, output.splitlines()[-1])


def test_bar_in_a_log_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.txt").write_text("the cat sleeps .\n" * 50)
    monkeypatch.setattr("spacy_elmo.cli.output.LOG_SECONDS", 1e-9)
    with reading_bar([tmp_path / "a.txt"]):
        list(lines(tmp_path / "a.txt"))
    assert re.search(r"100%.*850/850 \[.*<.*B/s", capsys.readouterr().err)


def test_commands_are_grouped_and_fit_a_line():
    output = CliRunner().invoke(elmo_cli, ["--help"], terminal_width=80).output
    groups = ["Use weights", "Train a biLM", "Weights of other programs", "Analyse a biLM"]
    positions = [output.find(group) for group in groups]
    assert positions == sorted(positions) and -1 not in positions
    for group in ([], ["search"], ["probe"]):
        output = CliRunner().invoke(elmo_cli, [*group, "--help"], terminal_width=80).output
        assert not [line for line in output.splitlines()[1:] if line.endswith("...")], group

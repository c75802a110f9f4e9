"""`scripts/first_hour.py`: its steps; the release workflow runs the whole of it."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "first_hour.py"))


@pytest.fixture
def transcript(tmp_path):
    return SCRIPT["Transcript"](tmp_path)


def test_a_step_is_shown_with_the_end_of_its_output(transcript, capsys):
    code = "import os; print(1); print(2); print(os.getcwd())"
    output = transcript.step("count", sys.executable, "-c", code, show=2)
    assert output.splitlines() == ["1", "2", str(transcript.folder)]
    assert capsys.readouterr().out == f"\n$ python -c '{code}'\n2\n{transcript.folder}\n"
    ((name, seconds),) = transcript.times
    assert name == "count" and seconds > 0


def test_a_step_that_fails_ends_the_run_with_all_of_its_output(transcript, capsys):
    with pytest.raises(SystemExit, match="'break' failed with exit code 3"):
        transcript.step("break", sys.executable, "-c", "print(1); print(2); exit(3)", show=1)
    assert capsys.readouterr().out.endswith("\n1\n2\n")


def test_it_trains_on_200_sentences():
    text = (SCRIPT["SAMPLE"] / "sample-train.tsv").read_text(encoding="utf8")
    assert len(text.strip().split("\n\n")) == 200

"""The commands of the project: they exist, accept their arguments, and do not change the data folder."""

import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
from weasel.util import load_project_config

from tests.evidence.folders import EVIDENCE

TESTS = ["senseval2", "senseval3", "semeval2007", "semeval2013", "semeval2015"]
OVERRIDES = {"vars.data": "../../data", "vars.size": "small"}


@pytest.fixture
def config():
    return load_project_config(EVIDENCE, overrides=OVERRIDES)


def scripts(config):
    return [shlex.split(line) for command in config["commands"] for line in command["script"]]


def test_workflows_name_commands(config):
    commands = {command["name"] for command in config["commands"]}
    assert set(config["workflows"]["all"]) <= commands
    assert not commands & set(config["workflows"])


def test_asset_destinations_are_literal():
    assets = srsly.read_yaml(EVIDENCE / "project.yml")["assets"]
    assert assets
    assert all(re.fullmatch(r"assets/[\w./-]+", asset["dest"]) for asset in assets)


def test_assets_are_files_that_the_plan_reads(config):
    """The assets have the paths that the plan expects in a data folder."""
    sources = srsly.read_yaml(EVIDENCE / "plan.yml")["sources"].values()
    read = {source.format(part=part) for source in sources for part in ("train", "dev", "test")}
    assert {asset["dest"].removeprefix("assets/") for asset in config["assets"]} <= read


def test_nothing_is_written_into_the_data_folder(config):
    outputs = [path for command in config["commands"] for path in command.get("outputs", [])]
    assert outputs and not any(path.startswith(OVERRIDES["vars.data"]) for path in outputs)
    for line in scripts(config):
        for option, value in zip(line, line[1:], strict=False):
            assert option != "--out" or value.startswith("report/small/")


def test_scripts_are_there(config):
    for line in scripts(config):
        if line[:2] == ["rm", "-rf"]:
            continue
        assert line[0] == "python"
        if line[1] == "-m" and line[2].startswith("experiments."):
            assert importlib.util.find_spec(line[2]) is not None
        elif line[1] == "-m":
            assert line[2:4] == ["spacy", "elmo"]
        elif line[1] != "-c":
            assert (EVIDENCE / line[1]).is_file()


def test_commands_of_the_package_take_their_arguments(config):
    """The arguments are parsed by the commands themselves, which are not called."""
    from typer.main import get_command

    from spacy_elmo.cli import elmo_cli

    names = []
    for line in scripts(config):
        if line[2:4] != ["spacy", "elmo"]:
            continue
        command, rest = get_command(elmo_cli), line[4:]
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(command.name, rest)
        names.append(command.name)
    assert names == ["part-of-speech", "neighbors"]


@pytest.mark.parametrize("first_senses", ["", "index.sense"])
def test_first_senses_are_passed_on_where_they_are_given(
    first_senses, tmp_path, monkeypatch, capsys
):
    from experiments import senses
    from typer.main import get_command

    from spacy_elmo.cli.probe import probe_cli

    overrides = {**OVERRIDES, "vars.data": ".", "vars.first_senses": first_senses}
    (line,) = (
        line
        for line in scripts(load_project_config(EVIDENCE, overrides=overrides))
        if line[2] == "experiments.senses"
    )
    called = []
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(sys, "argv", line[2:])
    monkeypatch.setattr(
        senses.subprocess, "run", lambda it: called.append(it) or subprocess.CompletedProcess(it, 3)
    )
    senses.main()
    message = capsys.readouterr().out
    assert message.startswith(
        "Word senses are skipped: there is no ./wsd/semcor-brown*.jsonl, ./wsd/"
    )
    assert not called
    (tmp_path / "project" / "wsd").mkdir()
    for name in TESTS:
        Path("wsd", f"{name}.jsonl").touch()
    old = Path("report", "small", "word-sense.json")
    old.parent.mkdir(parents=True)
    old.touch()
    senses.main()
    assert capsys.readouterr().out == (
        "Word senses are skipped: there is no ./wsd/semcor-brown*.jsonl\n"
    )
    assert not old.exists()
    Path("wsd", "semcor-brown1.jsonl").touch()
    with pytest.raises(SystemExit) as caught:
        senses.main()
    assert caught.value.code == 3 and Path("report", "small").is_dir()
    command = get_command(probe_cli).commands["word-sense"]
    options = command.make_context("word-sense", called[0][6:]).params
    assert str(options["first_senses"] or "") == first_senses
    assert [path.stem for path in options["tests"]] == TESTS
    assert str(options["out"]) == "report/small/word-sense.json"


@pytest.mark.parametrize("module", ["run", "report", "layers"])
def test_an_error_is_one_message(module, tmp_path, monkeypatch):
    """Every module that the commands call reports missing input in one message."""
    arguments = {
        "run": ["plan.yml", "small", "--data", "data"],
        "report": ["plan.yml", "small"],
        "layers": ["plan.yml", "small"],
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [module, *arguments[module]])
    with pytest.raises(SystemExit) as caught:
        importlib.import_module(f"experiments.{module}").main()
    # With a text, Python prints it and the exit code is 1.
    assert isinstance(caught.value.code, str) and len(caught.value.code.splitlines()) == 1
    assert not any(path.is_file() for path in tmp_path.rglob("*"))

"""Paths with spaces in the variables of each project.yml."""

import shutil
from pathlib import Path

import pytest
from weasel.util import load_project_config, split_command

ROOT = Path(__file__).parents[2]
PROJECTS = [ROOT, ROOT / "evidence", *(path.parent for path in ROOT.glob("projects/*/project.yml"))]
PATHS = {"data", "weights", "init", "card", "quoted"}


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_paths_with_spaces(tmp_path, project):
    """Each is one argument of its command, with what the command adds to it."""
    shutil.copy(project / "project.yml", tmp_path)
    given = PATHS & set(load_project_config(tmp_path, interpolate=False)["vars"])
    overrides = {f"vars.{name}": f"/{name} of/my own" for name in given}
    config = load_project_config(tmp_path, overrides=overrides)
    scripts = [script for command in config["commands"] for script in command["script"]]
    for path in overrides.values():
        expected = sum(script.count(path) for script in scripts)
        arguments = [argument for script in scripts for argument in split_command(script)]
        assert sum(argument.startswith(path) for argument in arguments) == expected > 0


def test_assets_of_a_treebank(tmp_path):
    """The files of one release of a repository of UD, below assets/ whatever the data folder is."""
    shutil.copy(ROOT / "projects/treebank/project.yml", tmp_path)
    given = {"data": "/mine", "ud": "UD_Wolof-WTB", "release": "r2.17", "treebank": "wo_wtb-ud"}
    overrides = {f"vars.{name}": value for name, value in given.items()}
    assets = load_project_config(tmp_path, overrides=overrides)["assets"]
    host = "https://raw.githubusercontent.com/UniversalDependencies/UD_Wolof-WTB/r2.17"
    assert {asset["dest"]: asset["url"] for asset in assets} == {
        f"assets/pos/wo_wtb-ud-{part}": f"{host}/{source}"
        for part, source in {
            "train.conllu": "wo_wtb-ud-train.conllu",
            "dev.conllu": "wo_wtb-ud-dev.conllu",
            "test.conllu": "wo_wtb-ud-test.conllu",
            "LICENSE.txt": "LICENSE.txt",
            "README.md": "README.md",
        }.items()
    }

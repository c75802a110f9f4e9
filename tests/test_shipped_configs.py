"""Each kind of installation finds its shipped configs: installed ones, or those of the checkout that is running."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PRINT = """
import json
from spacy_elmo.pipeline.training_config import shipped_configs
print(json.dumps({name: str(path) for name, path in shipped_configs().items()}))
"""

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip")


def checkout(folder, name):
    """Make a checkout without weights and with one more config, `NAME.cfg`."""
    folder.mkdir()
    for file in ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, folder)
    shutil.copytree(ROOT / "configs", folder / "configs")
    (folder / "configs" / f"{name}.cfg").write_text("# A config of this checkout alone.\n")
    ignored = shutil.ignore_patterns("weights", "__pycache__", "*.so", "*.c")
    shutil.copytree(ROOT / "spacy_elmo", folder / "spacy_elmo", ignore=ignored)
    return folder


class Environment:
    """A virtual environment with the packages of this one, but without its spacy_elmo."""

    def __init__(self, folder):
        venv.create(folder, with_pip=False)
        (self._packages,) = folder.glob("lib/python*/site-packages")
        self._python = folder / "bin" / "python"
        places = [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
        # Before editable installs, whose .pth files are not read in folders that a .pth file adds.
        (self._packages / "base.pth").write_text("\n".join(places))

    def pip_install(self, *arguments, cwd):
        command = [self._python, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
        self._run([*command, "--no-index", *arguments], cwd)

    def add_beside_package(self, *names):
        for name in names:
            (self._packages / name).parent.mkdir(exist_ok=True)
            (self._packages / name).touch()

    def configs(self, cwd, **environment):
        """Return the folder of the configs that code run in a folder finds, and their names."""
        found = json.loads(self._run([self._python, "-c", PRINT], cwd, **environment))
        (folder,) = {Path(path).parent for path in found.values()}
        assert {path.stem for path in folder.glob("*.cfg")} == set(found)
        return folder, set(found)

    def is_inside(self, folder):
        return folder.is_relative_to(self._packages)

    def _run(self, command, cwd, **environment):
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            command, cwd=cwd, env=clean | environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "environment")


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


def names(root):
    return {path.stem for path in (root / "configs").glob("*.cfg")}


def test_path_alone(environment, tmp_path, elsewhere):
    one = checkout(tmp_path / "one", "mine")
    assert environment.configs(elsewhere, PYTHONPATH=str(one)) == (one / "configs", names(one))


@pytest.mark.slow
@needs_pip
def test_plain_install(environment, tmp_path, elsewhere):
    """In a clone, Python imports ./spacy_elmo and not the installed package, so the configs are those of the clone."""
    one = checkout(tmp_path / "one", "mine")
    environment.pip_install(".", cwd=one)
    expected = names(one)
    (one / "configs" / "later.cfg").write_text("# Made after the installation.\n")
    # As `pip install --target .` into the folder of another project.
    environment.add_beside_package("setup.cfg", "configs/theirs.cfg")
    folder, found = environment.configs(elsewhere)
    assert environment.is_inside(folder) and found == expected
    assert environment.configs(one) == (one / "configs", expected | {"later"})

"""Rules of the package that no linter checks: sizes of files and folders, names of modules, and few imports at
start."""

import collections
import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "spacy_elmo").rglob("*.py"))
# Names that do not describe what is in a module.
DRAWERS = {"util", "utils", "common", "helper", "helpers", "types", "misc"}
MAX_LINES = 350
MAX_MODULES = 16
# Modules that the entry points must not load, because they are imported at every `spacy.blank()` and `python -m spacy`.
HEAVY = ("h5py", "transformers", "spacy_transformers")


def test_no_file_is_long():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_no_folder_is_full():
    """The exception is cli, which has a module for each command."""
    counts = collections.Counter(p.parent for p in MODULES if p.name != "__init__.py")
    full = {folder.name for folder, count in counts.items() if count > MAX_MODULES}
    assert full <= {"cli"}


def test_names_describe_what_is_inside():
    assert [path for path in MODULES if DRAWERS & {path.stem, *path.relative_to(ROOT).parts}] == []


def test_entry_points_load_nothing_heavy():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    entry_points = setup["options.entry_points"]
    lines = (entry_points["spacy_factories"] + entry_points["spacy_cli"]).split("\n")
    targets = [line.split("=")[1].strip().split(":")[0] for line in lines if "=" in line]
    # thinc itself imports h5py where it is installed: what counts is what our modules add.
    code = (
        "import importlib, sys, spacy.cli\n"
        "before = set(sys.modules)\n"
        f"for name in {targets!r}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY!r} if name in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"

"""The shape of the house: who may import whom, and what no file may do.

The rules are in CONTRIBUTING.md. The checkers read the source with `ast`, so imports inside functions and under
`TYPE_CHECKING` count, and nothing is executed. Each checker is also shown a small tree that breaks its rule.
"""

import ast
import configparser
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "spacy_elmo"
FLOORS = {
    "about": 0,
    "files": 0,
    "limits": 0,
    "text": 1,
    "bilm": 1,
    "catalogue": 1,
    "convert": 2,
    "pretrain": 2,
    "pipeline": 2,
    "corpora": 3,
    "embed": 4,
    "search": 4,
    "analysis": 5,
    "cli": 6,
}
DRAWERS = {"util", "utils", "common", "helper", "helpers", "types", "misc"}
MAX_LINES = 350
# What the entry points may not load: they are imported at every `spacy.blank()` and `python -m spacy`.
HEAVY = ("h5py", "transformers", "spacy_transformers")


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, its tree, and the dotted names it imports with their lines."""

    name: str
    path: Path
    tree: ast.Module = field(repr=False)
    imports: tuple[tuple[str, int], ...]

    @property
    def room(self) -> str:
        """The part after the package: `bilm` for `spacy_elmo.bilm.model`, empty for the package."""
        return (self.name.split(".") + [""])[1]


def _module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST, name: str, is_package: bool, known: set[str]) -> Iterator[str]:
    """The absolute names one import statement in module `name` refers to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            # Level 1 is the package that holds the module; an __init__ is its own package.
            up = node.level - (1 if is_package else 0)
            parts = name.split(".")[: -up or None]
            base = ".".join(parts + ([node.module] if node.module else []))
        for alias in node.names:
            # `from package import module` means the module, not the package around it.
            inner = f"{base}.{alias.name}"
            yield inner if inner in known else base


def read_tree(package: Path) -> list[Module]:
    """All modules under the folder `package`."""
    paths = {_module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    modules = []
    for name, path in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        is_package = path.name == "__init__.py"
        imports = tuple(
            (target, node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for target in _imported(node, name, is_package, set(paths))
        )
        modules.append(Module(name, path, tree, imports))
    return modules


def wrong_arrows(modules: list[Module]) -> list[str]:
    """Imports that go up or sideways, files outside the rooms, and spaCy in the room that knows nothing of it."""
    found = []
    for module in modules:
        if module.room and module.room not in FLOORS:
            found.append(
                f"{module.name}: the room {module.room!r} has no floor in {sorted(FLOORS)}"
            )
            continue
        floor = FLOORS.get(module.room, FLOORS["about"] + 1)
        lazy = _type_checking_lines(module.tree) if module.name == PACKAGE else set()
        for target, line in module.imports:
            if line in lazy:
                continue
            top, room = (target.split(".") + [""])[:2]
            if module.room == "bilm" and top in ("spacy", "thinc"):
                found.append(f"{module.name}:{line} imports {target}: bilm knows nothing of spaCy")
            if top != PACKAGE or room in ("", module.room):
                continue
            if FLOORS.get(room, -1) >= floor:
                found.append(f"{module.name}:{line} imports {target}, which is not below it")
    return found


def _type_checking_lines(tree: ast.Module) -> set[int]:
    """Return the lines that only type checkers execute. The front door names there what it imports lazily."""
    return {
        line
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def circles(modules: list[Module]) -> list[str]:
    """The first circle of import statements between modules, if there is one."""
    names = {module.name for module in modules}
    graph = {m.name: {target for target, _ in m.imports if target in names} for m in modules}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def drawers(modules: list[Module]) -> list[str]:
    """Modules whose name says nothing about what is in them."""
    return [m.name for m in modules if DRAWERS & set(m.name.split("."))]


def prints(modules: list[Module]) -> list[str]:
    """Calls of `print` outside the top floor."""
    return [
        f"{module.name}:{node.lineno}"
        for module in modules
        if module.room != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]


def long_files(modules: list[Module]) -> list[str]:
    """Files nobody reads in one sitting."""
    lengths = {m.name: len(m.path.read_text(encoding="utf-8").splitlines()) for m in modules}
    return [f"{name} has {n} lines" for name, n in lengths.items() if n > MAX_LINES]


CHECKS = [wrong_arrows, circles, drawers, prints, long_files]


@pytest.mark.parametrize("check", CHECKS)
def test_package_keeps_the_rule(check):
    modules = read_tree(ROOT / PACKAGE)
    assert len(modules) > 1
    assert check(modules) == []


def _tree(root: Path, files: dict[str, str]) -> list[Module]:
    package = root / PACKAGE
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_tree(package)


@pytest.mark.parametrize(
    "name, text",
    [
        ("bilm/model.py", "from spacy_elmo.pipeline import encoder"),
        ("bilm/model.py", "import spacy_elmo.cli.info"),
        ("bilm/model.py", "from ..convert.bilm_hdf5 import read"),
        ("bilm/model.py", "from .. import analysis"),
        ("bilm/__init__.py", "from ..pretrain import loop"),
        ("bilm/model.py", "from thinc.api import Model"),
        ("convert/bilm_hdf5.py", "from spacy_elmo.pretrain.corpus.prepared import read"),
        ("pretrain/loop.py", "def f():\n    from ..pipeline.component import Elmo"),
        ("pipeline/component.py", "if TYPE_CHECKING:\n    from spacy_elmo.analysis import probe"),
        ("analysis/probe.py", "from ..cli import elmo_cli"),
        ("__init__.py", "from .bilm import config"),
        ("tools/thing.py", ""),
        ("thing.py", ""),
    ],
)
def test_wrong_arrow_is_found(tmp_path, name, text):
    # The rooms exist, so that `from .. import analysis` resolves to a module.
    rooms = {f"{room}/__init__.py": "" for room in FLOORS}
    assert len(wrong_arrows(_tree(tmp_path, {**rooms, name: text}))) == 1


def test_downward_arrows_are_fine(tmp_path):
    modules = _tree(
        tmp_path,
        {
            "bilm/model.py": "import torch\nfrom .config import BiLMConfig\nfrom ..about import x",
            "bilm/config.py": "",
            "about.py": "",
            "__init__.py": "from .about import x\nif TYPE_CHECKING:\n    from .analysis import probe",
            "pipeline/component.py": "from ..bilm.model import BiLM\nimport spacy",
            "analysis/probe.py": "from ..pipeline import component",
            "cli/info.py": "from spacy_elmo.bilm import config\nfrom ..analysis.probe import probe",
        },
    )
    assert [check(modules) for check in CHECKS] == [[]] * len(CHECKS)


def test_deferred_circle_is_found(tmp_path):
    modules = _tree(
        tmp_path,
        {
            "bilm/a.py": "from .b import x",
            "bilm/b.py": "def f():\n    from spacy_elmo.bilm import c",
            "bilm/c.py": "import spacy_elmo.bilm.a",
        },
    )
    (circle,) = circles(modules)
    assert {f"spacy_elmo.bilm.{name}" for name in "abc"} == set(circle.split(" -> "))


def test_drawers_prints_and_long_files_are_found(tmp_path):
    modules = _tree(
        tmp_path,
        {
            "bilm/utils.py": "",
            "pretrain/common/a.py": "",
            "pretrain/loop.py": "x = 1\nprint(x)",
            "cli/info.py": "print('fine here')",
            "convert/long.py": "x = 1\n" * (MAX_LINES + 1),
            "convert/longest_allowed.py": "x = 1\n" * MAX_LINES,
        },
    )
    assert drawers(modules) == ["spacy_elmo.bilm.utils", "spacy_elmo.pretrain.common.a"]
    assert prints(modules) == ["spacy_elmo.pretrain.loop:2"]
    assert long_files(modules) == ["spacy_elmo.convert.long has 351 lines"]


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

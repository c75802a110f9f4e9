"""Rules of the package: the directions of imports, sizes, names and docstrings.

The rules are in CONTRIBUTING.md. The checkers read the source with `ast`, so imports inside functions and under
`TYPE_CHECKING` count, and nothing is executed. Each checker is also tested on a small tree that breaks its rule.
"""

import ast
import collections
import configparser
import graphlib
import re
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
    "digest": 0,
    "files": 0,
    "limits": 0,
    "npy_file": 0,
    "output_file": 0,
    "run_lock": 0,
    "text": 1,
    "bilm": 1,
    "catalogue": 1,
    "converters": 2,
    "pretrain": 2,
    "pipeline": 2,
    "corpora": 3,
    "embedding": 4,
    "search": 4,
    "analysis": 5,
    "explore": 6,
    "cli": 7,
}
DRAWERS = {"util", "utils", "common", "helper", "helpers", "types", "misc"}
MAX_LINES = 350
MAX_MODULES = 16
# First words of elliptic docstrings, which are not sentences.
ELLIPTIC = {
    "As", "How", "Of", "That", "Those", "What", "When", "Where", "Whether", "Which", "Who",
}  # fmt: skip
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# Modules that the entry points must not load, because they are imported at every `spacy.blank()` and `python -m spacy`.
HEAVY = ("h5py", "transformers", "spacy_transformers")


@dataclass(frozen=True)
class Module:
    """Source file: its dotted name, its tree, and the dotted names it imports with their lines."""

    name: str
    path: Path
    tree: ast.Module = field(repr=False)
    imports: tuple[tuple[str, int], ...]

    @property
    def room(self) -> str:
        """Part of the name after the package: `bilm` for `spacy_elmo.bilm.model`, empty for the package."""
        return (self.name.split(".") + [""])[1]


def _module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST, name: str, is_package: bool, known: set[str]) -> Iterator[str]:
    """Yield the absolute names to which an import statement in module `name` refers."""
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
    """Parse all modules under the folder `package`."""
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
    """Find imports that go up or sideways, files outside the rooms, and spaCy in the room bilm."""
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
                found.append(
                    f"{module.name}:{line} imports {target}: bilm must not depend on spaCy"
                )
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
    """Find the first circle of import statements between modules."""
    names = {module.name for module in modules}
    graph = {m.name: {target for target, _ in m.imports if target in names} for m in modules}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(error.args[1])]
    return []


def drawers(modules: list[Module]) -> list[str]:
    """Find modules whose name does not describe their content."""
    return [m.name for m in modules if DRAWERS & set(m.name.split("."))]


def prints(modules: list[Module]) -> list[str]:
    """Find calls of `print` outside the top floor."""
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
    """Find files with too many lines."""
    lengths = {m.name: len(m.path.read_text(encoding="utf-8").splitlines()) for m in modules}
    return [f"{name} has {n} lines" for name, n in lengths.items() if n > MAX_LINES]


def full_folders(modules: list[Module]) -> list[str]:
    """Find folders with too many modules; cli has one for each command."""
    counts = collections.Counter(m.path.parent for m in modules if m.path.name != "__init__.py")
    folders = {module.path.parent: module.room for module in modules}
    return [
        f"{folder.name} has {counts[folder]} modules"
        for folder, room in folders.items()
        if counts[folder] > MAX_MODULES and room != "cli"
    ]


def command_imports(modules: list[Module]) -> list[str]:
    """Find commands that import commands: modules of cli that define a name ending in `_cli`, such as `embed_cli`."""
    commands = {
        module.name
        for module in modules
        if module.room == "cli" and module.path.name != "__init__.py"
        if any(name.endswith("_cli") for name, _ in _definitions(module))
    }
    return [
        f"{module.name}:{line} imports {target}, which is a command"
        for module in modules
        if module.name in commands
        for target, line in module.imports
        if target in commands
    ]


def _definitions(module: Module) -> Iterator[tuple[str, bool]]:
    """Yield the names that the statements of a module define, and True for classes and type aliases."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, False
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.unparse(node.annotation).endswith("TypeAlias")
        elif isinstance(node, ast.Assign):
            yield from ((n.id, False) for n in node.targets if isinstance(n, ast.Name))


def repeated_classes(modules: list[Module]) -> list[str]:
    """Find public classes and type aliases that have the name of another one."""
    homes = collections.defaultdict(list)
    for module in modules:
        for name, is_class in _definitions(module):
            if is_class and not name.startswith("_"):
                homes[name].append(module.name)
    return [f"{name}: {', '.join(names)}" for name, names in homes.items() if len(names) > 1]


def elliptic_docstrings(modules: list[Module]) -> list[str]:
    """Find public docstrings that start with a word of an elliptic phrase, such as Of or Whether."""
    return [
        f"{module.name}:{line} {words[0]} ..."
        for module in modules
        for docstring, line in _public_docstrings(module.tree)
        if (words := docstring.split()) and words[0].rstrip(",:") in ELLIPTIC
    ]


def _public_docstrings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the docstrings of a module, its public classes, functions, methods and attributes, with their lines."""
    nodes: list[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef] = [tree]
    for node in nodes:
        for before, statement in zip([None, *node.body], node.body, strict=False):
            if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if not statement.name.startswith("_") or statement.name.startswith("__"):
                    nodes.append(statement)
            elif isinstance(before, ast.Assign | ast.AnnAssign | None) and (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement.value.value, statement.lineno


def bare_flags(modules: list[Module]) -> list[str]:
    """Find flags of the command line outside `cli` that are not in backticks, as in "set force (`--force`)"."""
    return [
        f"{module.name}:{line} {flag}"
        for module in modules
        if module.room != "cli"
        for text, line in _strings(module.tree)
        for flag in FLAG.findall(re.sub(r"`[^`]*`", "", text))
    ]


def _strings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the strings of a module, docstrings too, with their lines; f-strings as a whole, without placeholders."""
    whole = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in whole for part in node.values}
    for node in whole:
        constants = (part.value for part in node.values if isinstance(part, ast.Constant))
        yield "".join(map(str, constants)), node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value, node.lineno


CHECKS = [
    bare_flags,
    wrong_arrows,
    circles,
    drawers,
    prints,
    long_files,
    full_folders,
    command_imports,
    repeated_classes,
    elliptic_docstrings,
]


@pytest.mark.parametrize("check", CHECKS)
def test_package_keeps_the_rule(check):
    modules = read_tree(ROOT / PACKAGE)
    assert len(modules) > 1
    assert check(modules) == []


@pytest.mark.parametrize("folder", ["evidence", "scripts", "tests"])
def test_docstrings_outside_the_package(folder):
    assert elliptic_docstrings(read_tree(ROOT / folder)) == []


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
        ("bilm/model.py", "from ..converters.bilm_tf.hdf5 import convert"),
        ("bilm/model.py", "from .. import analysis"),
        ("bilm/__init__.py", "from ..pretrain import loop"),
        ("bilm/model.py", "from thinc.api import Model"),
        ("converters/check_tensors.py", "from spacy_elmo.pretrain.corpus.prepared import read"),
        ("pretrain/loop.py", "def f():\n    from ..pipeline.component import Elmo"),
        ("pipeline/component.py", "if TYPE_CHECKING:\n    from spacy_elmo.analysis import probe"),
        ("text/files.py", "from ..bilm.config import BiLMConfig"),
        ("corpora/items.py", "from ..search.normalize import normalize"),
        ("embedding/embed_corpus.py", "from ..search.normalize import normalize"),
        ("search/index.py", "from ..embedding.vectors import open_vectors"),
        ("search/index.py", "from ..analysis import figures"),
        ("analysis/probe.py", "from ..cli import elmo_cli"),
        ("analysis/figures.py", "from ..explore.page import FOLDER"),
        ("explore/server.py", "from ..cli import elmo_cli"),
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
            "converters/long.py": "x = 1\n" * (MAX_LINES + 1),
            "converters/longest_allowed.py": "x = 1\n" * MAX_LINES,
        },
    )
    assert drawers(modules) == ["spacy_elmo.bilm.utils", "spacy_elmo.pretrain.common.a"]
    assert prints(modules) == ["spacy_elmo.pretrain.loop:2"]
    assert long_files(modules) == ["spacy_elmo.converters.long has 351 lines"]


def test_bare_flags_are_found(tmp_path):
    modules = _tree(
        tmp_path,
        {
            "bilm/a.py": 'raise ValueError(f"{x} exists; --force overwrites it")',
            "bilm/b.py": 'raise ValueError(f"set force (`--force`), or `spacy --lang {x}`" " a-- b")',
            "cli/c.py": 'help = "--force overwrites it"',
        },
    )
    assert bare_flags(modules) == ["spacy_elmo.bilm.a:1 --force"]


def test_full_folders_are_found(tmp_path):
    names = [f"m{number}.py" for number in range(MAX_MODULES + 1)]
    files = {f"bilm/{name}": "" for name in names}
    files |= {f"cli/{name}": "" for name in names}
    files |= {f"converters/onnx/{name}": "" for name in ["__init__.py", *names[1:]]}
    assert full_folders(_tree(tmp_path, files)) == ["bilm has 17 modules"]


def test_commands_that_import_commands_are_found(tmp_path):
    modules = _tree(
        tmp_path,
        {
            "cli/__init__.py": "from .embed import embed_cli\nfrom .search import search_cli",
            "cli/arguments.py": "GpuOption = int",
            "cli/embed.py": "from .arguments import GpuOption\ndef embed_cli(): ...",
            "cli/search.py": "search_cli = 1\ndef f():\n    from .embed import Layers",
        },
    )
    assert command_imports(modules) == [
        "spacy_elmo.cli.search:3 imports spacy_elmo.cli.embed, which is a command"
    ]


def test_repeated_classes_are_found(tmp_path):
    modules = _tree(
        tmp_path,
        {
            "bilm/a.py": "class Batch: ...\nclass _Own: ...\nLayers: TypeAlias = int",
            "pretrain/b.py": "class Batch: ...\nclass _Own: ...\nclass Other:\n    class Batch: ...",
            "pipeline/c.py": "from typing import TypeAlias\nLayers: TypeAlias = str\nBatch = 1",
        },
    )
    assert repeated_classes(modules) == [
        "Batch: spacy_elmo.bilm.a, spacy_elmo.pretrain.b",
        "Layers: spacy_elmo.bilm.a, spacy_elmo.pipeline.c",
    ]


def test_elliptic_docstrings_are_found(tmp_path):
    source = '''"""What it is."""

x: int = 1
"""Of the network."""


class Plain:
    """A plain class."""

    y = 2
    """Whether there is one."""

    def method(self):
        """As above."""

        def inner():
            """Those that are left."""

    def __len__(self):
        """How many there are."""


def function():
    """Return it. What is more, this is fine."""
    x = """Of no interest: not a docstring."""


def _private():
    """When it is private, it is not checked."""


class _Private:
    """Which one?"""

    def method(self):
        """That one."""
'''
    modules = _tree(tmp_path, {"bilm/a.py": source})
    assert elliptic_docstrings(modules) == [
        "spacy_elmo.bilm.a:1 What ...",
        "spacy_elmo.bilm.a:4 Of ...",
        "spacy_elmo.bilm.a:11 Whether ...",
        "spacy_elmo.bilm.a:14 As ...",
        "spacy_elmo.bilm.a:20 How ...",
        "spacy_elmo.bilm.a:17 Those ...",
    ]


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

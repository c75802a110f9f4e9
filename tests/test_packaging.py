"""The installed package: the tags of the wheels, the files inside, and the metadata that the package index shows.

The wheels are built by setup.py from a small tree, with one C file that takes no time to compile.
"""

import email
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spacy_elmo.pipeline.training_config import shipped_configs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
LIBRARY = re.compile(r"spacy_elmo/bilm/kernels/_native\.so")
DATA = [
    path.relative_to(ROOT)
    for path in (ROOT / "spacy_elmo").rglob("*.*")
    if path.suffix not in (".py", ".pyc", ".c", ".h", ".so") and path.is_file()
]
"""The files of the package that are neither Python nor C."""


@pytest.fixture
def tree(tmp_path):
    """Return a tree of the files whose content the build reads."""
    root = tmp_path / "tree"
    kernels = root / "spacy_elmo" / "bilm" / "kernels"
    kernels.mkdir(parents=True)
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
    for name in ("about.py", "py.typed"):
        shutil.copy(ROOT / "spacy_elmo" / name, root / "spacy_elmo")
    shutil.copytree(ROOT / "configs", root / "configs")
    shutil.copy(ROOT / "spacy_elmo" / "bilm" / "kernels" / "native.py", kernels)
    (kernels / "a.c").write_text("int one(void) { return 1; }\n")
    for path in DATA:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


def wheel(tree, monkeypatch, compiler=None):
    """Build a wheel, and return its name and the text of its files by their names."""
    if compiler:
        monkeypatch.setenv("CC", compiler)
    out = tree.parent / "dist"
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=tree, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return path.name, {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_a_compiled_wheel_is_for_a_platform_and_for_every_python(tree, monkeypatch):
    name, files = wheel(tree, monkeypatch)
    assert re.fullmatch(r"spacy_elmo-[\d.]+-py3-none-(?!any)\w+\.whl", name)
    assert len([file for file in files if LIBRARY.fullmatch(file)]) == 1
    # Sources stay in the source distribution.
    assert not [file for file in files if file.endswith((".c", ".h"))]


def test_a_wheel_from_the_source_distribution(tree, monkeypatch, tmp_path):
    """Without a compiler, it is for all platforms. It has all data. Every link of the README leads somewhere from
    anywhere, to the files of this version."""
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=tree, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    name, files = wheel(unpacked, monkeypatch, compiler="false")
    assert re.fullmatch(r"spacy_elmo-[\d.]+-py3-none-any\.whl", name)
    assert not [file for file in files if LIBRARY.fullmatch(file)]
    information = name[: -len("-py3-none-any.whl")] + ".dist-info"
    assert {file.partition("/")[0] for file in files} == {"spacy_elmo", information}
    assert len(DATA) > 8 and {path.as_posix() for path in DATA} <= set(files)
    configs = {file for file in files if file.endswith(".cfg")}
    assert configs == {f"spacy_elmo/configs/{name}.cfg" for name in shipped_configs()}
    found = email.message_from_bytes(files[f"{information}/METADATA"])
    urls = dict(entry.split(", ") for entry in found.get_all("Project-URL"))
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues"}
    assert found["Description-Content-Type"] == "text/markdown"
    description = found.get_payload()
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]*)\)", description)
    inside = {target for _, target in links if target.startswith(urls["Source"])}
    assert len(links) > 20 and len(inside) > 20
    assert all(target.startswith("https://") for _, target in links)
    version = f"v{found['Version']}"
    for image, target in links:
        if target in inside:
            place = f"{urls['Source']}/{'raw' if image else 'blob'}/{version}/"
            assert target.startswith(place)
            assert (ROOT / target.removeprefix(place).partition("#")[0]).exists()

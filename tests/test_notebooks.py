"""The notebooks: each runs from top to bottom, and its saved outputs are those of the run."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MAX_BYTES = 30_000


def printed(notebook):
    """The lines that each cell has printed, without numbers and predictions, which depend on the machine."""
    # Joined, because the kernel sends what is printed in pieces, and sometimes the end of a line alone.
    texts = [
        "".join(output.text for output in cell.get("outputs", []) if output.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    return [
        [re.sub(r"\[.*\]| *-?\d+\.\d+", " #", line) for line in text.splitlines()] for text in texts
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs_and_prints_what_it_shows(path, tmp_path):
    assert path.stat().st_size < MAX_BYTES
    notebook = nbformat.read(path, as_version=4)
    saved = printed(notebook)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "corpus").symlink_to(ROOT / "corpus")
    client = NotebookClient(notebook, timeout=900, kernel_name="python3")
    client.execute(cwd=str(tmp_path / "notebooks"))
    assert printed(notebook) == saved
    assert any(saved)

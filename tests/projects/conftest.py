"""The scripts of projects/treebank can be imported, as one of them imports another."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "projects/treebank")

"""The evidence project is no package: its modules are imported from its folder, as when it runs."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "evidence"))


@pytest.fixture(autouse=True)
def operations_of_thinc(monkeypatch):
    """Keep thinc's own operations: what the evidence registers would stay in the process of other tests."""
    monkeypatch.setitem(sys.modules, "experiments.numpy_ops", ModuleType("experiments.numpy_ops"))

"""The evidence project is no package, so its modules are imported from its folder, as when it runs."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "evidence"))


@pytest.fixture(autouse=True, scope="module")
def operations_of_thinc():
    """Keep thinc's own operations, because those of the evidence would stay registered for other tests."""
    with pytest.MonkeyPatch.context() as patch:
        name = "experiments.numpy_ops"
        patch.setitem(sys.modules, name, ModuleType(name))
        yield

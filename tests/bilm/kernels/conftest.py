"""Both implementations of a computation."""

import pytest

from spacy_elmo.bilm.kernels import native


@pytest.fixture(params=["native", "torch"])
def implementation(request, monkeypatch):
    """Run a test with the kernels, and with the operators of torch that replace them."""
    if request.param == "torch":
        monkeypatch.setattr(native, "library", lambda: None)

"""The packages of models: each installs without a network, and its language takes it at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pipeline.weights_package import write_package
from tests import tiny

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
MODELS = sorted(path.parent for path in (ROOT / "models").glob("*/pyproject.toml"))
TEXT = "Arma virumque cano . Ἄνδρα μοι ἔννεπε , Über allen Gipfeln , Žluťoučký kůň"
PROGRAM = """
import sys
import numpy, spacy
nlp = spacy.blank(sys.argv[1])
nlp.add_pipe("elmo")
numpy.save(sys.argv[2], nlp(sys.argv[3])._.elmo_layers)
print(nlp.get_pipe_config("elmo")["weights"])
"""


@pytest.fixture(params=["tiny", *MODELS], ids=lambda of: getattr(of, "name", of))
def package(request, tmp_path):
    """A copy of a folder of models/, because pip builds in it; if there is none, one that `package` makes."""
    if request.param == "tiny":
        # A language that no folder of models/ is of: one may be installed where the tests run.
        card = {"language": "xx", "licence": "CC0 1.0", "tokenizer": "any", "sources": ["a book"]}
        weights = Weights.from_bilm(tiny.bilm(tiny.config()), card=card)
        return write_package(weights, "xx_elmo_tiny_v1", tmp_path)
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_a_package_is_whole(package, tmp_path):
    (file,) = package.glob("*/*.safetensors")
    weights = Weights.load(file)
    card = weights.card
    # What users must know of weights, and what they need not carry.
    assert all(card.get(field) for field in ("language", "licence", "tokenizer", "sources"))
    assert file.stem.startswith(f"{card['language']}_") and weights.build_head() is None
    site, vectors = tmp_path / "site", tmp_path / "vectors.npy"
    install = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(site)]
    pip = [sys.executable, "-m", "pip", "install", *install, str(package)]
    subprocess.run(pip, check=True, capture_output=True)
    # The source is gone: what works afterwards is what was installed.
    moved = Path(shutil.move(file, tmp_path / file.name))
    shutil.rmtree(package)
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, card["language"], str(vectors), TEXT]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [file.stem]
    nlp = spacy.blank(card["language"])
    nlp.add_pipe("elmo", config={"weights": str(moved)})
    np.testing.assert_allclose(np.load(vectors), nlp(TEXT)._.elmo_layers, atol=1e-6)

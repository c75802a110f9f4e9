"""The biLM's matrix products for one pipeline."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.util import registry
from thinc.api import NumpyOps

from spacy_elmo.components.kernel_products import KernelOps
from tests.pipelines import TEXTS, assert_same, examples, listening, trained

CALLBACK = {"@callbacks": "spacy-elmo.kernel_products.v1"}


def operations(nlp):
    """Return the classes of the operations of the pipeline's nodes."""
    models = [component.model for _, component in nlp.components]
    return {type(node.ops) for model in models for node in model.walk()}


def predictions(nlp, **options):
    docs = list(nlp.pipe(TEXTS, **options))
    return [[(token.tag_, token.ent_type_) for token in doc] for doc in docs]


SIZES = st.integers(0, 40)


@given(
    rows=SIZES, inner=SIZES, columns=SIZES, trans1=st.booleans(), trans2=st.booleans(),
    given_out=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_products(rows, inner, columns, trans1, trans2, given_out, seed):
    numbers = np.random.default_rng(seed)
    x, y = numbers.normal(size=(rows, inner)), numbers.normal(size=(inner, columns))
    left, right = (matrix.astype("f") for matrix in (x.T if trans1 else x, y.T if trans2 else y))
    out = np.full((rows, columns), np.nan, "f") if given_out else None
    product = KernelOps().gemm(left, right, out=out, trans1=trans1, trans2=trans2)
    assert product.dtype == np.float32 and (out is None or product is out)
    np.testing.assert_allclose(product, x @ y, atol=1e-4)


@pytest.mark.parametrize("inner", [3, 60])
def test_matrices_that_do_not_fit(inner):
    with pytest.raises(ValueError, match="Shape mismatch"):
        KernelOps().gemm(np.ones((2, inner), "f"), np.ones((3, 42), "f"), trans2=True)


def test_a_row_does_not_depend_on_other_rows():
    numbers = np.random.default_rng(0)
    x, y = (numbers.normal(size=size).astype("f") for size in ((50, 70), (40, 70)))
    whole = KernelOps().gemm(x, y, trans2=True)
    for row, alone in zip(whole, np.split(x, 50), strict=True):
        assert_same(KernelOps().gemm(alone, y, trans2=True)[0], row)


@pytest.fixture
def folder(weights, tmp_path):
    """A trained pipeline whose config has the callback."""
    nlp = listening(weights, "tagger", "ner")
    trained(nlp, steps=3)
    nlp.config["nlp"]["after_pipeline_creation"] = CALLBACK
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_only_this_pipeline_has_them(folder):
    other = spacy.load(folder, config={"nlp": {"after_pipeline_creation": None}})
    nlp = spacy.load(folder)
    assert operations(nlp) == {KernelOps}
    assert operations(other) == {NumpyOps}
    assert predictions(nlp) == predictions(other)


def test_copies_keep_them(folder):
    nlp = spacy.load(folder)
    for other in (copy.deepcopy(nlp), pickle.loads(pickle.dumps(nlp))):
        assert operations(other) == {KernelOps}


def test_spawned_processes_predict_the_same(folder, monkeypatch):
    nlp = spacy.load(folder)
    expected = predictions(nlp)
    monkeypatch.setattr(spacy.language, "mp", multiprocessing.get_context("spawn"))
    assert predictions(nlp, n_process=2) == expected


def test_a_resized_output_predicts_and_trains(folder):
    nlp = spacy.load(folder)
    nlp.get_pipe("ner").add_label("ORG")
    optimizer = nlp.resume_training()
    losses = nlp.update(examples(nlp), sgd=optimizer)
    assert losses["ner"] > 0
    assert "ORG" in nlp.get_pipe("ner").labels


def test_other_ops_stay(folder):
    """thinc's classes for GPUs and for Apple's processors have faster products."""

    class AppleOps(NumpyOps):
        pass

    nlp = spacy.load(folder, config={"nlp": {"after_pipeline_creation": None}})
    apple = AppleOps()
    for node in nlp.get_pipe("tagger").model.walk():
        node.ops = apple
    registry.callbacks.get("spacy-elmo.kernel_products.v1")()(nlp)
    assert {node.ops for node in nlp.get_pipe("tagger").model.walk()} == {apple}


OTHER_THREADS = """
    import os
    os.environ["OPENBLAS_NUM_THREADS"] = "4"
    import time, torch
    from spacy.util import registry
    from tests import pipelines
    torch.set_num_threads(4)
    nlp = pipelines.listening("en_mini_v4", frozen=True)
    pipelines.trained(nlp)
    registry.callbacks.get("spacy-elmo.kernel_products.v1")()(nlp)

    def switches():
        # For each thread but this one: how often it has begun to wait.
        found = {}
        for thread in set(os.listdir("/proc/self/task")) - {str(os.getpid())}:
            with open(f"/proc/self/task/{thread}/status") as status:
                found[thread] = [line for line in status if "ctxt_switches" in line]
        return found

    first, second = (" ".join([*map(str, range(1000)), end]) for end in ".!")
    nlp(first)
    (torch.ones(400, 400) * torch.ones(400, 400)).sum()
    before = None
    while before != (before := switches()):
        time.sleep(0.2)
    nlp(second)
    print(switches() == before, torch.get_num_threads())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_prediction_wakes_no_other_thread():
    """Beside another busy process, the threads of torch and numpy would wait for each other. torch keeps its number of
    threads."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(OTHER_THREADS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("True 4", 0), done.stderr

"""What runs on a GPU computes what the CPU computes. Without a GPU, these tests are skipped."""

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example
from thinc.backends import get_current_ops, set_current_ops

from spacy_elmo import pretrain
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.optimizers import Muon, muon_matrices
from tests import pipelines, tiny
from tests.commands import elmo

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

SENTENCES = [
    ["the", "cat", "sat", "on", "the", "mat"],
    ["naïve"],
    [],
    ["a", "cat"] * 9,
    ["鳥"] * 40,
]
LARGE = {
    "dim": 64,
    "projection": 32,
    "cell_clip": 3.0,
    "proj_clip": 3.0,
    "filters": ((1, 8), (2, 16), (3, 40)),
}
WORDS = "the cat sat on a mat and naïve 鳥 Berlin London Paris".split()


@pytest.fixture
def gpu_ops():
    """Let spaCy use the GPU during a test."""
    pytest.importorskip("cupy")
    before = get_current_ops()
    spacy.require_gpu()
    yield
    set_current_ops(before)


@pytest.fixture
def text(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "text.txt"
    lines = (" ".join(random.choice(WORDS, size=random.integers(3, 12))) for _ in range(400))
    path.write_text("\n".join(lines), "utf8")
    return path


def network(**fields) -> BiLM:
    """Return a random network. Its weights are small, because large ones would make rounding errors grow."""
    model = tiny.bilm(tiny.config(**fields))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 0.3
    return model


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of the difference, relative to the norm of the expected values."""
    return float((found.cpu().double() - expected.cpu().double()).norm() / expected.norm())


@pytest.mark.parametrize("fields", [{}, {"projection": 7, "proj_clip": None}, LARGE])
def test_layers_in_float32(fields):
    model = network(**fields)
    expected = tiny.read(model, SENTENCES)
    model = model.cuda()
    for layers in (model, model.prepare_for_inference("float32")):
        found = tiny.read(layers, SENTENCES)
        assert found.layers.is_cuda
        assert error(found.layers, expected.layers) < 1e-5
        assert all(error(*pair) < 1e-5 for pair in zip(found.state, expected.state, strict=True))


def test_layers_in_bfloat16():
    model = network(**LARGE)
    expected = tiny.read(model, SENTENCES).layers
    found = tiny.read(model.cuda().prepare_for_inference("bfloat16"), SENTENCES).layers
    assert 0 < error(found, expected) < 0.03


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-4), (torch.bfloat16, 0.03)])
def test_gradients(dtype, most):
    model = network(**LARGE)
    gradients = []
    for device in ("cpu", "cuda"):
        model = model.to(device)
        model.zero_grad()
        with torch.autocast(device, dtype, enabled=device == "cuda" and dtype != torch.float32):
            loss = tiny.forward(model, SENTENCES).layers.square().mean()
        loss.backward()
        gradients.append([parameter.grad.cpu().clone() for parameter in model.parameters()])
    for cpu, gpu in zip(*gradients, strict=True):
        assert error(gpu, cpu) < most


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-3), (torch.bfloat16, 0.05)])
def test_steps_of_muon(dtype, most):
    config = tiny.config(**LARGE | {"projection": 64, "dim": 96})
    models = tiny.bilm(config), tiny.bilm(config).cuda()
    start = [parameter.detach().clone() for parameter in models[0].parameters()]
    for model in models:
        optimizer = Muon(muon_matrices(model), 0.01, dtype)
        for step in range(2):
            generator = torch.Generator().manual_seed(step)
            for parameter in model.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=generator).to(
                    parameter.device
                )
            optimizer.step()
    moved = 0
    for before, cpu, gpu in zip(start, *(model.parameters() for model in models), strict=True):
        if not torch.equal(before, cpu.detach()):
            moved += 1
            assert error(gpu.detach() - before.cuda(), cpu.detach() - before) < most
    assert moved >= 6


def run_config(text, **training):
    return {
        "paths": {"raw_text": str(text)},
        "prepare": {"tokenized": True},
        "model": {"dim": 96, "projection": 64, "layers": 2, "cell_clip": 3.0, "proj_clip": 3.0, "skip": True,
                  "char_dim": 4, "filters": [[1, 8], [2, 16], [3, 40]], "activation": "relu", "highways": 1,
                  "max_characters": 20},
        "training": {"max_steps": 30, "vocab_size": 15, "negatives": 8, "batch_tokens": 256, "log_every": 10,
                     "eval_every": 30, "warmup_steps": 2, "learn_rate": 0.003, "precision": "float32", **training},
    }  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "muon"},
        {"optimizer": "adamw", "negatives": None},
        {"optimizer": "adagrad"},
        {"vocab_size": None},
    ],
    ids=["muon", "full softmax", "adagrad", "teacher"],
)
def test_a_run_learns_what_a_run_on_the_cpu_learns(settings, text, tmp_path):
    config = run_config(text, **settings)
    if config["training"]["vocab_size"] is None:
        list(pretrain(run_config(text, max_steps=9), tmp_path / "teacher"))
        config["paths"]["teacher"] = str(tmp_path / "teacher/model-last.safetensors")
    cpu = list(pretrain(config, tmp_path / "cpu"))
    gpu = list(pretrain(config, tmp_path / "gpu", gpu_id=0))
    assert cpu[-1].loss < cpu[0].loss
    for one, other in zip(cpu, gpu, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=0.01)
    assert gpu[-1].dev.mean == pytest.approx(cpu[-1].dev.mean, rel=0.01)
    last = tmp_path / "gpu/model-last.safetensors"
    assert all(tensor.device.type == "cpu" for tensor in Weights.load(last).tensors.values())


def test_a_run_on_a_gpu_is_resumed(text, tmp_path):
    (tmp_path / "run.cfg").write_text(
        f"[paths]\nraw_text = {str(text)!r}\n[prepare]\ntokenized = true\n[model]\ndim = 64\nprojection = 32\n"
        "[training]\nmax_steps = 4\nvocab_size = 15\nnegatives = 8\nbatch_tokens = 256\nsave_every = 2\n".replace(
            "'", '"'
        ),
        "utf8",
    )
    command = "pretrain", tmp_path / "run.cfg", tmp_path / "run", "--gpu-id", "0"
    code, output = elmo(*command)
    assert code == 0, output
    code, output = elmo(*command, "--resume", "--training.max_steps", "8")
    assert code == 0, output
    assert Weights.load_card(tmp_path / "run/model-last.safetensors")["steps"] == 8
    code, output = elmo("evaluate", tmp_path / "run/model-last.safetensors", text, "--gpu-id", "0")
    assert code == 0, output


@pytest.mark.filterwarnings("ignore:This function is deprecated:UserWarning")  # thinc calls it
@pytest.mark.parametrize("frozen", [True, False])
def test_a_pipeline_learns(frozen, tmp_path, gpu_ops):
    path = tiny.save(tmp_path / "tiny.safetensors", **LARGE)
    nlp = pipelines.listening(path, "ner", frozen=frozen)
    texts = [
        ("The cat sat in Berlin", (15, 21)),
        ("London is naïve", (0, 6)),
        ("A cat in Paris", (9, 14)),
    ]
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": [(*span, "GPE")]})
        for text, span in texts
    ]
    optimizer = nlp.initialize(lambda: examples)
    losses = [nlp.update(examples, sgd=optimizer, losses={})["ner"] for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
    docs = list(nlp.pipe(text for text, _ in texts))
    assert [[entity.text for entity in doc.ents] for doc in docs] == [
        ["Berlin"],
        ["London"],
        ["Paris"],
    ]
    nlp.to_disk(tmp_path / "pipeline")
    on_gpu = [torch.as_tensor(doc._.elmo).cpu() for doc in docs]
    other = spacy.load(tmp_path / "pipeline")
    for doc, vectors in zip(other.pipe(text for text, _ in texts), on_gpu, strict=True):
        assert error(torch.as_tensor(doc._.elmo), vectors) < 1e-5

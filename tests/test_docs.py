"""The documentation pages: every excerpt runs, and every link leads somewhere."""

import re
from pathlib import Path

import pytest
from thinc.api import Adam, Config

from spacy_elmo.bilm.weights import Weights
from tests import consumers, pipelines, tiny

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
CONSUMERS = (ROOT / "docs" / "consumers.md").read_text(encoding="utf-8")
EXCERPTS = {
    section.split("\n")[0]: block
    for section in CONSUMERS.split("\n## ")[1:]
    for block in re.findall(r"```ini\n(.*?)```", section, re.DOTALL)
}
PYTHON = re.findall(r"```python\n(.*?)```", CONSUMERS, re.DOTALL)


@pytest.fixture
def weights(tmp_path):
    Weights.from_bilm(tiny.bilm(tiny.config()), card={"language": "en"}).save(
        tmp_path / "w.safetensors"
    )
    return tmp_path / "w.safetensors"


def test_every_config_has_its_section():
    for path in consumers.CONFIGS.glob("*_elmo.cfg"):
        assert f"[{path.name}](../configs/{path.name})" in CONSUMERS
    assert len(EXCERPTS) == len(re.findall(r"^## ", CONSUMERS, re.MULTILINE))


@pytest.mark.parametrize("section", EXCERPTS)
def test_excerpt_initializes_trains_and_predicts(section, weights, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    consumers.write_knowledge_base(Path("kb"))
    config = Config().from_str(EXCERPTS[section], interpolate=False)
    for block in consumers.blocks(config["components"]):
        if block.get("factory") == "elmo" or "bilm" in block:
            block["weights"] = str(weights)
        if block.get("width") == 256:  # of the bundled biLM
            block["width"] = 10
    nlp = consumers.pipeline(consumers.make_small(config))
    nlp.initialize(lambda: consumers.examples(nlp))
    annotating = nlp.config["training"]["annotating_components"]
    losses = pipelines.step(nlp, Adam(0.01), consumers.examples(nlp), annotates=annotating)
    trained = [name for name in nlp.pipe_names if name not in ("sentencizer", "elmo")]
    assert all(losses[name] > 0 for name in trained)
    assert all(pipelines.mixes(nlp.get_pipe(name).model) for name in trained)
    assert len(list(nlp.pipe(consumers.TEXTS))) == len(consumers.TEXTS)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_python_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(PYTHON[number], {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)(#[^)]+)?\)", text)
    assert links
    for target, _ in links:
        assert target.startswith("https://") or (page.parent / target).exists(), target

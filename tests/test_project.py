"""The spaCy project: it reads the data folder and never writes to it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from confection import Config
from weasel.cli.assets import project_assets
from weasel.cli.run import project_run

from spacy_elmo.bilm.weights import Weights

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TEXT = "Anna left Harwick ."


def snapshot(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def project(tmp_path):
    """Return a copy of the project in a separate folder, its downloads replaced by a local file."""
    source = tmp_path / "downloaded.tsv"
    source.write_text("May\tB-PERSON\nleft\tO\n")
    config = srsly.read_yaml(ROOT / "project.yml")
    for asset in config["assets"]:
        asset["url"] = str(source)
    folder = tmp_path / "project"
    folder.mkdir()
    srsly.write_yaml(folder / "project.yml", config)
    shutil.copytree(ROOT / "projects", folder / "projects")
    return folder


@pytest.fixture
def data(tmp_path):
    """A data folder that has files with the names of the assets, and one other file, which must stay."""
    folder = tmp_path / "data"
    (folder / "ner").mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (folder / "ner" / f"wnut17-{part}.tsv").write_text(f"Ann\tB-PERSON\n{part}\tO\n")
    (folder / "thesis.txt").write_text("the only copy")
    (folder / "empty").mkdir()
    return folder


def test_assets_leave_the_data_folder_alone(project, data):
    before = snapshot(data)
    project_assets(project, overrides={"vars.data": str(data)})
    assert snapshot(data) == before
    assert (project / "assets/ner/wnut17-train.tsv").read_text().startswith("May\t")


@pytest.fixture(scope="module")
def ran_all(tmp_path_factory):
    """A fresh clone after `project run all`, with runs of a few steps."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("configs", "corpus/sample", "projects"):
        shutil.copytree(ROOT / name, folder / name)
    # To build a wheel, pip fetches setuptools; a test asks for the folder alone.
    text = (ROOT / "project.yml").read_text("utf8").replace("--build wheel", "--build none")
    (folder / "project.yml").write_text(text, "utf8")
    for name in ("smoke", "finetune"):
        path = folder / "configs" / f"pretrain_{name}.cfg"
        config = Config().from_disk(path)
        config["training"].update(max_steps=4, eval_every=2, eval_tokens=1000, warmup_steps=0)
        config.to_disk(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        project_run(folder, "all", overrides={"vars.max_steps": 2}, capture=True)
    return folder


def layers(nlp):
    return nlp(TEXT)._.elmo_layers


def layers_of(weights):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": str(weights)})
    return layers(nlp)


def test_all_packages_ner_on_the_bilm_that_it_pretrained(ran_all):
    metrics = srsly.read_json(ran_all / "metrics/sample/ner-0.json")
    assert metrics["ents_per_type"].keys() >= {"PERSON", "PLACE"}
    (pipeline,) = (ran_all / "packages").glob("en_ner_elmo-*/en_ner_elmo/en_ner_elmo-*")
    expected = layers_of(ran_all / "runs/smoke/model-best.safetensors")
    np.testing.assert_allclose(layers(spacy.load(pipeline)), expected, atol=1e-5)
    assert (ran_all / "runs/smoke/report.html").exists()


def test_tune_goes_on_from_the_given_weights(ran_all, monkeypatch):
    """The network and the classes of the head are those of the file, though the config names neither."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    project_run(ran_all, "tune", capture=True)
    given = Weights.load(ran_all / "runs/smoke/model-best.safetensors")
    tuned = Weights.load(ran_all / "runs/tuned-sample/model-best.safetensors")
    assert (tuned.config, tuned.vocabulary) == (given.config, given.vocabulary)
    assert (tuned.card["init"], tuned.card["steps"]) == (given.card, 4)
    changes = [(tuned.tensors[name] - given.tensors[name]).abs().max() for name in given.tensors]
    assert 0 < max(changes) < 0.1
    log = ran_all / "runs/tuned-sample/log.jsonl"
    first, *_, last = (row["dev"]["mean"] for row in srsly.read_jsonl(log) if row["dev"])
    assert last < first

"""Components of two pipelines on one biLM."""

import sys

import numpy as np
import pytest
import spacy

from projects.treebank import join_pipelines
from spacy_elmo.bilm.weights import Weights
from tests import consumers, tiny


def bilm(path, seed):
    """Write the weights of a random biLM, and return their path."""
    Weights.from_bilm(tiny.bilm(tiny.config(), seed), card={"language": "en"}).save(path)
    return path


def saved(folder, weights, name):
    """Write an untrained pipeline of a shipped config, and return its folder."""
    nlp = consumers.pipeline(consumers.config(name, weights, folder))
    nlp.initialize(lambda: consumers.examples(nlp))
    nlp.to_disk(folder / name)
    return folder / name


def join(monkeypatch, out, *pipelines):
    monkeypatch.setattr(sys, "argv", ["join_pipelines", *map(str, [out, *pipelines])])
    join_pipelines.main()


def test_all_components_read_one_bilm_and_give_the_same_vectors(tmp_path, monkeypatch):
    weights = bilm(tmp_path / "weights.safetensors", 0)
    tagger, ner = saved(tmp_path, weights, "tagger"), saved(tmp_path, weights, "ner")
    join(monkeypatch, tmp_path / "joined", tagger, ner)
    joined = spacy.load(tmp_path / "joined")
    assert joined.pipe_names == ["elmo", "ner", "tagger"]
    assert set(joined.get_pipe("elmo").listening_components) == {"tagger", "ner"}
    for name, path in (("tagger", tagger), ("ner", ner)):
        before, after = (
            nlp.get_pipe(name).model.get_ref("tok2vec").predict([nlp(consumers.TEXTS[0])])[0]
            for nlp in (spacy.load(path), joined)
        )
        assert after.std(0).any()
        np.testing.assert_array_equal(after, before)


def test_another_bilm_is_an_error(tmp_path, monkeypatch):
    first, second = (bilm(tmp_path / f"{seed}.safetensors", seed) for seed in (0, 1))
    pipelines = saved(tmp_path, first, "tagger"), saved(tmp_path, second, "ner")
    with pytest.raises(SystemExit, match=f"{pipelines[1]} has another biLM than {pipelines[0]}"):
        join(monkeypatch, tmp_path / "joined", *pipelines)
    assert not (tmp_path / "joined").exists()


def test_a_missing_pipeline_is_one_message(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="model-best"):
        join(monkeypatch, tmp_path / "joined", tmp_path / "model-best")

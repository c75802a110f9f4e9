"""The meta.json of a packaged pipeline: scores on the test part, licence, sources."""

import json
import sys

import pytest

from projects.treebank import pipeline_meta

META = {
    "lang": "la",
    "performance": {"tag_acc": 0.99},
    "license": "MIT",
    "sources": [{"name": "biLM la_elmo_mini"}],
}


def written(tmp_path, monkeypatch, meta):
    pipeline = tmp_path / "model-best"
    pipeline.mkdir()
    (pipeline / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "test.json").write_text('{"tag_acc": 0.5, "speed": 1234.5}')
    out = tmp_path / "meta.json"
    arguments = [str(pipeline), str(tmp_path / "test.json"), str(out)]
    options = ["--treebank", "UDante", "--licence", "CC BY-SA 4.0"]
    monkeypatch.setattr(sys, "argv", ["pipeline_meta", *arguments, *options])
    pipeline_meta.main()
    return json.loads(out.read_text("utf8"))


def test_a_pipeline_needs_the_licence_of_its_treebank(tmp_path, monkeypatch):
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / "test.json").write_text("{}")
    arguments = [str(tmp_path), str(tmp_path / "test.json"), "out", "--treebank", "a"]
    monkeypatch.setattr(sys, "argv", ["pipeline_meta", *arguments, "--licence", ""])
    with pytest.raises(SystemExit, match="--licence is empty"):
        pipeline_meta.main()


def test_scores_of_the_test_part_replace_those_of_dev(tmp_path, monkeypatch):
    assert written(tmp_path, monkeypatch, META) == {
        "lang": "la",
        "performance": {"tag_acc": 0.5},
        "license": "MIT, CC BY-SA 4.0",
        "sources": [
            {"name": "biLM la_elmo_mini"},
            {"name": "UDante", "license": "CC BY-SA 4.0"},
        ],
    }


def test_a_pipeline_without_sources(tmp_path, monkeypatch):
    assert written(tmp_path, monkeypatch, {"sources": None})["sources"] == [
        {"name": "UDante", "license": "CC BY-SA 4.0"}
    ]


def test_a_missing_file_is_one_message(tmp_path, monkeypatch):
    arguments = [str(tmp_path), "test.json", "out", "--treebank", "a", "--licence", "b"]
    monkeypatch.setattr(sys, "argv", ["pipeline_meta", *arguments])
    with pytest.raises(SystemExit, match="meta.json"):
        pipeline_meta.main()

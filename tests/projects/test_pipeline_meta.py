"""The meta.json of a packaged pipeline: scores on test sets, licences, sources."""

import sys

import pytest
import srsly

from projects.treebank import pipeline_meta

META = {
    "lang": "la",
    "performance": {"tag_acc": 0.99},
    "license": "MIT",
    "sources": [{"name": "biLM la_elmo_mini"}],
}


def written(tmp_path, monkeypatch, meta, *scores, sources=("UDante", "CC BY-SA 4.0"), card=None):
    """Return the meta.json that the program writes."""
    pipeline = tmp_path / "model-best"
    pipeline.mkdir()
    srsly.write_json(pipeline / "meta.json", meta)
    paths = [tmp_path / f"{number}.json" for number in range(len(scores))]
    for path, content in zip(paths, scores, strict=True):
        srsly.write_json(path, content)
    out = tmp_path / "meta.json"
    options = [
        text for pair in zip(*[iter(sources)] * 2, strict=True) for text in ("--source", *pair)
    ]
    if card is not None:
        srsly.write_json(tmp_path / "card.json", card)
        options += ["--card", tmp_path / "card.json"]
    arguments = [pipeline, out, "--scores", *paths, *options]
    monkeypatch.setattr(sys, "argv", ["pipeline_meta", *map(str, arguments)])
    pipeline_meta.main()
    return srsly.read_json(out)


def test_scores_of_the_test_set_replace_those_of_dev(tmp_path, monkeypatch):
    assert written(tmp_path, monkeypatch, META, {"tag_acc": 0.5, "speed": 1234.5}) == {
        "lang": "la",
        "performance": {"tag_acc": 0.5},
        "license": "MIT, CC BY-SA 4.0",
        "spacy_version": ">=3.8.0,<3.9.0",
        "sources": [
            {"name": "biLM la_elmo_mini"},
            {"name": "UDante", "license": "CC BY-SA 4.0"},
        ],
    }


def test_each_test_set_gives_the_scores_that_those_before_it_lack(tmp_path, monkeypatch):
    tags, names = {"tag_acc": 0.5, "ents_f": None}, {"tag_acc": 0.1, "ents_f": 0.25}
    sources = ("EWT", "CC BY-SA 4.0", "WNUT17", "CC BY 4.0")
    meta = written(tmp_path, monkeypatch, META, tags, names, sources=sources)
    assert meta["performance"] == {"tag_acc": 0.5, "ents_f": 0.25}
    assert meta["license"] == "MIT, CC BY-SA 4.0, CC BY 4.0"
    assert [source["name"] for source in meta["sources"]] == ["biLM la_elmo_mini", "EWT", "WNUT17"]


def test_a_pipeline_without_sources(tmp_path, monkeypatch):
    assert written(tmp_path, monkeypatch, {"sources": None}, {})["sources"] == [
        {"name": "UDante", "license": "CC BY-SA 4.0"}
    ]


def test_fields_of_a_card_replace_those_of_the_pipeline(tmp_path, monkeypatch):
    card = {"description": "Latin of Dante", "license": "none"}
    meta = written(tmp_path, monkeypatch, META | {"description": ""}, {}, card=card)
    assert meta["description"] == "Latin of Dante"
    assert meta["license"] == "MIT, CC BY-SA 4.0"


def test_a_labelled_set_needs_its_licence(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="UDante"):
        written(tmp_path, monkeypatch, {}, {}, sources=("UDante", ""))


def test_a_missing_file_is_one_message(tmp_path, monkeypatch):
    arguments = [str(tmp_path), "out", "--scores", "test.json", "--source", "a", "b"]
    monkeypatch.setattr(sys, "argv", ["pipeline_meta", *arguments])
    with pytest.raises(SystemExit, match="meta.json"):
        pipeline_meta.main()

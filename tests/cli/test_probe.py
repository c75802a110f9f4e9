"""`python -m spacy elmo probe`: its tables, the files of its results, and rejected input."""

import json

import pytest

from spacy_elmo.lab.probe.layers import LayerReader
from spacy_elmo.lab.probe.part_of_speech import probe_tags, read_tags
from tests import pipelines, tiny
from tests.commands import elmo_as_shown

RIVER, MONEY, SKY = "bank%1:17:01::", "bank%1:14:00::", "sky%1:17:00::"


@pytest.fixture
def folder(tmp_path):
    tiny.save(tmp_path / "w.safetensors")
    records(
        tmp_path / "train-1.jsonl",
        (["the", "river", "bank"], [None, None, RIVER]),
        (["money", "in", "the", "bank"], [None, None, None, MONEY]),
    )
    records(tmp_path / "train-2.jsonl", (["my", "bank", "pays"], [None, MONEY, None]))
    # The sentence of RIVER again, so that every layer but the first must find it; and an entry that is new.
    records(tmp_path / "a.jsonl", (["the", "river", "bank"], [None, None, RIVER]))
    records(tmp_path / "b.jsonl", (["the", "sky"], [None, SKY]))
    rows = "1\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n\n"
    tags = {"a": "DET", "cat": "NOUN", "sat": "VERB", ".": "PUNCT"}
    (tmp_path / "t.conllu").write_text("".join(rows.format(*pair) for pair in tags.items()))
    return tmp_path


def records(path, *sentences):
    lines = (json.dumps({"tokens": words, "sense": senses}) for words, senses in sentences)
    path.write_text("\n".join(lines))


def run(*arguments):
    return elmo_as_shown("probe", *arguments)


def table(output):
    """Return the numbers of each row by its name."""
    rows = [line.rsplit(None, 3) for line in output.splitlines()]
    return {row[0].strip(): row[1:] for row in rows if len(row) == 4}


def test_word_sense(folder):
    out = folder / "senses.json"
    code, output = run(
        *("word-sense", folder / "w.safetensors", folder / "train-*.jsonl"),
        *(folder / "a.jsonl", folder / "b.jsonl", "--out", out),
    )
    assert code == 0, output
    rows = table(output)
    assert rows["F1 in %"] == ["a", "b", "All"]
    assert rows["Layer 1"] == rows["Layer 2"] == ["100.0", "0.0", "66.7"]
    assert rows["Most frequent sense"] == ["0.0", "0.0", "0.0"]
    assert rows["Words"] == ["1", "1", "2"]
    assert rows["that occur in TRAIN"] == rows["with several senses"] == ["1", "0", "1"]
    assert "WordNet" not in output
    figures = json.loads(out.read_text())
    assert figures["layers"][1:] == pytest.approx([2 / 3, 2 / 3])
    assert (figures["instances"], figures["first"]) == (2, None)
    assert figures["files"][str(folder / "b.jsonl")]["layers"] == [0, 0, 0]


def test_first_senses(folder):
    senses = folder / "index.sense"
    senses.write_text(f"{SKY} 09436708 1 18\n{MONEY} 08420278 1 20\n")
    code, output = run(
        *("word-sense", folder / "w.safetensors", folder / "train-1.jsonl"),
        *(folder / "a.jsonl", folder / "b.jsonl", "--first-senses", senses),
    )
    assert code == 0, output
    rows = table(output)
    assert rows["Layer 2"] == ["100.0"] * 3
    assert rows["WordNet's first sense"] == ["0.0", "100.0", "50.0"]


def test_part_of_speech(folder):
    text, out = folder / "t.conllu", folder / "tags.json"
    files = (folder / "w.safetensors", text, text, text)
    code, output = run("part-of-speech", *files, "--seed", "3", "--out", out)
    assert code == 0, output
    tagged = read_tags(text, "upos")
    reader = LayerReader(pipelines.blank(folder / "w.safetensors"))
    expected = probe_tags(reader, tagged, tagged, tagged, seed=3)
    figures = json.loads(out.read_text())
    assert figures["layers"] == pytest.approx(expected.layers)
    assert (figures["words"], figures["tags"], figures["most_frequent"]) == (4, 4, 1)
    assert "4 words of TEST, 4 tags" in output and "Most frequent tag" in output
    rows = [line.split() for line in output.splitlines()]
    for layer, accuracy in enumerate(figures["layers"]):
        both = [f"{100 * accuracy:.1f}"] * 2
        assert ["Layer", str(layer), *both] in rows
    code, output = run("part-of-speech", *files, "--column", "xpos")
    assert code == 1 and "has no tag in the column xpos" in " ".join(output.split())


def test_a_pipeline_will_do(folder):
    pipelines.blank(folder / "w.safetensors").to_disk(folder / "nlp")
    (folder / "w.safetensors").unlink()
    text = folder / "t.conllu"
    assert run("part-of-speech", folder / "nlp", text, text, text)[0] == 0


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"source": "nowhere"}, "Cannot find 'nowhere'"),
        ({"train": "none.jsonl"}, "No text at 'none.jsonl'"),
        ({"train": "plain.jsonl"}, "No word of the training text has a sense"),
        ({"test": "plain.jsonl"}, "plain.jsonl: no word has a sense"),
        ({"test": "none.jsonl"}, "none.jsonl"),
        ({"out": "nowhere/a.json"}, "nowhere does not exist"),
    ],
)
def test_errors(folder, monkeypatch, change, problem):
    monkeypatch.chdir(folder)
    records(folder / "plain.jsonl", (["a"], [None]))
    given = {
        "source": "w.safetensors",
        "train": "train-1.jsonl",
        "test": "a.jsonl",
        "out": "o.json",
    }
    given |= change
    code, output = run(
        "word-sense", given["source"], given["train"], given["test"], "--out", given["out"]
    )
    assert code == 1 and problem in " ".join(output.split())
    assert not (folder / given["out"]).exists()

"""`python -m spacy elmo neighbors`."""

import json
import re

import pytest

from tests import tiny
from tests.commands import elmo


def invoke(*arguments):
    return elmo("neighbors", *arguments)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(
        "He sat on the muddy bank of the river.\nShe asked the bank for a loan.\nNothing.\n"
    )
    return path


@pytest.fixture
def weights(tmp_path):
    return tiny.save(tmp_path / "w.safetensors", {"language": "en"})


def test_bundled_model(text):
    """Layers with context distinguish the senses. In layer 0 all uses are equal, and keep the order of the text."""
    query = "I borrowed money from the bank for a house."
    code, output = invoke("en_mini_v4", text, "bank", "-n", "1", "-q", query)
    assert code == 0
    assert "I borrowed money from the BANK for a house." in output
    nearest = re.findall(r"layer (\d) (\d\.\d\d) (.*?)\.", output)
    assert [(view, excerpt) for view, _, excerpt in nearest] == [
        ("0", "He sat on the muddy BANK of the river"),
        ("1", "She asked the BANK for a loan"),
        ("2", "She asked the BANK for a loan"),
    ]
    assert nearest[0][1] == "1.00"
    assert "Occurrences in the text: 2" in output


def test_all_files(weights, tmp_path):
    record = {"tokens": ["My", "banks", "."]}
    senses = ["bank%1:17:01::", "bank%1:14:00::"]
    (tmp_path / "in.jsonl").write_text(
        "\n".join(json.dumps({**record, "sense": [None, sense, None]}) for sense in senses)
    )
    files = [tmp_path / f"out.{suffix}" for suffix in ("json", "png", "html")]
    code, output = invoke(
        weights, tmp_path / "in.jsonl", "bank", "-q", "Our bank!", *(f"-o{file}" for file in files)
    )
    assert code == 0
    assert "Occurrences in the text: 2, annotated with 2 senses" in output
    data = json.loads(files[0].read_text("utf8"))
    assert [one["sense"] for one in data["occurrences"]] == senses
    assert [one["source"] for one in data["occurrences"]] == ["in.jsonl"] * 2
    (query,) = data["queries"]
    assert (query["left"], query["word"], query["right"]) == ("Our ", "bank", "!")
    assert set(query["neighbors"]) == set(query["points"]) == {"layer 0", "layer 1", "layer 2"}
    # Both are the same sentence, so one stands for both.
    assert [one["sense"] for one in query["neighbors"]["layer 2"]] == senses[:1]
    assert files[1].read_bytes().startswith(b"\x89PNG")
    page = files[2].read_text("utf8")
    assert "in.jsonl, vectors of " in page and "bank%1:14:00:: (1)" in page


def test_one_view(weights, text, tmp_path):
    out = tmp_path / "out.json"
    for layers, view in (("average", "average of the layers"), ("top", "layer 2")):
        assert invoke(weights, text, "bank", "--layers", layers, "-o", out)[0] == 0
        assert list(json.loads(out.read_text())["variance"]) == [view]


def test_tokenized(weights, tmp_path):
    (tmp_path / "in.txt").write_text("a bank. bank , b\n")
    out = tmp_path / "out.json"
    arguments = [weights, tmp_path / "in.txt", "bank.", "--tokenized", "-o", out]
    assert invoke(*arguments, "-q", "the bank. here")[0] == 0
    data = json.loads(out.read_text())
    assert [(one["left"], one["right"]) for one in data["occurrences"]] == [("a ", " bank , b")]
    assert [(one["left"], one["right"]) for one in data["queries"]] == [("the ", " here")]


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["bank"], "Nothing to do. Use --query SENTENCE"),
        (["tree", "-q", "A tree."], "'tree' does not occur in the text"),
        (["", "-q", "A tree."], "'' is not a word"),
        (["bank", "-q", "A tree."], "The query 'A tree.' does not contain the word 'bank'"),
        (
            ["bank", "-o", "out.txt"],
            "--out out.txt: the file name must end in .png, .html or .json",
        ),
    ],
)
def test_what_cannot_be_shown(weights, text, arguments, problem):
    code, output = invoke(weights, text, *arguments)
    assert (code, problem in output) == (1, True)


def test_no_such_text(weights, tmp_path):
    code, output = invoke(weights, tmp_path / "nowhere.txt", "bank", "-o", tmp_path / "out.png")
    assert code == 1 and "No text at" in output
    assert not (tmp_path / "out.png").exists()

"""`python -m spacy elmo search`: an index, its queries, and rejected input."""

import json

import pytest

from tests import pipelines, tiny
from tests.commands import elmo

TEXT = "The boat lay on the river bank. It was old!\n\nThe bank gave him money.\n"


@pytest.fixture
def folder(tmp_path):
    card = {"language": "en"}
    tiny.save(tmp_path / "w.safetensors", card)
    (tmp_path / "a.txt").write_text(TEXT)
    return tmp_path


def run(*arguments, stdin=None):
    return elmo("search", *arguments, stdin=stdin)


def make(folder, *options):
    return run("index", folder / "w.safetensors", folder / "a.txt", folder / "index", *options)


@pytest.mark.parametrize("options", [[], ["--method", "hnsw"], ["--layer", "2"]])
def test_index_and_query(folder, options):
    code, output = make(folder, *options)
    assert code == 0 and "3 sentences" in output
    code, output = run("query", folder / "index", "The bank gave him money.", "-n", "2", "--json")
    assert code == 0, output
    actual = json.loads(output)
    assert actual["query"] == "The bank gave him money." and len(actual["hits"]) == 2
    best, second = actual["hits"]
    assert best["doc_id"] == f"{folder / 'a.txt'}:3"
    assert (best["start"], best["end"], best["text"]) == (0, 6, "The bank gave him money.")
    assert best["cosine"] == pytest.approx(1)
    nlp = pipelines.blank(folder / "w.safetensors")
    layers = [nlp(hit["text"])._.elmo_layers for hit in (best, second)]
    layers = [x[2] if "--layer" in options else x.mean(0) for x in layers]
    x, y = (rows.mean(0) for rows in layers)
    assert second["cosine"] == pytest.approx(x @ y / ((x @ x) * (y @ y)) ** 0.5, abs=1e-5)


def test_table_of_each_query(folder):
    assert make(folder)[0] == 0
    code, output = run(
        "query", folder / "index", "-", "-n", 1, stdin="\ufeffIt was old!\n\nThe boat\n"
    )
    assert code == 0, output
    assert output.count("Cosine Document") == 2
    assert f"1.000 {folder / 'a.txt'}:1 It was old!" in output
    assert "Cosine Document The boat" in output


def test_overwriting(folder):
    arguments = ["index", folder / "w.safetensors", folder / "a.txt", folder / "index"]
    assert run(*arguments)[0] == 0
    code, output = run(*arguments)
    assert code == 1 and "is not empty" in output
    (folder / ".index.1-1.partial").mkdir()  # of a process that was killed
    (folder / "a.txt").write_text("Only one.\n")
    assert run(*arguments, "--force")[0] == 0
    assert not (folder / ".index.1-1.partial").exists()
    code, output = run("query", folder / "index", "The bank", "--json")
    assert [hit["text"] for hit in json.loads(output)["hits"]] == ["Only one."]


def test_the_output_of_embed_is_an_index(folder):
    weights, out = folder / "w.safetensors", folder / "vectors"
    arguments = ["embed", weights, folder / "a.txt", out, "--unit", "span", "--layers", "average"]
    assert elmo(*arguments)[0] == 0
    code, output = run("query", out, "It was old!", "--json")
    assert code == 1 and "does not name its pipeline. Give it (`--pipeline`)" in output
    code, output = run("query", out, "It was old!", "--json", "--pipeline", weights)
    assert code == 0, output
    assert json.loads(output)["hits"][0]["text"] == "It was old!"


def test_moved_pipeline(folder):
    assert make(folder)[0] == 0
    (folder / "w.safetensors").rename(folder / "moved.safetensors")
    code, output = run("query", folder / "index", "The bank")
    assert code == 1 and "w.safetensors" in output
    assert run("query", folder / "index", "It", "--pipeline", folder / "moved.safetensors")[0] == 0
    code, output = run("query", folder / "index", "It", "--pipeline", "en_mini_v4")
    assert code == 1 and "is not the pipeline of the index, or has changed" in output


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["index", "nowhere", "a.txt", "out"], "Cannot find 'nowhere'"),
        (["index", "w.safetensors", "none.txt", "out"], "No text at 'none.txt'"),
        (["index", "w.safetensors", "blank.txt", "out"], "The text 'blank.txt' contains no words"),
        (["index", "w.safetensors", "a.txt", "a.txt"], "a.txt is a file"),
        (["index", "w.safetensors", "a.txt", "out", "--layer", "7"], "layer = 7 does not exist"),
        (["query", "out", "The bank"], "no index in out"),
    ],
)
def test_errors(folder, monkeypatch, arguments, problem):
    monkeypatch.chdir(folder)
    (folder / "blank.txt").write_text("\n")
    code, output = run(*arguments)
    assert code == 1 and problem in output
    assert not (folder / "out").exists()


def test_query_without_words(folder):
    assert make(folder)[0] == 0
    code, output = run("query", folder / "index", " ")
    assert code == 1 and "The query ' ' contains no words" in output


def test_lines_that_are_no_queries(folder):
    assert make(folder)[0] == 0
    given = "The boat\n \n\u3000\nCaf\u00e9\n".encode() + b"A caf\xe9\nIt\n"
    code, output = run("query", folder / "index", "-", "-n", 1, stdin=given)
    assert code == 1
    assert "Cosine Document The boat" in output and "Cosine Document Caf\u00e9" in output
    assert output.count("Cosine Document") == 2
    assert "Standard input, line 5: 'utf-8' codec can't decode byte 0xe9" in output

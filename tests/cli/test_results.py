"""The values that commands print and write."""

import hashlib
import json
import math
import re
import shlex
import signal
import subprocess
import sys
import urllib.request

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from spacy_elmo.converters import download
from tests import tiny
from tests.cli.conftest import MONEY, RIVER
from tests.commands import elmo, elmo_as_shown
from tests.converters.test_download import SHA256, Server


def run(line, stdin=None):
    """Return the output of a command that works."""
    code, output = elmo_as_shown(*shlex.split(line), stdin=stdin)
    assert code == 0, output
    return output


def written(line):
    """Return the JSON file that a command writes."""
    run(f"{line} -o out.json")
    with open("out.json", encoding="utf8") as file:
        return json.load(file)


def records(line, stdin=None):
    """Return the lines of JSON that a command prints."""
    return [json.loads(row) for row in run(f"{line} --json", stdin).splitlines()]


def test_info(folder):
    shown = " ".join(run("info lm.safetensors").split())
    content = (folder / "lm.safetensors").read_bytes()
    parameters = sum(p.numel() for p in tiny.bilm(tiny.config()).parameters())
    for row in (
        f"size {len(content) / 1e3:,.1f} kB, {parameters:,} parameters without the head, float32",
        f"sha256 {hashlib.sha256(content).hexdigest()}",
        "vectors 10 numbers per token in each of 3 layers",
        "head softmax over 7 words",
    ):
        assert row in shown


WORDS = "The bank in Rome is n't old . She sat on it .".split()
GIVEN = "The bank in Rome isn't old. She sat on it.".split()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("lm.safetensors text.txt out", WORDS),
        ("nlp text.txt out --layers top", WORDS),
        ("none.safetensors text.txt out --lang en", WORDS),
        ("none.safetensors text.txt out --tokenized", GIVEN),
        ("lm.safetensors text.txt out --unit span", ["The bank in Rome isn't old.", "She sat on it."]),
    ],
)  # fmt: skip
def test_texts_of_embed(folder, arguments, expected):
    run(f"embed {arguments}")
    assert pq.read_table("out")["text"].to_pylist() == expected


def test_options_of_embed(folder):
    run("embed lm.safetensors text.txt out --layers average --dtype float16")
    assert str(pq.read_table("out")["vector"].type.value_type) == "halffloat"
    run("embed lm.safetensors text.txt v.hdf5 --format hdf5")
    with h5py.File("v.hdf5") as file:
        assert [file[name].shape for name in "12"] == [(3, 0, 10), (3, 5, 10)]


def test_no_bar_of_a_short_run_is_in_a_log_file(folder):
    _, output = elmo("search", "index", "lm.safetensors", "boat.txt", "index")
    assert "%|" not in output


def test_queries_of_an_index(folder):
    run("search index lm.safetensors boat.txt index --method hnsw --layer 2")
    (best, _) = records("search query index 'The bank gave him money.' -n 2")[0]["hits"]
    assert (best["doc_id"], best["start"], best["end"]) == ("boat.txt:3", 0, 6)
    assert (best["text"], best["cosine"]) == ("The bank gave him money.", pytest.approx(1))
    given = "\ufeffIt was old!\n \n\u3000\nCaf\u00e9\n".encode() + b"A caf\xe9\nIt\n"
    code, output = elmo("search", "query", "index", "-", "-n", 1, stdin=given)
    assert code == 1 and "1.000 boat.txt:1 It was old!" in output
    assert "Cosine Document Caf\u00e9" in output and output.count("Cosine Document") == 2
    assert "Standard input, line 5: 'utf-8' codec can't decode byte 0xe9" in output
    for query, problem in (
        ("' '", "The query ' ' contains no words"),
        ("It --pipeline en_mini_v4", "is not the pipeline of the index, or has changed"),
    ):
        code, output = elmo(*shlex.split(f"search query index {query}"))
        assert code == 1 and problem in output
    (folder / "lm.safetensors").rename("moved.safetensors")
    assert elmo("search", "query", "index", "It")[0] == 1
    run("search query index It --pipeline moved.safetensors")
    (folder / ".index.1-1.partial").mkdir()  # of a process that was killed
    run("search index moved.safetensors bird.txt index --force")
    assert not (folder / ".index.1-1.partial").exists()
    assert [hit["text"] for hit in records("search query index It")[0]["hits"]] == ["Café 鳥 ."]
    run("embed moved.safetensors boat.txt vectors --unit span --layers average")
    (found,) = records("search query vectors 'It was old!' --pipeline moved.safetensors")
    assert found["hits"][0]["text"] == "It was old!"
    code, output = elmo("search", "query", "vectors", "It")
    assert code == 1 and "does not name its pipeline. Give it (`--pipeline`)" in output


@pytest.mark.parametrize("tokenized", ["", "--tokenized"])
def test_scores_add_up_to_the_perplexity(folder, tokenized):
    metrics = written(f"evaluate lm.safetensors a.txt {tokenized}")
    scores = records(f"score lm.safetensors a.txt {tokenized}")
    sentences = 2 if tokenized else 3
    assert metrics["targets"] == 9 + sentences
    assert metrics["unk_share"] == pytest.approx(1 / (9 + sentences))
    for direction, borders in (("forward", "sentence_ends"), ("backward", "sentence_starts")):
        found = [x for record in scores for x in record[direction] + record[borders]]
        assert len(found) == metrics["targets"]
        assert math.exp(-np.mean(found)) == pytest.approx(metrics[direction], rel=1e-4)
    names = ["mean", "forward", "backward", "mean_known", "forward_known", "backward_known"]
    output = " ".join(run(f"evaluate lm.safetensors a.txt {tokenized}").split())
    assert " ".join(f"{metrics[name]:.1f}" for name in names) in output


def test_table_of_scores(folder):
    rows = [row.split() for row in run("score lm.safetensors a.txt -n 2").splitlines() if row]
    assert rows[0] == ["Token", "Forward", "Backward", "Substitutes"]
    names = [row[0] for row in rows if row[0] != "Token" and not row[0].startswith("-")]
    assert names == [
        *["<S>", "the", "cat", "sleeps", ".", "</S>", "<S>", "the", "cat", "</S>"],
        *["<S>", "rain", "sleeps", ".", "</S>"],
    ]
    record, rain = records("score lm.safetensors a.txt -n 2")
    assert rows[3][:3] == ["the", f"{record['forward'][0]:.2f}", f"{record['backward'][0]:.2f}"]
    assert rows[3][3:] == [word for word, _ in record["substitutes"][0]] and len(rows[3]) == 5
    assert rain["unknown"] == [True, False, False]
    text = (folder / "a.txt").read_text()
    assert records("score lm.safetensors - -n 2", stdin=f"\ufeff{text}") == [record, rain]


def test_bundled_weights_are_a_language_model():
    (record,) = records("score en_mini_v4 -", stdin="He looked out of the window .")
    # Of 50,000 words; a model that knows nothing gives each of them -10.8 on average.
    assert -5 < sum(record["forward"]) / 7 < -2 and -5 < sum(record["backward"]) / 7 < -2


def test_infinite_perplexity_is_written(folder):
    assert written("evaluate diverged.safetensors a.txt")["mean"] == math.inf


def test_package(folder):
    run("package lm.safetensors models --name en_tiny_v1 --card card.json --head")
    head = folder / "models" / "en_tiny_v1_with_head.safetensors"
    for file in (folder / "models/en_tiny/en_tiny/en_tiny_v1.safetensors", head):
        card = Weights.load(file).card
        assert (card["language"], card["licence"], card["sources"]) == ("en", "CC0 1.0", ["a book"])
    assert Weights.load(head).build_head() is not None


def test_download(tmp_path, monkeypatch):
    """Missing checksums and the command that converts the files are shown."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("SPACY_ELMO_CACHE", str(tmp_path / "my cache"))
    monkeypatch.setattr(download, "CATALOGUE", tmp_path / "models.json")

    def catalogue(files, **more):
        record = {
            "name": "some", "languages": ["xx"], "format": "bilm-hdf5", "parameters": None, "licence": "not stated",
            "about": "Something", "source": "https://host.invalid", "files": files, **more,
        }  # fmt: skip
        download.CATALOGUE.write_text(json.dumps([record]), "utf8")

    with Server() as server:
        folder = tmp_path / "my cache" / "some"
        catalogue({server.url("whole", "a.json"): None, server.url("whole", "b.hdf5"): SHA256})
        output = run("download some")
        assert "Licence: not stated (https://host.invalid)" in output
        assert "checksum of a.json" in output and "checksum of b.hdf5" not in output
        command = f"python -m spacy elmo convert bilm-hdf5 '{folder}' OUT_FILE --lang xx"
        assert output.splitlines()[-1].strip() == command
        files = {server.url("whole", "b.hdf5"): SHA256}
        catalogue(files, options={"vocabulary": "c.txt"})
        command = f"'{folder}/b.hdf5' OUT_FILE --vocabulary '{folder}/c.txt' --lang xx"
        assert command in run("download some")
        catalogue(files)
        assert f"convert bilm-hdf5 '{folder}/b.hdf5' OUT_FILE" in run("download some")


def test_explore_serves_the_page_until_it_is_ended(folder):
    command = [sys.executable, "-m", "spacy", "elmo", "explore", "bare.safetensors", "a.txt"]
    options = ["--port", "0", "--no-browser"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        output = ""
        while "Ctrl-C" not in output:
            output += process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", output)[0]
        with urllib.request.urlopen(f"{address}api/corpus", timeout=120) as response:
            answer = json.load(response)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert (answer["tokens"], answer["sentences"], answer["language_model"]) == (9, 3, False)


def test_layers(folder):
    one, two = written("layers one/best two/best")
    assert (one["pipeline"], one["component"], one["layers"]) == ("one", "tagger", "mix")
    assert (two["pipeline"], two["layers"], two["weights"]) == ("two", "top", [0, 0, 1])
    run("layers one/best two/best -o out.png")
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")


def test_neighbors(folder):
    rows = ({"tokens": ["My", "banks", "."], "sense": [None, s, None]} for s in (RIVER, MONEY))
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    line = "neighbors lm.safetensors in.jsonl bank -q 'Our bank!'"
    data = written(line)
    assert [one["sense"] for one in data["occurrences"]] == [RIVER, MONEY]
    assert [one["source"] for one in data["occurrences"]] == ["in.jsonl:1", "in.jsonl:2"]
    (query,) = data["queries"]
    assert (query["left"], query["word"], query["right"]) == ("Our ", "bank", "!")
    assert set(query["neighbors"]) == set(query["points"]) == {"layer 0", "layer 1", "layer 2"}
    # Both are the same sentence, so one stands for both.
    assert [one["sense"] for one in query["neighbors"]["layer 2"]] == [RIVER]
    run(f"{line} -o out.html")
    page = (folder / "out.html").read_text("utf8")
    assert "in.jsonl, vectors of " in page and f"{MONEY} (1)" in page


def test_probes(folder):
    senses = written("probe word-sense bare.safetensors train-*.jsonl a.jsonl b.jsonl")
    assert (senses["instances"], senses["layers"][1:]) == (2, pytest.approx([2 / 3, 2 / 3]))
    assert senses["files"]["b.jsonl"]["layers"] == [0, 0, 0]
    tags = written("probe part-of-speech nlp t.conllu t.conllu")
    assert tags == {"words": 4, "tags": 4, "layers": [1, 1, 1], "most_frequent": 1}


@pytest.mark.parametrize(
    "line", ["score lm.safetensors -", "neighbors lm.safetensors bird.txt 鳥 -q 'Die 鳥 da.'"]
)
def test_output_without_utf8(folder, line):
    """Input is UTF-8 in any locale. Characters that the encoding of the output lacks become question marks."""
    runner = CliRunner(charset="latin1")
    done = runner.invoke(elmo_cli, shlex.split(line), input="café 鳥\n".encode())
    assert (done.exit_code, done.stderr) == (0, "")
    assert "caf" in done.stdout.lower() and "?" in done.stdout

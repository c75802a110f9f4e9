"""The commands that analyse a biLM: for each command line, the exit code and a fragment of the output."""

import json
import math
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import spacy
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny
from tests.commands import elmo, elmo_as_shown

RIVER, MONEY, SKY = "bank%1:17:01::", "bank%1:14:00::", "sky%1:17:00::"
VOCABULARY = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>"]
TAGS = {"a": "DET", "cat": "NOUN", "sat": "VERB", ".": "PUNCT"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    torch.manual_seed(0)
    card = {"language": "en", "tokenizer": "spacy.blank('en')"}
    head = Head(len(VOCABULARY), 5)
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=VOCABULARY, card=card)
    weights.save(folder / "lm.safetensors")
    weights.without_head().save(folder / "bare.safetensors")
    senses = {
        "train-1": [
            (["the", "river", "bank"], [None, None, RIVER]),
            (["money", "in", "the", "bank"], [None, None, None, MONEY]),
        ],
        "train-2": [(["my", "bank", "pays"], [None, MONEY, None])],
        # The sentence of RIVER again, so that every layer but the first must find it; and an entry that is new.
        "a": [(["the", "river", "bank"], [None, None, RIVER])],
        "b": [(["the", "sky"], [None, SKY])],
        "plain": [(["a"], [None])],
    }
    for name, sentences in senses.items():
        rows = (json.dumps({"tokens": words, "sense": keys}) for words, keys in sentences)
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    (folder / "index.sense").write_text(f"{SKY} 09436708 1 18\n{MONEY} 08420278 1 20\n")
    rows = "1\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n\n"
    (folder / "t.conllu").write_text("".join(rows.format(*pair) for pair in TAGS.items()))
    (folder / "untagged.conllu").write_text(rows.format("cat", "_"))
    (folder / "a.txt").write_text("the cat sleeps . the cat\n\nrain  sleeps .\n")
    (folder / "blank.txt").write_text(" \n")
    (folder / "bank.txt").write_text(
        "He sat on the muddy bank of the river.\nShe asked the bank for a loan.\nNothing.\n"
    )
    pipelines.blank(folder / "lm.safetensors").to_disk(folder / "nlp")
    for name, choice in (("one", "mix"), ("two", "top")):
        nlp = pipelines.blank(folder / "lm.safetensors")
        pipelines.add_tagger(nlp, layers=choice)
        nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        (folder / name).mkdir()
        nlp.to_disk(folder / name / "best")
    code = "from spacy.language import Language\n@Language.component('{}')\ndef f(doc):\n    return doc\n"
    (folder / "code.py").write_text(code.format("of_the_user"))
    spacy.util.import_file("python_code", folder / "code.py")
    nlp.add_pipe("of_the_user")
    nlp.to_disk(folder / "custom")
    (folder / "zz").mkdir()
    (folder / "zz" / "meta.json").write_text('{"lang": "zz"}')
    (folder / "zz" / "config.cfg").write_text('[nlp]\nlang = "zz"\npipeline = []\n[components]\n')
    return folder


PROBE = "probe word-sense bare.safetensors"
TABLE = [
    (f"{PROBE} train-*.jsonl a.jsonl b.jsonl", 0, "Layer 1 100.0 0.0 66.7 Layer 2 100.0 0.0 66.7"),
    (f"{PROBE} train-*.jsonl a.jsonl b.jsonl", 0, "Words 1 1 2 that occur in TRAIN 1 0 1 with several senses 1 0 1"),
    (f"{PROBE} train-1.jsonl a.jsonl b.jsonl --first-senses index.sense", 0, "WordNet's first sense 0.0 100.0 50.0"),
    (f"{PROBE} none.jsonl a.jsonl", 1, "No text at 'none.jsonl'"),
    (f"{PROBE} plain.jsonl a.jsonl", 1, "No word of the training text has a sense"),
    (f"{PROBE} train-1.jsonl plain.jsonl", 1, "plain.jsonl: no word has a sense"),
    (f"{PROBE} train-1.jsonl a.jsonl -o nowhere/a.json", 1, "nowhere does not exist"),
    ("probe word-sense nowhere train-1.jsonl a.jsonl", 1, "Cannot find 'nowhere'"),
    ("probe part-of-speech nlp t.conllu t.conllu", 0, "Accuracy in % 4 words, 4 tags"),
    ("probe part-of-speech nlp t.conllu untagged.conllu", 1, "'cat' has no tag"),
    ("layers one/best", 0, "tagger mix 1.000 0.333 0.333 0.333"),
    ("layers one/best two/best", 0, "one tagger mix 1.000 0.333 0.333 0.333 two tagger top 1.000 0.000 0.000 1.000"),
    ("layers custom --code code.py", 0, "tagger top"),
    ("layers nlp", 1, "No component of the pipeline uses the layers"),
    ("layers nowhere", 1, "Cannot find 'nowhere'"),
    ("layers zz", 1, "Cannot load the pipeline 'zz'"),
    ("layers one/best -o out.pdf", 1, "the file name must end in .png or .json"),
    ("layers one/best -o nowhere/out.png", 1, "nowhere does not exist"),
    ("neighbors en_mini_v4 bank.txt bank -n 1 -q 'I borrowed money from the bank.'", 0,
     "layer 0 1.00 He sat on the muddy BANK of the river."),
    ("neighbors lm.safetensors bank.txt bank", 1, "Nothing to do. Use --query SENTENCE"),
    ("neighbors lm.safetensors bank.txt tree -q 'A tree.'", 1, "'tree' does not occur in the text"),
    ("neighbors lm.safetensors bank.txt '' -q 'A tree.'", 1, "'' is not a word"),
    ("neighbors lm.safetensors bank.txt bank -q 'A tree.'", 1, "'A tree.' does not contain the word 'bank'"),
    ("neighbors lm.safetensors bank.txt bank -o out.png", 1, "the file name must end in .html or .json"),
    ("neighbors lm.safetensors none.txt bank -o out.html", 1, "No text at"),
    ("explore none.safetensors a.txt", 1, "there is no file"),
    ("explore nlp a.txt", 1, "is not a weights file"),
    ("explore lm.safetensors none.txt --port 0", 1, "No text at"),
    ("explore lm.safetensors blank.txt --port 0", 1, "contains no words"),
    ("evaluate lm.safetensors a.txt", 0, "Vocabulary: 7 classes"),
    ("evaluate lm.safetensors blank.txt", 1, "'blank.txt' contains no sentence"),
    ("evaluate lm.safetensors a.txt -o nowhere/m.json", 1, "nowhere does not exist"),
    ("score lm.safetensors a.txt", 0, "rain unknown unknown sleeps"),
    *[
        (f"{command} {arguments}", 1, fragment)
        for command in ("evaluate", "score")
        for arguments, fragment in (
            ("bare.safetensors a.txt", "no head"),
            ("none.safetensors a.txt", "there is no file"),
            ("lm.safetensors none.txt", "No text at"),
            ("lm.safetensors a.txt --lang xyz", "xyz"),
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize("line, code, fragment", TABLE)
def test_command_line(folder, monkeypatch, line, code, fragment):
    monkeypatch.chdir(folder)
    actual = elmo(*shlex.split(line))
    assert (actual[0], fragment in actual[1]) == (code, True), actual[1]


def written(folder, tmp_path, line):
    """Return the JSON file that a command writes."""
    code, output = elmo(*shlex.split(line), "-o", tmp_path / "out.json")
    assert code == 0, output
    return json.loads((tmp_path / "out.json").read_text("utf8"))


def test_written_probes(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    senses = written(folder, tmp_path, f"{PROBE} train-*.jsonl a.jsonl b.jsonl")
    assert (senses["instances"], senses["layers"][1:]) == (2, pytest.approx([2 / 3, 2 / 3]))
    assert senses["files"]["b.jsonl"]["layers"] == [0, 0, 0]
    tags = written(folder, tmp_path, "probe part-of-speech nlp t.conllu t.conllu")
    assert tags == {"words": 4, "tags": 4, "layers": [1, 1, 1], "most_frequent": 1}


def test_written_layers(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    one, two = written(folder, tmp_path, "layers one/best two/best")
    assert (one["pipeline"], one["component"], one["layers"]) == ("one", "tagger", "mix")
    assert (two["pipeline"], two["layers"], two["weights"]) == ("two", "top", [0, 0, 1])
    assert elmo("layers", "one/best", "two/best", "-o", tmp_path / "out.png")[0] == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.delitem(sys.modules, "spacy_elmo.lab.figures")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, output = elmo("layers", "one/best", "-o", tmp_path / "out.png")
    assert code == 1 and 'pip install "spacy-elmo[figures]"' in output


def test_written_neighbors(folder, tmp_path):
    text = tmp_path / "in.jsonl"
    rows = ({"tokens": ["My", "banks", "."], "sense": [None, s, None]} for s in (RIVER, MONEY))
    text.write_text("\n".join(map(json.dumps, rows)))
    line = f"neighbors {folder}/lm.safetensors {text} bank -q 'Our bank!'"
    data = written(folder, tmp_path, line)
    assert [one["sense"] for one in data["occurrences"]] == [RIVER, MONEY]
    assert [one["source"] for one in data["occurrences"]] == ["in.jsonl:1", "in.jsonl:2"]
    (query,) = data["queries"]
    assert (query["left"], query["word"], query["right"]) == ("Our ", "bank", "!")
    assert set(query["neighbors"]) == set(query["points"]) == {"layer 0", "layer 1", "layer 2"}
    # Both are the same sentence, so one stands for both.
    assert [one["sense"] for one in query["neighbors"]["layer 2"]] == [RIVER]
    code, output = elmo(*shlex.split(line), "-o", tmp_path / "out.html")
    assert code == 0 and "Occurrences in the text: 2, annotated with 2 senses" in output
    page = (tmp_path / "out.html").read_text("utf8")
    assert "in.jsonl, vectors of " in page and f"{MONEY} (1)" in page


def scores(*args, stdin=None):
    code, output = elmo_as_shown("score", *args, "--json", stdin=stdin)
    assert code == 0, output
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("tokenized", [[], ["--tokenized"]])
def test_scores_add_up_to_the_perplexity(folder, tmp_path, tokenized):
    model, text = folder / "lm.safetensors", folder / "a.txt"
    metrics = written(folder, tmp_path, f"evaluate {model} {text} {' '.join(tokenized)}")
    records = scores(model, text, *tokenized)
    sentences = 2 if tokenized else 3
    assert metrics["targets"] == 9 + sentences
    assert metrics["unk_share"] == pytest.approx(1 / (9 + sentences))
    for direction, borders in (("forward", "sentence_ends"), ("backward", "sentence_starts")):
        found = [x for record in records for x in record[direction] + record[borders]]
        assert len(found) == metrics["targets"]
        assert math.exp(-np.mean(found)) == pytest.approx(metrics[direction], rel=1e-4)
    _, output = elmo("evaluate", model, text, *tokenized)
    names = ["mean", "forward", "backward", "mean_known", "forward_known", "backward_known"]
    assert " ".join(f"{metrics[name]:.1f}" for name in names) in output


def test_table_of_scores(folder):
    model, text = folder / "lm.safetensors", folder / "a.txt"
    code, output = elmo_as_shown("score", model, text, "-n", "2")
    rows = [line.split() for line in output.splitlines() if line.strip()]
    assert code == 0 and rows[0] == ["Token", "Forward", "Backward", "Substitutes"]
    names = [row[0] for row in rows if row[0] != "Token" and not row[0].startswith("-")]
    assert names == [
        *["<S>", "the", "cat", "sleeps", ".", "</S>", "<S>", "the", "cat", "</S>"],
        *["<S>", "rain", "sleeps", ".", "</S>"],
    ]
    record, _ = scores(model, text, "-n", "2")
    assert rows[3][:3] == ["the", f"{record['forward'][0]:.2f}", f"{record['backward'][0]:.2f}"]
    assert rows[3][3:] == [word for word, _ in record["substitutes"][0]] and len(rows[3]) == 5


def test_standard_input(folder):
    model, text = folder / "lm.safetensors", folder / "a.txt"
    from_file = scores(model, text)
    assert scores(model, "-", stdin="\ufeff" + text.read_text()) == from_file
    assert from_file[1]["tokens"] == ["rain", "sleeps", "."]
    assert from_file[1]["unknown"] == [True, False, False]
    code, output = elmo("score", model, "-", stdin=b"a\n\xff\n")
    assert code == 1 and "Standard input, line 2" in output


@pytest.mark.parametrize(
    "line", ["score lm.safetensors -", "neighbors lm.safetensors bird.txt 鳥 -q 'Die 鳥 da.'"]
)
def test_output_without_utf8(folder, line):
    """Input is UTF-8 in any locale. Characters that the encoding of the output lacks become question marks."""
    (folder / "bird.txt").write_text("Café 鳥 .\n", encoding="utf8")
    done = subprocess.run(
        [sys.executable, "-m", "spacy", "elmo", *shlex.split(line)],
        input="café 鳥\n".encode(), capture_output=True, cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "latin1"},
    )  # fmt: skip
    output = done.stdout.decode("latin1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "caf" in output.lower() and "?" in output and "鳥" not in output


def test_bundled_weights_are_a_language_model():
    (record,) = scores("en_mini_v4", "-", stdin="He looked out of the window .")
    # Of 50,000 words; a model that knows nothing gives each of them -10.8 on average.
    assert -5 < sum(record["forward"]) / 7 < -2 and -5 < sum(record["backward"]) / 7 < -2


def test_infinite_perplexity_is_written(folder, tmp_path):
    weights = Weights.load(folder / "lm.safetensors")
    weights.tensors["head.bias"][:] = 0
    weights.tensors["head.bias"][0] = 1e30
    weights.save(tmp_path / "diverged.safetensors")
    line = f"evaluate {tmp_path}/diverged.safetensors {folder}/a.txt"
    assert written(folder, tmp_path, line)["mean"] == math.inf


@pytest.mark.parametrize("corpus", ["a.txt", "vectors"])
def test_explore_serves_the_page_until_it_is_ended(folder, corpus):
    if corpus == "vectors" and not (folder / corpus).exists():
        assert elmo("embed", folder / "bare.safetensors", folder / "a.txt", folder / corpus)[0] == 0
    command = [sys.executable, "-m", "spacy", "elmo", "explore", "bare.safetensors", corpus]
    with subprocess.Popen(
        [*command, "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        output = ""
        while "Ctrl-C" not in output:
            output += process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", output)[0]
        with urllib.request.urlopen(f"{address}api/corpus", timeout=120) as response:
            answer = json.load(response)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert (answer["tokens"], answer["sentences"], answer["language_model"]) == (9, 3, False)


def test_explore_needs_a_free_port(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = elmo("explore", "lm.safetensors", "a.txt", "--port", port)
    assert code == 1 and f"Port {port} cannot be used" in output

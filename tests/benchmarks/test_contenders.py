"""The contenders read all of the same sentences, in a process that answers for itself."""

import io
import json
import sys
from pathlib import Path

import contender_process
import pytest
import spacy
import torch
from contender_process import ContenderProcess
from contenders import Pipe, make
from transformer import transformer_pipeline, write_transformer

from spacy_elmo.bilm.weights import Weights
from tests import tiny

SENTENCES = [["cat"], ["the", "naïve", "cat"], ["a", "cat", "sat"], ["it", "."]]
linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="Linux tells a process its memory there"
)


@pytest.fixture
def files(tmp_path):
    weights = Weights.of(tiny.bilm(tiny.config()), card={"language": "en"})
    weights.write(tmp_path / "weights.safetensors")
    (tmp_path / "sentences.json").write_text(json.dumps(SENTENCES), "utf8")
    return tmp_path


def test_network_reads_batches(files):
    contender = make("network", "float32", files, None)
    seen = []
    bilm = contender.bilm
    contender.bilm = lambda *args: seen.append(bilm(*args).layers)
    contender.bilm.token_ids = bilm.token_ids
    contender.read(contender.prepare(SENTENCES, 3))
    expected = tiny.read(Weights.read(files / "weights.safetensors").bilm(), SENTENCES).layers
    assert [layers.shape[1] for layers in seen] == [7, 2]
    torch.testing.assert_close(torch.cat(seen, 1), expected, atol=1e-6, rtol=0)


def test_pipe_reads_all_docs_in_order_and_gives_them_up():
    seen = []
    nlp = spacy.blank("en")
    pipe = nlp.pipe
    nlp.pipe = lambda docs, batch_size: pipe(
        (seen.append((len(prepared[0]), doc.text)) or doc for doc in docs), batch_size=batch_size
    )
    contender = Pipe(nlp)
    prepared = contender.prepare(SENTENCES, 2)
    contender.read(prepared)
    assert seen == [(3, "cat "), (2, "the naïve cat "), (1, "a cat sat "), (0, "it . ")]


@linux
@pytest.mark.parametrize("kind", ["network", "nlp.pipe", "products"])
def test_a_process_answers_line_by_line(files, monkeypatch, capsys, kind):
    monkeypatch.setattr(sys, "argv", ["contender_process.py", kind, "float32", str(files), "1"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("[0, 4, 2]\n[1, 2, 1]\n"))
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # main sends what others print elsewhere
    contender_process.main()
    readings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(readings) == 2
    assert all(0 < reading["seconds"] < 60 for reading in readings)
    assert all(reading["peak"] < 1000 for reading in readings)


def test_a_process_that_fails(files, monkeypatch):
    monkeypatch.setattr(contender_process.sys, "executable", "false")
    with ContenderProcess("network", "float32", files, 1, None) as process:
        with pytest.raises(RuntimeError, match="network float32 .* has failed"):
            process.read(0, 4, 2)


def test_transformer_has_a_piece_for_each_word(tmp_path):
    words = [word for sentence in SENTENCES for word in sentence]
    write_transformer(tmp_path / "bert", 1, words)
    nlp = transformer_pipeline(tmp_path / "bert")
    contender = Pipe(nlp)
    (first, *_), _ = contender.prepare(SENTENCES[1:], 2)
    doc = nlp(first)
    assert doc._.trf_data.wordpieces.strings == [["[CLS]", "the", "naïve", "cat", "[SEP]"]]
    assert doc._.trf_data.model_output.last_hidden_state.shape == (1, 5, 768)

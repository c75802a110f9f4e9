"""All contenders process the same sentences, and their processes answer line by line."""

import io
import json
import sys
from pathlib import Path

import pytest
import spacy
import torch
from contest import contender_process
from contest.contender_process import ContenderProcess
from contest.contenders import Pipe, make
from contest.transformer import transformer_pipeline, write_transformer

from spacy_elmo.bilm.weights import Weights
from tests import tiny

SENTENCES = [["cat"], ["the", "naïve", "cat"], ["a", "cat", "sat"], ["it", "."]]
linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="resident memory is read from /proc"
)


@pytest.fixture
def files(tmp_path):
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), card={"language": "en"})
    weights.save(tmp_path / "weights.safetensors")
    (tmp_path / "sentences.json").write_text(json.dumps(SENTENCES), "utf8")
    return tmp_path


def test_network_runs_on_batches(files):
    contender = make("network", "float32", files, None)
    seen = []
    bilm = contender.bilm
    contender.bilm = lambda *args: seen.append(bilm(*args).layers)
    contender.bilm.token_ids = bilm.token_ids
    contender.run(contender.prepare(SENTENCES, 3))
    expected = tiny.read(Weights.load(files / "weights.safetensors").build_bilm(), SENTENCES).layers
    assert [layers.shape[1] for layers in seen] == [7, 2]
    torch.testing.assert_close(torch.cat(seen, 1), expected, atol=1e-6, rtol=0)


def test_pipe_processes_all_docs_in_order_and_frees_them():
    seen = []
    nlp = spacy.blank("en")
    pipe = nlp.pipe
    nlp.pipe = lambda docs, batch_size: pipe(
        (seen.append((len(prepared[0]), doc.text)) or doc for doc in docs), batch_size=batch_size
    )
    contender = Pipe(nlp)
    prepared = contender.prepare(SENTENCES, 2)
    contender.run(prepared)
    assert seen == [(3, "cat "), (2, "the naïve cat "), (1, "a cat sat "), (0, "it . ")]


@linux
@pytest.mark.parametrize("kind", ["network", "nlp.pipe", "products", "onnxruntime"])
def test_a_process_answers_line_by_line(files, monkeypatch, capsys, kind):
    monkeypatch.setattr(sys, "argv", ["contender_process.py", kind, "float32", str(files), "1"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("[0, 4, 2]\n[1, 2, 1]\n"))
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # main replaces it
    contender_process.main()
    measurements = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(measurements) == 2
    assert all(0 < measured["seconds"] < 60 for measured in measurements)
    assert all(measured["peak"] < 1000 for measured in measurements)


def test_a_process_that_fails(files, monkeypatch):
    monkeypatch.setattr(contender_process.sys, "executable", "false")
    with ContenderProcess("network", "float32", files, 1, None) as process:
        with pytest.raises(RuntimeError, match="network float32 .* has failed"):
            process.measure(0, 4, 2)


def test_transformer_has_a_piece_for_each_word(tmp_path):
    words = [word for sentence in SENTENCES for word in sentence]
    write_transformer(tmp_path / "bert", 1, words)
    nlp = transformer_pipeline(tmp_path / "bert")
    contender = Pipe(nlp)
    (first, *_), _ = contender.prepare(SENTENCES[1:], 2)
    doc = nlp(first)
    assert doc._.trf_data.wordpieces.strings == [["[CLS]", "the", "naïve", "cat", "[SEP]"]]
    assert doc._.trf_data.model_output.last_hidden_state.shape == (1, 5, 768)

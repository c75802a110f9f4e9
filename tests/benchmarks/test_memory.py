"""The memory benchmark measures memory, and its comparison of the ends detects inexact vectors."""

import mmap
from pathlib import Path

import pytest
from spacy.tokens import Doc

from benchmarks.measuring.process_memory import peak, reset_peak, resident
from benchmarks.memory import ends, kept_docs, long_doc
from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="resident memory is read from /proc"
)


def test_resident_and_peak():
    before = resident()
    reset_peak()
    # Pages of its own, since an allocator may have kept as many from an earlier test.
    with mmap.mmap(-1, 100_000_000) as pages:
        for start in range(0, len(pages), mmap.PAGESIZE):
            pages[start] = 1
        assert resident() - before == pytest.approx(100, abs=5)
    assert resident() - before == pytest.approx(0, abs=5)
    assert peak() - before == pytest.approx(100, abs=5)


def test_kept_docs():
    actual = kept_docs(300, elmo=True)
    assert 300 <= actual["words"] < 1000 and actual["vectors left"] == 0


def test_long_doc():
    actual = long_doc(300)
    assert actual["words"] == 300 and actual["output"] == pytest.approx(300 * 256 * 2 / 1e6)
    assert actual["working"] < 500
    assert actual["first words differ by"] < 1e-3 > actual["last words differ by"]


@pytest.mark.parametrize("getter, exact", [("doc", True), ("sents", False)])
def test_ends(tmp_path, getter, exact):
    """With chunks of 7 words, the ends equal those of shorter Docs. If the Doc is split into spans, they do not."""
    path = tmp_path / "tiny.safetensors"
    Weights.from_bilm(tiny.bilm(tiny.config()), card={"language": "en"}).save(path)
    spans = {"@misc": f"spacy-elmo.{getter}.v1"}
    nlp = pipelines.blank(path, get_spans=spans, store="average", max_batch_tokens=7)
    words = ["a", "cat", "sat", "here"] * 15
    # Sentences of 50 and 10 words begin elsewhere than the first and the last 20 words do.
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=[place in (0, 50) for place in range(60)]))

    def elmo(short: Doc) -> Doc:
        for token in short:
            token.is_sent_start = token.i == 0
        return nlp(short)

    first, last = ends(elmo, doc, 20)
    assert first < 1e-6
    assert (last < 1e-6) == exact

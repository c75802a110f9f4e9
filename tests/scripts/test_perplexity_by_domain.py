"""The perplexity of each source, and of all together."""

import pytest
import torch

from scripts.perplexity_by_domain import by_source, read_sources
from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Prepare
from spacy_elmo.pretraining.perplexity import evaluate
from tests import tiny

VOCABULARY = ["<S>", "</S>", "<UNK>", "cat", "the", "."]
TEXT = "the cat .\nthe dog .\n\na cat .\n\nthe .\n"
TABLE = '#number\tsource\n0\tnews\n1\tblog "x\n2\tnews\n'


@pytest.fixture
def files(tmp_path):
    text, table = tmp_path / "text.txt", tmp_path / "table.tsv"
    text.write_text(TEXT)
    table.write_text(TABLE)
    return text, table


def test_documents_go_to_their_sources(files):
    assert read_sources(*files) == {
        "news": ["the cat .\nthe dog .", "the .\n"],
        'blog "x': ["a cat ."],
    }


def test_figures(files):
    torch.manual_seed(0)
    head = Head(len(VOCABULARY), 5)
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=VOCABULARY)
    settings = Prepare(tokenized=True)
    actual = by_source(weights, read_sources(*files), settings)
    assert {name: p.targets for name, p in actual.items()} == {"news": 11, 'blog "x': 4, "all": 15}
    ((_, whole),) = evaluate(weights, [files[0]], settings)
    assert actual["all"].mean == pytest.approx(whole.perplexity(6).mean, rel=1e-6)
    (files[0].parent / "news.txt").write_text("the cat .\nthe dog .\nthe .\n")
    ((_, news),) = evaluate(weights, [files[0].parent / "news.txt"], settings)
    assert actual["news"].forward == pytest.approx(news.perplexity(6).forward, rel=1e-6)


def test_table_that_does_not_fit(files):
    text, table = files
    table.write_text("number\tsource\n0\tnews\n")
    with pytest.raises(ValueError, match="1 rows, .* 3 documents"):
        read_sources(text, table)
    table.write_text("number\tdomain\n0\tnews\n")
    with pytest.raises(ValueError, match="no column 'source', only number, domain"):
        read_sources(text, table)

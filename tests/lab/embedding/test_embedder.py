"""A shard contains the vectors of the pipeline, for each selection of layers and units."""

import itertools

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.lab.corpora.items import Shard
from spacy_elmo.lab.embedding import embedder
from spacy_elmo.lab.embedding.embedder import Embedder, EmbedOptions
from spacy_elmo.lab.embedding.shard_file import ShardFile
from tests import pipelines
from tests.pipelines import assert_close

ITEMS = [*pipelines.TEXTS, ["Anna", " ", "met", "naïve", "\n"], [], ["x"]]


@pytest.fixture
def read(tmp_path):
    paths = (tmp_path / str(number) for number in itertools.count())

    def read(nlp, items=ITEMS, **options):
        path = next(paths)
        path.write_bytes(Embedder(nlp, EmbedOptions(**options))(Shard(0, "text", 0, items)))
        return ShardFile(path)

    return read


def docs(nlp, items=ITEMS):
    """Return the oracle: each item processed by the pipeline separately."""
    return [
        nlp(item) if isinstance(item, str) else nlp(Doc(nlp.vocab, words=item)) for item in items
    ]


def test_all_layers(nlp, read):
    shard = read(nlp)
    for item, doc in enumerate(docs(nlp)):
        assert shard.tokens(item) == [token.text for token in doc]
        assert shard.vectors(item).dtype == np.float32
        assert_close(shard.vectors(item), doc._.elmo_layers)


def test_average_and_top(nlp, read):
    average = read(nlp, layers="average")
    for item, doc in enumerate(docs(nlp)):
        assert_close(average.vectors(item)[None], doc._.elmo[None])
    top = read(nlp, layers="top")
    for item, doc in enumerate(docs(nlp)):
        assert_close(top.vectors(item)[None], doc._.elmo_layers[2:])


@pytest.mark.parametrize("layers", ["all", "average"])
def test_half_precision_is_the_rounded_single(nlp, read, layers):
    single, half = read(nlp, layers=layers), read(nlp, layers=layers, dtype="float16")
    assert half.tensor("vectors").dtype == np.float16
    assert np.array_equal(half.tensor("vectors"), single.tensor("vectors").astype(np.float16))


def test_pooling_leaves_whitespace_out(nlp, read):
    mean, largest = read(nlp, pooling="mean"), read(nlp, pooling="max", layers="top")
    for item, doc in enumerate(docs(nlp)):
        words = [token.i for token in doc if not token.is_space]
        layers = doc._.elmo_layers[:, words]
        if not words:
            assert not mean.vectors(item).any() and not largest.vectors(item).any()
            continue
        assert_close(mean.vectors(item)[:, None], layers.mean(1, keepdims=True))
        assert_close(largest.vectors(item)[None, None], layers[2:].max(1, keepdims=True))
    assert mean.vectors(0).shape == (3, 10)
    assert largest.vectors(0).shape == (10,)
    assert mean.tokens(0) == [token.text for token in nlp(ITEMS[0])]


def test_items_without_words_alone(nlp, read):
    shard = read(nlp, ["", []])
    assert [shard.vectors(item).shape for item in range(2)] == [(3, 0, 10)] * 2
    assert shard.tokens(1) == []
    assert read(nlp, ["", "  "], pooling="mean").vectors(1).shape == (3, 10)


def test_whatever_the_component_keeps(weights, nlp, read):
    averaging = pipelines.blank(weights, store="average")
    assert_close(read(averaging).vectors(0), nlp(ITEMS[0])._.elmo_layers)


def test_what_stands_before_elmo_runs_and_what_stands_after_does_not(weights, read):
    @Language.component("explode")
    def explode(doc):
        raise AssertionError

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer", config={"punct_chars": [","]})
    getter = {"@misc": "spacy-elmo.sents.v1"}
    nlp.add_pipe("elmo", name="mine", config={"weights": str(weights), "get_spans": getter})
    text = "She sat, on it. By the river"
    expected = nlp(text)._.elmo_layers
    plain = pipelines.blank(weights)(text)._.elmo_layers
    assert not np.allclose(expected, plain, atol=1e-3)
    nlp.add_pipe("explode")
    assert_close(read(nlp, [text]).vectors(0), expected)


def test_a_vocabulary_that_has_grown_forgets_and_nothing_else_changes(nlp, monkeypatch):
    shard = Shard(0, "text", 0, ["Unheard-of xylographers sat.", ["blorf"]])
    before = Embedder(nlp, EmbedOptions())(shard)
    monkeypatch.setattr(embedder, "_MAX_STRINGS", 0)
    fresh = spacy.blank("en")
    fresh.add_pipe("elmo", config={"weights": nlp.get_pipe("elmo").model.shims[0].options.weights})
    embed = Embedder(fresh, EmbedOptions())
    assert embed(shard) == before
    assert "xylographers" not in fresh.vocab.strings
    assert embed(shard) == before


def test_pipelines_without_an_elmo_or_with_several(nlp, weights):
    with pytest.raises(ValueError, match=r"no elmo component \(components: none\)"):
        Embedder(spacy.blank("en"), EmbedOptions())
    nlp.add_pipe("elmo", name="second", config={"weights": str(weights)})
    with pytest.raises(ValueError, match=r"2 elmo components \(components: elmo, second\)"):
        Embedder(nlp, EmbedOptions())
    nlp.disable_pipe("elmo")
    Embedder(nlp, EmbedOptions())

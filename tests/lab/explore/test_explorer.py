"""Answers are compared with the functions that compute them."""

import math
from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_elmo import LanguageModel, embed
from spacy_elmo.lab.explore.explorer import MAX_CHARACTERS, Explorer
from tests import tiny
from tests.lab.explore.conftest import TEXT, WEIGHTS

SENTENCE = "I borrowed money from the bank for a house."
BANK = 5


@pytest.fixture(scope="module")
def doc():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": WEIGHTS})
    return nlp(SENTENCE)


@pytest.fixture(scope="module")
def answer(explorer):
    return explorer.answer_word([SENTENCE], 0, BANK)


def test_surprise_is_the_score_in_bits(explorer, doc):
    (tokens,) = explorer.answer_sentences([SENTENCE])["sentences"]
    scores = LanguageModel.from_file(WEIGHTS).score(doc)
    assert "".join(t["text"] + " " * t["space"] for t in tokens) == SENTENCE
    for name, values in (("before", scores.forward), ("after", scores.backward)):
        bits = [token["surprise"][name] for token in tokens]
        np.testing.assert_allclose(bits, -values / math.log(2), atol=0.01)
    assert [token["count"] for token in tokens][BANK] == 7


def test_whitespace_and_unknown_words_have_no_surprise(explorer):
    tokens = explorer.answer_sentences(["A \n Blorfnax"])["sentences"][0]
    assert [token["blank"] for token in tokens] == [False, True, False]
    assert [token["unknown"] for token in tokens] == [False, False, True]
    assert ["surprise" in token for token in tokens] == [True, False, False]


def test_nearest_uses(explorer, doc, answer):
    uses = answer["uses"]
    assert answer["count"] == len(uses["sentences"]) == 7
    texts = [use["left"] + use["word"] + use["right"] for use in uses["sentences"]]
    assert texts[:2] == TEXT.splitlines()[:2]
    assert uses["sentences"][1]["source"].endswith("text.txt:2")
    assert [layer["name"] for layer in uses["layers"]] == ["layer 1", "layer 2"]
    center = explorer._index.center[1:]
    vectors = explorer._index.find("bank").vectors - center
    query = doc._.elmo_layers[1:, BANK, None] - center
    lengths = np.linalg.norm(vectors, axis=-1) * np.linalg.norm(query, axis=-1)
    for layer, cosines in zip(
        uses["layers"], (vectors * query).sum(axis=-1) / lengths, strict=True
    ):
        order = np.argsort(-cosines)
        (nearby,) = layer["neighbors"]
        assert [near["use"] for near in nearby] == order.tolist()
        np.testing.assert_allclose([n["cosine"] for n in nearby], cosines[order], atol=1e-3)
        assert len(layer["points"]) == 7 and len(layer["queries"]) == 1


def test_substitutes(answer, doc):
    model = LanguageModel.from_file(WEIGHTS)
    for context, shown in answer["substitutes"].items():
        expected = model.substitutes(doc[BANK], 6, context)
        assert [one["word"] for one in shown] == [one.word for one in expected]
        logs = [math.log(one["probability"]) for one in shown]
        np.testing.assert_allclose(logs, [one.log_probability for one in expected], atol=1e-6)


def test_cosines(explorer, doc, answer):
    layers = doc._.elmo_layers - explorer._index.center
    unit = layers / np.linalg.norm(layers, axis=-1, keepdims=True)
    cosines = np.einsum("lnw,lw->ln", unit, unit[:, BANK])
    np.testing.assert_allclose(answer["likeness"][0], cosines, atol=1e-3)


def test_spellings(explorer):
    """Layer 0 depends only on characters: the corpus has no "banks", but it has "bank"."""
    answer = explorer.answer_word(["Two banks closed."], 0, 1)
    assert answer["uses"] is None and answer["count"] == 0
    assert answer["spellings"][0]["word"] == "bank" and answer["spellings"][0]["count"] == 7
    assert "bank" not in [s["word"] for s in explorer.answer_word(["A bank."], 0, 1)["spellings"]]


@pytest.mark.parametrize(
    "texts, message",
    [
        ([], "1 to 2 sentences, but got 0"),
        (["a"] * 3, "1 to 2 sentences, but got 3"),
        (["a", " \n"], "empty"),
        (["a" * (MAX_CHARACTERS + 1)], "1,001 characters. The limit is 1,000"),
    ],
)
def test_bad_sentences(explorer, texts, message):
    with pytest.raises(ValueError, match=message):
        explorer.answer_sentences(texts)


def test_folder_of_embed(explorer, text, tmp_path):
    """It has the vectors of the text, and other weights are refused."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": WEIGHTS})
    embed(nlp, text, tmp_path / "vectors", dtype="float16")
    again = Explorer.load(WEIGHTS, tmp_path / "vectors")
    assert again.overview() == explorer.overview()
    assert again.answer_word([SENTENCE], 0, BANK) == explorer.answer_word([SENTENCE], 0, BANK)
    tiny.save(tmp_path / "w.safetensors", {"language": "en"})
    with pytest.raises(ValueError, match="were computed with other weights"):
        Explorer.load(str(tmp_path / "w.safetensors"), tmp_path / "vectors")


def test_pipeline(explorer, text, tmp_path):
    """The page of a pipeline has its elmo's vectors, predicts no words, and runs no other component."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"weights": WEIGHTS})
    nlp.add_pipe("merge_noun_chunks")
    nlp.to_disk(tmp_path / "nlp")
    ours = Explorer.load(str(tmp_path / "nlp"), text)
    expected = {**explorer.overview(), "weights": "nlp", "language_model": False}
    assert ours.overview() == expected
    answers = [one.answer_word([SENTENCE], 0, BANK) for one in (ours, explorer)]
    assert answers[0]["substitutes"] is None
    assert (
        answers[0]["uses"] == answers[1]["uses"]
        and answers[0]["likeness"] == answers[1]["likeness"]
    )


def test_weights_are_read_once(text, monkeypatch):
    """Elmo and the language model share the content of the file."""
    opened, read_bytes = [], Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda self: (opened.append(self.suffix), read_bytes(self))[1]
    )
    Explorer.load(WEIGHTS, text).answer_word(["A bank."], 0, 1)
    assert opened.count(".safetensors") == 1

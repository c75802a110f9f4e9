"""Probes are compared with numbers by hand, on biLMs with known layers."""

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.lab import probes
from spacy_elmo.lab.probes import SenseProbe, SenseScores, TaggedText, probe_tags
from spacy_elmo.lab.senses import SenseInstance, SenseSentence
from tests import pipelines, tiny

RIVER, MONEY, SKY, MOON = (
    "bank%1:17:01::", "bank%1:14:00::", "sky%1:17:00::", "moon%1:17:01::",
)  # fmt: skip


@pytest.mark.parametrize("store", ["layers", "average"])
def test_layers_of_sentences(tmp_path, monkeypatch, store):
    """They are those of the component. Components before elmo run, and components after it do not."""
    monkeypatch.setattr(probes, "_SENTENCES", 3)
    sentences = [["a", "cat", "sat"], ["naïve"], ["cat", "and", "cat", "."], ["鳥", "sat"]]
    tiny.save(tmp_path / "w.safetensors", {"language": "en"})
    nlp, seen, done = pipelines.blank(tmp_path / "w.safetensors", store=store), [], []

    @Language.component(f"probe_before_{store}")
    def before(doc):
        seen.append([token.text for token in doc])
        return doc

    @Language.component(f"probe_after_{store}")
    def after(doc):
        raise AssertionError("not to be run")

    nlp.add_pipe(f"probe_before_{store}", first=True)
    nlp.add_pipe(f"probe_after_{store}")
    actual = list(probes.sentence_layers(nlp, iter(sentences), done.append))
    assert (seen, done) == (sentences, [3, 1])
    whole = pipelines.blank(tmp_path / "w.safetensors")
    for words, layers in zip(sentences, actual, strict=True):
        expected = whole(Doc(whole.vocab, words=words))._.elmo_layers
        pipelines.assert_close(layers, expected)


@pytest.fixture
def spelt(monkeypatch):
    """A biLM for words that spell their vectors: "1,0 0,1" has (1, 0) in layer 0 and (0, 1) in layer 1."""

    def layers(nlp, sentences, progress):
        for words in sentences:
            rows = [[[*map(float, x.split(","))] for x in word.split()] for word in words]
            yield np.array(rows, dtype=np.float32).reshape(-1, 2, 2).swapaxes(0, 1)

    monkeypatch.setattr(probes, "sentence_layers", layers)


def sentence(*words):
    """Return a sentence from pairs of a word that spells its vectors and its sense or senses."""
    instances = [
        SenseInstance(i, i + 1, (senses,) if isinstance(senses, str) else senses)
        for i, (_, senses) in enumerate(words)
        if senses
    ]
    return SenseSentence([word for word, _ in words], instances)


TRAIN = [
    sentence(("4,0 1,1", RIVER), ("9,9 9,9", None), ("0,1 0,3", MONEY)),
    sentence(("0,2 1,1", MONEY), ("5,5 5,5", SKY)),
    # The mean of MONEY is (0, 1.5) in layer 0; in layer 1 it is (0.5, 2).
]


def test_nearest_sense_in_each_layer(spelt):
    probe = SenseProbe(None, TRAIN)
    answers = probe.answer([sentence(("7,1 1,5", RIVER), ("1,7 1,1", MONEY), ("1,0 0,1", SKY))])
    # Layers 0 and 1, the most frequent sense, WordNet's first (not known).
    assert [answer.predicted for answer in answers] == [
        [RIVER, MONEY, MONEY, None], [MONEY, RIVER, MONEY, None], [SKY, SKY, SKY, None],
    ]  # fmt: skip
    scores = SenseScores.of(answers)
    assert (scores.instances, scores.seen, scores.ambiguous) == (3, 3, 2)
    assert scores.layers == pytest.approx([1, 1 / 3])
    assert (scores.most_frequent, scores.first) == (pytest.approx(2 / 3), 0)
    answers = probe.answer([sentence(("7,1 1,1", (MONEY, RIVER)))])  # of two senses, any is right
    assert SenseScores.of(answers).layers == [1, 1]


@pytest.mark.parametrize(
    "train, word, predicted",
    [
        # Only the direction of a vector counts.
        ([sentence(("100,0 1,0", RIVER), ("1,1 0,1", MONEY))], ("1,0.9 0,1", MONEY), [MONEY, MONEY]),
        # The vector of two words is their mean, (1, 1).
        (
            [
                SenseSentence(["2,0 0,0", "0,2 1,1"], [SenseInstance(0, 2, (RIVER,))]),
                sentence(("1,0 0,1", MONEY)),
            ],
            ("3,2 0,1", RIVER),
            [RIVER, MONEY],
        ),
        # Another part of speech is another entry.
        (TRAIN, ("4,0 1,1", "bank%2:35:00::"), [None, None]),
    ],
)  # fmt: skip
def test_predictions(spelt, train, word, predicted):
    (answer,) = SenseProbe(None, train).answer([sentence(word)])
    assert answer.predicted[:2] == predicted


@pytest.mark.parametrize(
    "first, f1, first_f1",
    [
        # Of two words one is answered, rightly: P = 1, R = 1/2.
        (None, 2 / 3, 0),
        ({"moon%1": MOON, "sky%1": SKY}, 1, 1),
        ({"moon%1": "moon%1:17:02::", "sky%1": SKY}, 1 / 2, 1 / 2),
        # Of the first senses, that of the sky is not known.
        ({"moon%1": MOON}, 1, 2 / 3),
    ],
)
def test_word_that_did_not_occur(spelt, first, f1, first_f1):
    probe = SenseProbe(None, TRAIN, first)
    scores = SenseScores.of(probe.answer([sentence(("1,0 1,0", MOON), ("1,0 1,0", SKY))]))
    assert (scores.instances, scores.seen, scores.ambiguous) == (2, 1, 0)
    assert [*scores.layers, scores.most_frequent] == pytest.approx([f1] * 3)
    assert scores.first == pytest.approx(first_f1)


def test_tags_are_read_from_the_layer_that_has_them(monkeypatch):
    def layers(nlp, sentences, progress):
        rng = np.random.default_rng(0)
        for words in sentences:
            actual = rng.normal(size=(3, len(words), 8)).astype(np.float32)
            for i, word in enumerate(words):
                tag = "ABC".index(word[-1])
                actual[1, i, tag] += 6
                actual[2, i, tag if rng.random() < 0.5 else rng.integers(3)] += 6
            yield 64 * actual + 8  # scale and shift do not matter

    monkeypatch.setattr(probes, "sentence_layers", layers)
    rng = np.random.default_rng(1)

    def text(n):
        tags = rng.choice(list("ABC"), n).tolist()
        return TaggedText([[f"w{i % 7}{tag}"] for i, tag in enumerate(tags)], tags)

    scores = probe_tags(None, text(600), text(300))
    assert (scores.words, scores.tags, scores.most_frequent) == (300, 3, 1)
    assert scores.layers == pytest.approx([1 / 3, 1, 2 / 3], abs=0.08)


def test_most_frequent_tag_by_hand(monkeypatch):
    monkeypatch.setattr(
        probes, "sentence_layers", lambda nlp, s, p: (np.eye(5)[None, : len(x)] for x in s)
    )
    train = TaggedText([["a", "a", "b", "a", "c"]], ["X", "X", "Y", "Y", "Y"])
    test = TaggedText([["a", "b", "new", "new"]], ["X", "X", "Y", "Z"])
    # Right for "a" and for one of the new words, which get Y.
    assert probe_tags(None, train, test).most_frequent == 0.5

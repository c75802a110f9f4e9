"""Senses by nearest neighbor are compared with numbers by hand and with a slow implementation."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.lab.corpora.senses import SenseInstance, SenseSentence
from spacy_elmo.lab.probe.word_sense import NearestSense

RIVER, MONEY, SKY = "bank%1:17:01::", "bank%1:14:00::", "sky%1:17:00::"


class Spelt:
    """A biLM for words that spell their vectors: "1,0 0,1" has (1, 0) in layer 0 and (0, 1) in layer 1."""

    layers, width = 2, 2

    def __call__(self, sentences):
        for words in sentences:
            rows = [[[*map(float, x.split(","))] for x in word.split()] for word in words]
            yield np.array(rows, dtype=np.float32).reshape(-1, 2, 2).swapaxes(0, 1)


def sentence(*words):
    """Return a sentence from pairs of a word that spells its vectors and its senses."""
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


def test_nearest_in_each_layer():
    probe = NearestSense(Spelt(), TRAIN)
    answers = probe.answer([sentence(("7,1 1,5", RIVER), ("1,7 1,1", MONEY), ("1,0 0,1", SKY))])
    # Layers 0 and 1, the most frequent sense (MONEY), WordNet's first (not known).
    assert answers.correct.tolist() == [
        [True, False, False, False],
        [True, False, True, False],
        [True, True, True, False],
    ]
    assert answers.answered.tolist() == [[True, True, True, False]] * 3
    scores = answers.scores()
    assert (scores.instances, scores.seen, scores.ambiguous) == (3, 3, 2)
    assert scores.layers == pytest.approx([1, 1 / 3])
    assert scores.most_frequent == pytest.approx(2 / 3)
    assert scores.first is None


def test_magnitude_is_nothing_to_the_cosine():
    train = [sentence(("100,0 1,0", RIVER), ("1,1 0,1", MONEY))]
    answers = NearestSense(Spelt(), train).answer([sentence(("1,0.9 0,1", MONEY))])
    assert answers.correct[0, :2].tolist() == [True, True]


def test_words_of_one_entry_are_averaged():
    train = [
        SenseSentence(["2,0 0,0", "0,2 1,1"], [SenseInstance(0, 2, (RIVER,))]),  # (1, 1)
        sentence(("1,0 0,1", MONEY)),
    ]
    probe = NearestSense(Spelt(), train)
    assert probe.answer([sentence(("3,2 1,1", RIVER))]).correct[0, 0]
    assert probe.answer([sentence(("3,1 1,1", MONEY))]).correct[0, 0]


def test_any_of_the_annotated_senses_is_right():
    answers = NearestSense(Spelt(), TRAIN).answer([sentence(("7,1 1,1", (MONEY, RIVER)))])
    assert answers.correct[0, :3].tolist() == [True, True, True]


UNSEEN = "moon%1:17:01::"


@pytest.mark.parametrize(
    "first, f1, first_f1",
    [
        # Of two words one is answered, rightly: P = 1, R = 1/2.
        (None, 2 / 3, None),
        ({"moon%1": UNSEEN, "sky%1": SKY}, 1, 1),
        ({"moon%1": "moon%1:17:02::", "sky%1": SKY}, 1 / 2, 1 / 2),
        # Of the first senses, that of the sky is not known.
        ({"moon%1": UNSEEN}, 1, 2 / 3),
    ],
)
def test_word_that_did_not_occur(first, f1, first_f1):
    probe = NearestSense(Spelt(), TRAIN, first)
    scores = probe.answer([sentence(("1,0 1,0", UNSEEN), ("1,0 1,0", SKY))]).scores()
    assert (scores.instances, scores.seen, scores.ambiguous) == (2, 1, 0)
    assert [*scores.layers, scores.most_frequent] == pytest.approx([f1] * 3)
    assert scores.first == (None if first_f1 is None else pytest.approx(first_f1))


def test_another_part_of_speech_is_another_entry():
    answers = NearestSense(Spelt(), TRAIN).answer([sentence(("4,0 1,1", "bank%2:35:00::"))])
    assert answers.senses.tolist() == [0] and not answers.answered.any()


def test_answers_add_up():
    probe = NearestSense(Spelt(), TRAIN)
    parts = [[sentence(("7,1 1,5", RIVER))], [sentence(("1,0 1,1", SKY), ("1,7 1,1", MONEY))]]
    whole = probe.answer(parts[0] + parts[1]).scores()
    assert (probe.answer(parts[0]) + probe.answer(parts[1])).scores() == whole


def test_nothing_to_learn_and_nothing_to_answer():
    with pytest.raises(ValueError, match="has a sense"):
        NearestSense(Spelt(), [sentence(("1,1 1,1", None))])
    scores = NearestSense(Spelt(), TRAIN).answer([sentence(("1,1 1,1", None))]).scores()
    assert scores.instances == 0 and np.isnan([*scores.layers, scores.most_frequent]).all()


KEYS = [f"{lemma}%1:00:0{n}::" for lemma in "abc" for n in range(3)]
words = st.tuples(
    st.lists(st.integers(-9, 9), min_size=4, max_size=4).filter(
        lambda x: any(x[:2]) and any(x[2:])
    ),
    st.sampled_from(KEYS),
)


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=20), st.lists(words, max_size=8))
def test_against_the_obvious_version(train, test):
    def spelt(pairs):
        return [sentence((f"{v[0]},{v[1]} {v[2]},{v[3]}", key)) for v, key in pairs]

    answers = NearestSense(Spelt(), spelt(train)).answer(spelt(test))
    means = {
        key: np.mean([v for v, k in train if k == key], axis=0).reshape(2, 2)
        for key in {k for _, k in train}
    }
    counts = Counter(key for _, key in train)
    for (vector, gold), right in zip(test, answers.correct.tolist(), strict=True):
        known = [key for key in means if key[0] == gold[0]]
        for layer in (0, 1):
            cosines = {
                key: _cosine(np.array(vector, dtype=float).reshape(2, 2)[layer], means[key][layer])
                for key in known
            }
            best = max(cosines.values(), default=0)
            near = {key for key, cosine in cosines.items() if cosine > best - 1e-5}
            if right[layer]:
                assert gold in near
            else:
                assert near != {gold}
        most = max((counts[key] for key in known), default=0)
        if right[2]:
            assert counts[gold] == most > 0
        else:
            assert {key for key in known if counts[key] == most} != {gold}


def _cosine(x, y):
    norms = np.linalg.norm(x) * np.linalg.norm(y)
    return x @ y / norms if norms else 0.0

"""The quiz of word senses: the form of its uses, and its score by hand-made vectors."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from sense_quiz import Use, accuracies, read_quiz, without_word_means


def test_every_word_has_two_senses_and_two_uses_of_each():
    uses = read_quiz()
    assert len({use.word for use in uses}) == 30
    assert set(Counter((use.word, use.sense) for use in uses).values()) == {2}
    assert len({use.text for use in uses}) == 120


def test_a_word_that_is_not_in_its_sentence_is_an_error(tmp_path):
    file = tmp_path / "quiz.tsv"
    file.write_text("word\tsense\ttext\nbank\tmoney\tHe went home.\n", encoding="utf8")
    with pytest.raises(ValueError, match="'bank' must occur exactly once"):
        read_quiz(file)


def test_share_of_uses_whose_nearest_use_has_the_same_sense():
    uses = [Use("bank", sense, "") for sense in ("money", "money", "river", "river")]
    separated = [[2, 0], [3, 0], [0, 1], [0, 5]]
    # The second use of "money" is nearest to a river, and so is that river to it.
    confused = [[1, 0], [1, 1], [1, 1.1], [0, 1]]
    vectors = np.array([separated, confused], dtype=np.float32).swapaxes(0, 1)
    # The first two uses of "money" find each other's neighbour: first -> second, second -> third; likewise for "river".
    assert accuracies(vectors, uses) == [1.0, 0.5]


def test_what_the_uses_of_a_word_share_does_not_hide_how_they_differ():
    uses = [Use(word, sense, "") for word in ("bank", "bat") for sense in "aabb"]
    # Without the shared (10, 0), the first two uses point to one side and the others to the other.
    bank = [[10, 2], [11, 0.5], [10, -0.5], [9, -2]]
    vectors = np.array([*bank, *(np.array(bank) + 5)], dtype=np.float32)[:, None]
    relative = without_word_means(vectors, uses)
    assert relative[:, 0].tolist() == 2 * [[0, 2], [1, 0.5], [0, -0.5], [-1, -2]]
    assert accuracies(vectors, uses) == [0.5]
    assert accuracies(relative, uses) == [1.0]


def test_words_are_compared_with_uses_of_the_same_word_alone():
    uses = [Use(word, sense, "") for word in ("bank", "bat") for sense in "aabb"]
    one_word = [[1, 0], [1, 0.1], [0, 1], [0.1, 1]]
    vectors = np.array(one_word * 2, dtype=np.float32)[:, None]
    assert accuracies(vectors, uses) == [1.0]

"""Parts of speech: reading the files, the baseline by hand, and layers of which one contains the tags."""

import numpy as np
import pytest

from spacy_elmo.lab.probe.part_of_speech import TaggedText, probe_tags, read_tags

CONLLU = """# text = It isn't old
1\tIt\tit\tPRON\tPRP\t_\t0\t_\t_\t_
2-3\tisn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tis\tbe\tAUX\tVBZ\t_\t0\t_\t_\t_
3\tn't\tnot\tPART\tRB\t_\t0\t_\t_\t_
3.1\tgone\t_\tVERB\tVBN\t_\t_\t_\t_\t_
4\told\told\tADJ\tJJ\t_\t0\t_\t_\t_

1\tNo\tno\tINTJ\tUH\t_\t0\t_\t_\t_
"""


def test_files_are_read(tmp_path):
    file = tmp_path / "a.conllu"
    file.write_text(CONLLU)
    text = read_tags(file, "upos")
    assert text.sentences == [["It", "is", "n't", "old"], ["No"]]
    assert text.words == ["It", "is", "n't", "old", "No"]
    assert text.tags == ["PRON", "AUX", "PART", "ADJ", "INTJ"]
    assert read_tags(file, "xpos").tags == ["PRP", "VBZ", "RB", "JJ", "UH"]


@pytest.mark.parametrize(
    "content, problem",
    [
        ("", "contains no words"),
        ("1\tNo\n", "line 1 is not CoNLL-U"),
        (CONLLU.replace("UH", "_"), "'No' has no tag in the column xpos"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, problem):
    file = tmp_path / "a.conllu"
    file.write_text(content)
    with pytest.raises(ValueError, match=problem):
        read_tags(file, "xpos")


class Known:
    """A biLM with known layers. Layer 0 is noise, layer 1 has the tag, which is the last letter of the word, and layer
    2 has it half of the time."""

    layers, width = 3, 8

    def __call__(self, sentences):
        rng = np.random.default_rng(0)
        for words in sentences:
            actual = rng.normal(size=(3, len(words), 8)).astype(np.float32)
            for i, word in enumerate(words):
                tag = "ABC".index(word[-1])
                actual[1, i, tag] += 6
                actual[2, i, tag if rng.random() < 0.5 else rng.integers(3)] += 6
            yield actual


def text(seed, sentences):
    rng = np.random.default_rng(seed)
    words = [[f"w{'ABC'[tag]}" for tag in rng.integers(0, 3, 7)] for _ in range(sentences)]
    return TaggedText(words, [word[-1] for sentence in words for word in sentence])


def test_each_layer_is_probed():
    scores = probe_tags(Known(), text(0, 200), text(1, 40), text(2, 40))
    assert (scores.words, scores.tags) == (280, 3)
    noise, known, half = scores.layers
    assert known > 0.98
    assert half == pytest.approx(2 / 3, abs=0.1)
    assert noise == pytest.approx(1 / 3, abs=0.1)
    assert scores.dev[1] > 0.98 and scores.dev[0] < 0.5
    assert scores.most_frequent == 1


def test_most_frequent_tag():
    train = TaggedText([["a", "a", "a", "b", "c", "c"]], ["A", "A", "B", "B", "C", "C"])
    test = TaggedText([["a", "b", "new", "new", "c"]], ["A", "A", "A", "B", "X"])
    scores = probe_tags(Spelt(), train, train, test)
    # a: A, b: B, c: C; a new word: A, which came first of those that occur twice.
    assert scores.most_frequent == pytest.approx(2 / 5)
    assert scores.layers[0] <= 4 / 5  # X does not occur in training


class Spelt:
    """A biLM with one layer of random vectors."""

    layers, width = 1, 4

    def __call__(self, sentences):
        rng = np.random.default_rng(0)
        for words in sentences:
            yield rng.normal(size=(1, len(words), 4)).astype(np.float32)

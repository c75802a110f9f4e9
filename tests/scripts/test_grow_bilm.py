"""A grown biLM computes what the small one computes, and a fitted head predicts the next word."""

import numpy as np
import pytest
import torch

from scripts.grow_bilm import fitted_head, grown
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.pretraining.config import Paths, Prepare
from spacy_elmo.pretraining.corpus.batches import Batcher
from spacy_elmo.pretraining.corpus.prepare import prepare
from spacy_elmo.pretraining.training.loss import targets
from tests import tiny

CLIPS = {"cell_clip": 3.0, "proj_clip": 3.0}
LARGE = {"dim": 9, "projection": 8, "filters": ((1, 4), (2, 3), (4, 6))}
SENTENCES = [["a", "cat", "sat"], ["naïve"], ["a", "鳥", "sat", "a", "cat"]]


def test_a_grown_network_computes_the_same_vectors():
    small = tiny.bilm(tiny.config(**CLIPS))
    large = grown(Weights.from_bilm(small), tiny.config(**CLIPS, **LARGE)).eval()
    before = tiny.read(small, SENTENCES).layers.unflatten(2, (2, 5))
    after = tiny.read(large, SENTENCES).layers.unflatten(2, (2, 8))
    torch.testing.assert_close(after[..., :5], before)
    # The new numbers are not constant, so training can use them at once.
    assert (after[..., 5:].std(1) > 0).all()


@pytest.mark.parametrize(
    "other",
    [{"cell_clip": 0.3}, {"skip": False}, {"dim": 6}, {"filters": ((3, 4), (2, 3), (4, 6))}],
)
def test_a_biLM_that_does_not_fit_is_refused(other):
    weights = Weights.from_bilm(tiny.bilm(tiny.config(**CLIPS)))
    with pytest.raises(ValueError, match="differ in more|does not fit"):
        grown(weights, tiny.config(**{**CLIPS, **LARGE, **other}))


def test_a_fitted_head_predicts_the_next_word(tmp_path):
    text = tmp_path / "text.txt"
    # After each word, there are at most two different words.
    text.write_text("the cat sleeps .\nthe dog barks .\n" * 200, "utf8")
    corpus = prepare(Paths(raw_text=str(text)), Prepare(tokenized=True), tmp_path / "corpus")
    bilm = tiny.bilm(tiny.config(**CLIPS))
    vocabulary = corpus.vocabulary(20)
    head = fitted_head(bilm, corpus, vocabulary, words=1000)
    sentences = corpus.dev
    batch = Batcher(bilm, corpus.types, vocabulary)(*sentences.take(np.arange(2)))
    with torch.no_grad():
        output = bilm.forward_packed(batch.token_ids, batch.words, batch.lengths)
        classes = torch.from_numpy(targets(output, batch.classes))
        losses = head.full_loss(output.outputs[-1].flatten(0, 1), classes.flatten())
    counts = np.bincount(classes.flatten(), minlength=len(vocabulary))
    frequencies = counts[counts > 0] / counts.sum()
    entropy = -(frequencies * np.log(frequencies)).sum()
    assert losses.mean() < 0.7 * entropy

"""The span ranker is compared with the formulas of its papers, span by span and pair by pair."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.coref.ranker import SpanRanker, candidates
from torch.testing import assert_close

WIDTH, LONGEST = 8, 3


@pytest.fixture
def ranker():
    torch.manual_seed(0)
    return SpanRanker(WIDTH, LONGEST, spans_per_word=0.5, antecedents=2, dropout=0.5).eval()


@pytest.fixture
def sentences():
    torch.manual_seed(1)
    return [torch.randn(length, WIDTH) for length in (4, 1, 5)]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(1, 8))
def test_candidates_are_all_short_spans_of_a_sentence(lengths, longest):
    expected, before = [], 0
    for length in lengths:
        for start in range(length):
            for end in range(start + 1, min(start + longest, length) + 1):
                expected.append((before + start, before + end))
        before += length
    starts, widths = candidates(lengths, longest)
    assert list(zip(starts.tolist(), (starts + widths + 1).tolist(), strict=True)) == expected


def slow_ranking(ranker, sentences):
    """Return {span: (mention score, vector)}, and a function that scores a pair."""
    tokens = torch.cat([x + ranker.read(x[None], torch.tensor([len(x)]))[0] for x in sentences])
    spans, before = {}, 0
    for sentence in sentences:
        for start in range(before, before + len(sentence)):
            for end in range(start + 1, min(start + LONGEST, before + len(sentence)) + 1):
                inside = tokens[start:end]
                attention = ranker.headness(inside)[:, 0].softmax(0)
                head = sum(a * x for a, x in zip(attention, inside, strict=True))
                size = ranker.span_width.weight[end - start - 1]
                vector = torch.cat([inside[0], inside[-1], head, size])
                spans[start, end] = float(ranker.mention(vector)), vector
        before += len(sentence)
    return spans


def bucket(distance):
    return sum(distance >= edge for edge in (1, 2, 3, 4, 5, 8, 16, 32, 64))


@torch.no_grad()
def test_scores_pair_by_pair(ranker, sentences):
    (actual,) = ranker([sentences])
    spans = slow_ranking(ranker, sentences)
    best = sorted(sorted(spans, key=lambda span: -spans[span][0])[:5])
    assert list(zip(actual.starts.tolist(), actual.ends.tolist(), strict=True)) == best
    for place, span in enumerate(best):
        mention, vector = spans[span]
        rough, full = {}, {}
        for earlier, other in enumerate(best[:place]):
            other_mention, other_vector = spans[other]
            similarity = ranker.coarse.weight @ vector @ other_vector / len(vector) ** 0.5
            rough[earlier] = float(mention + other_mention + similarity)
            hidden = (
                ranker.of_span(vector)
                + ranker.of_antecedent(other_vector)
                + ranker.of_product(vector * other_vector)
                + ranker.of_distance.weight[bucket(place - earlier)]
            )
            full[earlier] = rough[earlier] + float(ranker.pair(hidden))
        chosen = sorted(rough, key=lambda earlier: -rough[earlier])[:2]
        scores = actual.scores[place].tolist()
        assert scores[0] == 0
        assert actual.antecedents[place, : len(chosen)].tolist() == chosen
        expected = [full[earlier] for earlier in chosen] + [-torch.inf] * (2 - len(chosen))
        assert scores[1:] == pytest.approx(expected, abs=1e-5)


@torch.no_grad()
def test_documents_are_ranked_by_themselves(ranker, sentences):
    together = ranker([sentences, sentences[:1], sentences[1:2]])
    for document, actual in zip([sentences, sentences[:1], sentences[1:2]], together, strict=True):
        (alone,) = ranker([document])
        for one, other in zip(actual, alone, strict=True):
            assert_close(one, other)


@torch.no_grad()
def test_a_single_token(ranker):
    (actual,) = ranker([[torch.ones(1, WIDTH)]])
    assert (actual.starts.tolist(), actual.ends.tolist()) == ([0], [1])
    assert actual.scores.tolist() == [[0, -torch.inf]]


def test_every_token_gets_a_gradient(ranker, sentences):
    for sentence in sentences:
        sentence.requires_grad_()
    (actual,) = ranker([sentences])
    actual.scores[torch.isfinite(actual.scores)].sum().backward()
    used = {
        place
        for start, end in zip(actual.starts.tolist(), actual.ends.tolist(), strict=True)
        for place in range(start, end)
    }
    gradients = torch.cat([sentence.grad for sentence in sentences])
    assert all(gradients[place].any() for place in used)


@settings(max_examples=20)
@given(st.integers(1, 40), st.floats(0.05, 3))
def test_how_many_spans_are_kept(words, share):
    torch.manual_seed(0)
    ranker = SpanRanker(4, 2, spans_per_word=share, antecedents=3, dropout=0.0).eval()
    (actual,) = ranker([[torch.randn(words, 4)]])
    assert len(actual.starts) == min(max(1, round(share * words)), 2 * words - 1)
    assert actual.scores.shape == (len(actual.starts), 1 + min(3, len(actual.starts)))

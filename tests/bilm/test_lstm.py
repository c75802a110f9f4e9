"""The loop of an LSTM layer is compared with autograd over a naive loop, and the kernel with the loop."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.kernels import fused_lstm, native
from spacy_elmo.bilm.kernels.fused_lstm import (
    Clips,
    Direction,
    ForwardWeights,
    FusedLSTM,
    forward,
    has_fused_lstm,
    widened,
)
from spacy_elmo.bilm.kernels.native import padded
from spacy_elmo.bilm.lstm import InferenceLSTM, LSTMLayer, PlainLSTM
from tests import tiny
from tests.threads import torch_threads

ROWS = [4, 4, 3, 1, 1]
CLIPS = [(None, None), (0.3, 0.2), (0.3, None), (None, 0.2)]
WITH_AND_WITHOUT_PROJECTION = [7, 5]


def naive(layer, x, rows, h, c):
    """Compute the formulas of `bilm/lstm.py`, one sequence at a time."""
    first = [sum(rows[:step]) for step in range(len(rows))]
    y = {}
    last_h, last_c = h.clone(), c.clone()
    for direction, rank in itertools.product((0, 1), range(h.shape[1])):
        ht, ct = h[direction, rank], c[direction, rank]
        for step, n in enumerate(rows):
            if rank >= n:
                break
            row = first[step] + rank
            z = x[direction, row] @ layer.input[direction] + ht @ layer.recurrent[direction]
            i, j, f, o = (z + layer.bias[direction]).chunk(4)
            ct = (f + layer.forget_bias).sigmoid() * ct + i.sigmoid() * j.tanh()
            if layer.cell_clip is not None:
                ct = ct.clamp(-layer.cell_clip, layer.cell_clip)
            ht = o.sigmoid() * ct.tanh()
            if layer.projection is not None:
                ht = ht @ layer.projection[direction]
                if layer.proj_clip is not None:
                    ht = ht.clamp(-layer.proj_clip, layer.proj_clip)
            y[direction, row] = ht
        last_h[direction, rank], last_c[direction, rank] = ht, ct
    outputs = [torch.stack([y[d, row] for row in range(sum(rows))]) for d in (0, 1)]
    return torch.stack(outputs), last_h, last_c


def make(dim=7, clips=(0.3, 0.2), rows=ROWS, dtype=torch.float64, **fields):
    """Return a layer, its input, and a state that is not zero."""
    config = tiny.config(dim=dim, cell_clip=clips[0], proj_clip=clips[1], **fields)
    layer = tiny.bilm(config).lstm[0].to(dtype)
    torch.manual_seed(1)
    x = torch.randn(2, sum(rows), config.projection, dtype=dtype)
    h = torch.randn(2, rows[0], config.projection, dtype=dtype) * 0.1
    c = torch.randn(2, rows[0], dim, dtype=dtype) * 0.1
    return layer, x, h, c


@pytest.mark.parametrize("forget_bias", [0.0, 1.0])
@pytest.mark.parametrize("clips", CLIPS)
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("graph", [False, True])
def test_equals_the_naive_loop(graph, dim, clips, forget_bias):
    layer, x, h, c = make(dim, clips, forget_bias=forget_bias)
    before = h.clone(), c.clone()
    with torch.set_grad_enabled(graph):
        y, last_h, last_c = layer(x, ROWS, h, c)
    assert torch.equal(h, before[0]) and torch.equal(c, before[1])
    assert y.requires_grad is graph
    assert not last_h.requires_grad and not last_c.requires_grad
    for got, expected in zip((y, last_h, last_c), naive(layer, x, ROWS, h, c), strict=True):
        torch.testing.assert_close(got, expected.detach(), atol=1e-12, rtol=0, check_stride=False)


@pytest.mark.parametrize("clips", CLIPS)
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
@pytest.mark.parametrize("rows", [ROWS, [3], [1, 1, 1], [5, 1]])
def test_every_gradient_equals_autograd(rows, dim, clips):
    layer, x, h, c = make(dim, clips, rows)
    inputs = [x.requires_grad_(), h.requires_grad_(), c.requires_grad_(), *layer.parameters()]
    fast = layer(x, rows, h, c)[0]
    slow = naive(layer, x, rows, h, c)[0]
    upstream = torch.randn_like(fast)
    expected = torch.autograd.grad(slow, inputs, upstream)
    for got, want in zip(torch.autograd.grad(fast, inputs, upstream), expected, strict=True):
        torch.testing.assert_close(got, want, atol=1e-11, rtol=1e-9)


def test_clips_are_active_in_these_tests():
    layer, x, h, c = make()
    y, _, last_c = naive(layer, x, ROWS, h, c)
    assert 0.1 < (y.abs() == 0.2).double().mean() < 0.9
    assert 0.1 < (last_c.abs() == 0.3).double().mean() < 0.9


def test_frozen_weights_pass_the_gradient_on():
    layer, x, h, c = make()
    layer.requires_grad_(False)
    x.requires_grad_()
    (got,) = torch.autograd.grad(layer(x, ROWS, h, c)[0].sum(), x)
    (want,) = torch.autograd.grad(naive(layer, x, ROWS, h, c)[0].sum(), x)
    torch.testing.assert_close(got, want)


def test_no_gradient_for_an_input_that_needs_none():
    layer, x, h, c = make()
    layer(x, ROWS, h, c)[0].sum().backward()
    assert x.grad is None
    assert all(parameter.grad is not None for parameter in layer.parameters())


@torch.no_grad()
@pytest.mark.parametrize("size", [1, 3, 5, 100])
def test_blocks_of_steps_change_nothing(monkeypatch, size):
    layer, x, h, c = make()
    whole = layer(x, ROWS, h, c)
    monkeypatch.setattr(fused_lstm, "_ROWS_PER_BLOCK", size)
    for got, expected in zip(layer(x, ROWS, h, c), whole, strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("graph", [False, True])
def test_no_rows(graph):
    layer, x, h, c = make()
    with torch.set_grad_enabled(graph):
        y, last_h, last_c = layer(x[:, :0], [], h[:, :0], c[:, :0])
    assert y.shape == (2, 0, 5)
    assert last_h.shape == (2, 0, 5) and last_c.shape == (2, 0, 7)


# In bfloat16, 0.175 is rounded down.
@pytest.mark.parametrize("clips", [(3.0, 3.0), (None, 0.175)])
@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dim", WITH_AND_WITHOUT_PROJECTION)
def test_bfloat16_is_close_and_leaves_float32(dim, kernels, clips, monkeypatch):
    if not kernels:
        monkeypatch.setattr(native, "library", lambda: None)
    layer, x, h, c = make(dim, clips, dtype=torch.float32)
    inputs = [x.requires_grad_(), *layer.parameters()]
    exact = layer(x, ROWS, h, c)
    expected = torch.autograd.grad(exact[0].square().sum(), inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = layer(x, ROWS, h, c)
        with torch.no_grad():
            served = layer(x, ROWS, h, c)
    gradients = torch.autograd.grad(rough[0].square().sum(), inputs)
    pairs = [*zip(rough, exact, strict=True), *zip(served, exact, strict=True)]
    for got, want in [*pairs, *zip(gradients, expected, strict=True)]:
        assert got.dtype == torch.float32
        # bfloat16 keeps 8 bits; errors of several steps and summands add up.
        assert (got - want).abs().max() < 0.02 * want.abs().max()
    assert not torch.equal(rough[0], exact[0])


@torch.no_grad()
def test_initial_values():
    """Glorot over the matrix [W_x ; W_h] with 2 x 64 rows, bias 0."""
    torch.manual_seed(0)
    layer = LSTMLayer(tiny.config(dim=32, projection=64))
    bound = (6 / (2 * 64 + 4 * 32)) ** 0.5
    assert float(layer.input.max()) == pytest.approx(bound, rel=0.01)
    assert float(layer.recurrent.min()) == pytest.approx(-bound, rel=0.01)
    assert float(layer.projection.max()) == pytest.approx((6 / (32 + 64)) ** 0.5, rel=0.01)
    assert (layer.bias == 0).all()


def test_backward_under_autocast_has_the_types_of_the_forward_pass():
    layer, x, h, c = make(dtype=torch.float32)
    loss, parameters = layer(x, ROWS, h, c)[0].square().sum(), list(layer.parameters())
    expected = torch.autograd.grad(loss, parameters, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(loss, parameters)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted)


def kept_numbers(layer, x, rows, h, c):
    """Count the numbers in the tensors that a forward pass keeps for the backward pass."""
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        layer(x, rows, h, c)
    return sum(kept)


@pytest.mark.skipif(not has_fused_lstm(torch.float32), reason="there are no kernels")
def test_a_long_forward_pass_keeps_no_gates(monkeypatch):
    rows = [1] * 400
    layer, x, h, c = make(rows=rows, dtype=torch.float32)
    gates = 2 * 400 * 4 * c.shape[2]
    monkeypatch.setattr(fused_lstm, "MAX_KEPT_ROWS", 400)
    assert kept_numbers(layer, x, rows, h, c) > gates
    monkeypatch.setattr(fused_lstm, "MAX_KEPT_ROWS", 399)
    assert kept_numbers(layer, x, rows, h, c) < gates / 4


DTYPES = [torch.float32, torch.bfloat16]


# Relative to the root mean square of the values compared; bfloat16 is rounded at other places in the two kernels.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 0.06}
NAMES = ("x", "input", "recurrent", "bias", "projection", "h", "c")
sizes = st.fixed_dictionaries(
    {
        "lengths": st.lists(st.integers(1, 9), min_size=1, max_size=20),
        "dim": st.integers(1, 150),
        "width": st.one_of(st.none(), st.integers(1, 150)),
        "cell_clip": st.sampled_from([None, 0.4]),
        "out_clip": st.sampled_from([None, 0.3]),
        "inputs": st.none() | st.integers(1, 70),
    }
)


def needs(dtype):
    if not has_fused_lstm(dtype):
        pytest.skip(f"no kernel for {dtype}")


def example(lengths, dim, width, cell_clip, out_clip, dtype=torch.float64, inputs=None):
    """Return arguments of `plain` in `dtype`, batch sizes and clips. Without a width there is no projection. `inputs`:
    width of x; None: that of the outputs."""
    random = torch.Generator().manual_seed(dim)
    lengths = sorted(lengths, reverse=True)
    batch_sizes = [sum(length > step for length in lengths) for step in range(lengths[0])]
    columns = dim if width is None else width
    inputs = columns if inputs is None else inputs

    def normal(*shape, scale=1.0):
        return (scale * torch.randn(*shape, generator=random)).to(dtype)

    arguments = [
        normal(sum(batch_sizes), inputs),
        normal(inputs, 4 * dim, scale=inputs**-0.5),
        normal(columns, 4 * dim, scale=columns**-0.5),
        normal(4 * dim, scale=0.1),
        None if width is None else normal(dim, width, scale=2 * dim**-0.5),
        normal(len(lengths), columns, scale=0.3),
        normal(len(lengths), dim, scale=0.5),
    ]
    return arguments, batch_sizes, Clips(cell_clip, None if width is None else out_clip)


def plain(x, input, recurrent, bias, projection, h, c, batch_sizes, clips, compute_dtype):
    """Run the plain version with the arguments of `FusedLSTM`."""
    tensors = x, input, recurrent, bias, projection, h, c
    one_direction = [None if t is None else t[None] for t in tensors]
    return [t[0] for t in PlainLSTM.apply(*one_direction, batch_sizes, clips, compute_dtype)]


def inference(x, input, recurrent, bias, projection, h, c, batch_sizes, clips, compute_dtype):
    """Run the kernel without a graph, with the arguments of `FusedLSTM`."""
    direction = Direction(input, recurrent, bias, projection)
    weights = ForwardWeights([[direction]], compute_dtype, half=False)
    outputs, types = x.new_empty((1, 1, len(x), h.shape[1])), torch.arange(len(x))
    last_h, last_c = (widened(t, padded(t.shape[1]))[None, None] for t in (h, c))
    space = torch.empty_like(x)[None]
    forward(
        weights, clips, space, outputs, last_h, last_c, batch_sizes, vectors=x.contiguous(), types=types
    )  # fmt: skip
    return outputs[0, 0], last_h[0, 0, :, : h.shape[1]], last_c[0, 0, :, : c.shape[1]]


def with_gradients(function, arguments, batch_sizes, clips, compute_dtype):
    """Return the outputs of a function and the gradients of its arguments."""
    leaves = [None if t is None else t.detach().clone().requires_grad_() for t in arguments]
    y, h, c = function(*leaves, batch_sizes, clips, compute_dtype)
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(0)).to(y.dtype)
    known = [leaf for leaf in leaves if leaf is not None]
    return [y, h, c], list(torch.autograd.grad(y, known, upstream))


def root_mean_square(values):
    return float(values.detach().double().square().mean().sqrt())


def assert_similar(found, expected, tolerance):
    # In bfloat16 a small gradient can be the difference of larger ones, so the largest is the scale of all.
    largest = max(map(root_mean_square, expected)) if tolerance > 0.01 else 0.02
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        scale = max(root_mean_square(wanted), largest)
        assert root_mean_square(got.double() - wanted.double()) <= tolerance * scale


@settings(deadline=None, max_examples=40)
@given(sizes=sizes, dtype=st.sampled_from(DTYPES), kept=st.booleans())
def test_values_and_gradients_of_any_sizes(sizes, dtype, kept):
    needs(dtype)
    arguments, *rest = example(**sizes)
    expected = with_gradients(plain, arguments, *rest, torch.float64)
    single = [None if t is None else t.float() for t in arguments]
    with pytest.MonkeyPatch.context() as patch:
        if not kept:
            patch.setattr(fused_lstm, "MAX_KEPT_ROWS", 0)
            patch.setattr(fused_lstm, "_ROWS_PER_BLOCK", 7)
        found = with_gradients(FusedLSTM.apply, single, *rest, dtype)
    assert_similar(found[0], expected[0], TOLERANCE[dtype])
    # A value near a clip can be on the other side of the clip after rounding, where its gradient is 0.
    tolerance = TOLERANCE[dtype]
    batch_sizes, clips = rest
    if dtype == torch.float32 and clips != Clips(None, None):
        for factor in (1 - 2e-6, 1 + 2e-6):
            near = Clips(*(clip and clip * factor for clip in clips))
            moved = with_gradients(plain, arguments, batch_sizes, near, torch.float64)[1]
            assume(all(map(partial(torch.allclose, rtol=0, atol=1e-5), moved, expected[1])))
    elif clips != Clips(None, None):
        # In bfloat16 this is frequent. In a single word, one such value changes the whole gradient.
        tolerance = 1.0 if sum(sizes["lengths"]) == 1 else 0.5
    assert_similar(found[1], expected[1], tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(512, 128), (1024, 256), (512, None)])
def test_values_and_gradients_of_usual_sizes(size, dtype):
    needs(dtype)
    lengths = [7] * 60 + [5] * 50 + [1] * 20
    arguments, *rest = example(lengths, *size, 3.0, 3.0, torch.float32)
    expected = with_gradients(plain, arguments, *rest, torch.float32)
    found = with_gradients(FusedLSTM.apply, arguments, *rest, dtype)
    for got, wanted in zip(found, expected, strict=True):
        assert_similar(got, wanted, TOLERANCE[dtype])


@settings(deadline=None, max_examples=30)
@given(sizes=sizes, dtype=st.sampled_from(DTYPES))
def test_inference_equals_training(sizes, dtype):
    """The results are equal bit for bit."""
    needs(dtype)
    arguments, batch_sizes, clips = example(**sizes, dtype=torch.float32)
    expected, _ = with_gradients(FusedLSTM.apply, arguments, batch_sizes, clips, dtype)
    found = inference(*arguments, batch_sizes, clips, dtype)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=30)
    | st.lists(st.integers(60, 70), min_size=1, max_size=3),
    dim=st.integers(1, 70),
    width=st.integers(1, 70),
    threads=st.sampled_from([1, 3]),
    residual=st.booleans(),
)
def test_all_layers_at_once(lengths, dim, width, threads, residual):
    """The bits are those of one sentence, layer and direction after the other, with and without float16 weights."""
    needs(torch.float32)
    fields = {
        "dim": dim,
        "projection": width,
        "layers": 3,
        "skip": residual,
        "cell_clip": 2.0,
        "proj_clip": 1.0,
    }
    lstm = tiny.bilm(tiny.config(**fields)).requires_grad_(False).lstm
    for parameter in lstm.parameters():
        parameter.copy_(parameter.half())
    lengths = sorted(lengths, reverse=True)
    batch_sizes = [sum(length > step for length in lengths) for step in range(lengths[0])]
    random = torch.Generator().manual_seed(dim)
    vectors = torch.randn(9, width, generator=random)
    state = [0.3 * torch.randn(3, 2, len(lengths), n, generator=random) for n in (width, dim)]
    rows = torch.randint(9, (2, sum(batch_sizes)), generator=random)
    starts = [sum(batch_sizes[:step]) for step in range(lengths[0])]
    results = []
    for half in (False, True):
        layers = InferenceLSTM(list(lstm), torch.float32, residual=residual, half=half)
        with torch_threads(threads):
            results.append(layers(vectors, rows.numpy(), batch_sizes, state))
    for direction, rank in itertools.product((0, 1), range(len(lengths))):
        packed = [start + rank for start in starts[: lengths[rank]]]
        x = vectors[rows[direction, packed]]
        for level, layer in enumerate(lstm):
            weights = layer.directions()[direction]
            h, c = (part[level, direction, [rank]] for part in state)
            y, h, c = inference(x, *weights, h, c, [1] * lengths[rank], layer.clips, torch.float32)
            x = x + y if residual and level else y
            for values, (last_h, last_c) in results:
                assert np.array_equal(values[level + 1, direction, packed], x)
                assert np.array_equal(last_h[level, direction, [rank]], h)
                assert np.array_equal(last_c[level, direction, [rank]], c)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sentence_does_not_depend_on_the_others(dtype):
    """The results are equal bit for bit, whichever rows of a tile a sentence has."""
    needs(dtype)
    lengths = [6] * 13 + [3] * 4
    (x, *weights, h, c), batch_sizes, clips = example(lengths, 48, 40, 3.0, 3.0, torch.float32)
    together = inference(x, *weights, h, c, batch_sizes, clips, dtype)
    starts = [sum(batch_sizes[:step]) for step in range(6)]
    for rank, length in enumerate(lengths):
        rows = [start + rank for start in starts[:length]]
        state = h[[rank]], c[[rank]]
        alone = inference(x[rows], *weights, *state, [1] * length, clips, dtype)
        expected = (together[0][rows], together[1][[rank]], together[2][[rank]])
        assert all(torch.equal(*pair) for pair in zip(alone, expected, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_arguments_are_unchanged_and_may_lie_anywhere(dtype):
    needs(dtype)
    arguments, *rest = example([5, 4, 4, 1], 24, 20, 3.0, 3.0, torch.float32)
    before = [t.clone() for t in arguments]
    expected = with_gradients(FusedLSTM.apply, arguments, *rest, dtype)
    assert all(torch.equal(*pair) for pair in zip(arguments, before, strict=True))
    shifted = [torch.cat([t.flatten()[:1], t.flatten()])[1:].view(t.shape) for t in arguments]
    transposed = [t.t().contiguous().t() if t.dim() == 2 else t for t in arguments]
    for others in (shifted, transposed):
        found = with_gradients(FusedLSTM.apply, others, *rest, dtype)
        for pairs in zip(found, expected, strict=True):
            assert all(torch.equal(*pair) for pair in zip(*pairs, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [2, 3])
def test_any_number_of_threads(dtype, threads):
    needs(dtype)
    arguments, *rest = example([9, 9, 8, 7, 7, 6, 2, 1, 1], 80, 64, 3.0, 3.0, torch.float32)
    expected = with_gradients(FusedLSTM.apply, arguments, *rest, dtype)
    with torch_threads(threads):
        found = with_gradients(FusedLSTM.apply, arguments, *rest, dtype)
        again = with_gradients(FusedLSTM.apply, arguments, *rest, dtype)
    for name, got, wanted, repeated in zip(
        ("y", "last h", "last c", *NAMES),
        *(sum(parts, []) for parts in (found, expected, again)),
        strict=True,
    ):
        assert torch.equal(got, repeated)
        if name == "bias":  # the sums over the rows are added in another order
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-4)
        else:
            assert torch.equal(got, wanted), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_gates_that_are_far_out(dtype):
    """Beyond the range of e^x, gates are open or closed."""
    needs(dtype)
    arguments, *rest = example([2, 1], 20, 18, None, None, torch.float32)
    arguments[3][::2], arguments[3][1::2] = 1e30, -1e30
    found = inference(*arguments, *rest, dtype)
    expected = plain(*arguments, *rest, torch.float32)
    assert_similar(found, expected, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [math.nan, -math.nan, math.inf])
def test_what_is_not_a_number_stays_none(dtype, value):
    """NaN spreads in its own sentence and in the gradients of the weights, but never to another sentence."""
    needs(dtype)
    arguments, *rest = example([4, 3, 2], 40, 24, 3.0, 3.0, torch.float32)
    arguments[0][1, 5] = value if math.isnan(value) else math.nan
    arguments[0][2, 3] = value
    (y, h, _), gradients = with_gradients(FusedLSTM.apply, arguments, *rest, dtype)
    assert y[1].isnan().all() and h[1].isnan().all()
    assert y[0].isfinite().all() and h[0].isfinite().all()
    assert gradients[1].isnan().any() and gradients[3].isnan().any()


def test_nothing_to_read():
    needs(torch.float32)
    (x, *weights, h, c), _, clips = example([1], 5, 3, None, None, torch.float32)
    leaves = [t.requires_grad_() for t in (x[:0].clone(), *weights, h, c)]
    y, last_h, last_c = FusedLSTM.apply(*leaves, [], clips, torch.float32)
    assert y.shape == (0, 3) and torch.equal(last_h, h) and torch.equal(last_c, c)
    gradients = torch.autograd.grad(y.sum(), leaves, allow_unused=True)
    assert not any(gradient.any() for gradient in gradients if gradient is not None)


def test_other_tensors_have_no_kernel(monkeypatch):
    needs(torch.float32)
    single = torch.zeros(1)
    assert has_fused_lstm(torch.float32, single)
    assert not has_fused_lstm(torch.float32, single, single.double())
    assert not has_fused_lstm(torch.float32, single.to("meta"))
    assert not has_fused_lstm(torch.float16, single)
    monkeypatch.setattr(native, "library", lambda: None)
    assert not has_fused_lstm(torch.float32, single)

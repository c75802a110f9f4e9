"""The scalar mix, by numbers that can be checked by hand, and its gradient, by finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spacy_elmo.pipeline.listen.scalar_mix import MixOptions, mix_layers, scalar_mix

# Three layers of one token of width 2.
ONES = np.stack([np.full((1, 2), value, dtype="f") for value in (1, 2, 6)])


def build(x=ONES, **options):
    return scalar_mix(MixOptions(**options)).initialize(X=[x])


def test_starts_as_the_average():
    assert_allclose(build().predict([ONES])[0], [[3, 3]])


def test_forward_and_gradient_by_hand():
    mix = build()
    # softmax of (ln 2, 0, 0) is (1/2, 1/4, 1/4): the mean is 1/2 + 2/4 + 6/4 = 2.5, and gamma is 1 + 1.
    mix.set_param("scalars", np.log(np.array([2, 1, 1], dtype="f")))
    mix.set_param("scale", np.array([1], dtype="f"))
    (y,), backprop = mix.begin_update([ONES])
    assert_allclose(y, [[5, 5]], rtol=1e-6)
    (dx,) = backprop([np.array([[1, 0]], dtype="f")])
    assert_allclose(dx[:, 0], [[1, 0], [0.5, 0], [0.5, 0]], rtol=1e-6)
    # What each layer alone would be worth: 2 (1, 2, 6). Their mean under the weights is 5.
    # So s gets weight x (worth - mean): (1/2 (2 - 5), 1/4 (4 - 5), 1/4 (12 - 5)).
    assert_allclose(mix.get_grad("scalars"), [-1.5, -0.25, 1.75], rtol=1e-6)
    assert_allclose(mix.get_grad("scale"), [2.5], rtol=1e-6)


@pytest.mark.parametrize("layers", ["mix", "average", "top"])
def test_layers_of_float16_are_mixed_in_float32(layers):
    """Nothing is rounded but the layers themselves, for one Doc or several."""
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float16")
    exact = x.astype("f")
    mixes = [build(exact, layers=layers) for _ in range(2)]
    for cut in ([x], [x[:, :2], x[:, 2:]]):
        ys, backprop = mixes[0].begin_update(cut)
        (expected,), backprop_exact = mixes[1].begin_update([exact])
        assert all(y.dtype == np.float32 for y in ys)
        np.testing.assert_array_equal(np.concatenate(ys), expected)
        dx, (expected,) = backprop(ys), backprop_exact([np.concatenate(ys)])
        assert all(d.dtype == np.float32 for d in dx)
        np.testing.assert_array_equal(np.concatenate(dx, axis=1), expected)


@pytest.mark.parametrize("layers, expected", [("average", 3), ("top", 6), (0, 1), (1, 2), (-1, 6)])
def test_fixed_choices_have_no_parameters(layers, expected):
    mix = build(layers=layers)
    (y,), backprop = mix.begin_update([ONES])
    assert_allclose(y, [[expected, expected]])
    assert not mix.param_names
    (dx,) = backprop([np.ones((1, 2), dtype="f")])
    assert_allclose(dx.sum(), 2)
    assert_allclose((dx * ONES).sum(), 2 * expected)


def test_l2_is_on_the_scalars_alone():
    mix = build(l2=0.5)
    mix.set_param("scalars", np.array([1, -2, 0], dtype="f"))
    _, backprop = mix.begin_update([ONES])
    backprop([np.zeros((1, 2), dtype="f")])
    assert_allclose(mix.get_grad("scalars"), [1, -2, 0])
    assert_allclose(mix.get_grad("scale"), [0])


def test_gradient_of_the_layers_of_a_frozen_bilm_is_left_out():
    mix = build()
    _, backprop = mix_layers(mix, [ONES], True, trained=False)
    assert backprop([np.ones((1, 2), dtype="f")]) == [] and mix.has_grad("scalars")


def test_gradient_by_finite_differences():
    random = np.random.default_rng(0)
    x = random.normal(size=(3, 4, 5))
    dy = random.normal(size=(4, 5))
    mix = build(x)
    mix.set_param("scalars", random.normal(size=3))
    mix.set_param("scale", random.normal(size=1))

    def loss():
        return float((mix.predict([x])[0] * dy).sum())

    _, backprop = mix.begin_update([x])
    (dx,) = backprop([dy])
    for array, gradient in [
        (x, dx),
        (mix.get_param("scalars"), mix.get_grad("scalars")),
        (mix.get_param("scale"), mix.get_grad("scale")),
    ]:
        assert_allclose(gradient, _differences(array, loss), atol=1e-6)


def _differences(array, loss, step=1e-5):
    actual = np.empty_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + step
        up = loss()
        array[place] = kept - step
        actual[place] = (up - loss()) / (2 * step)
        array[place] = kept
    return actual


def test_docs_keep_apart():
    x = np.arange(3 * 5 * 2, dtype="f").reshape(3, 5, 2)
    parts = [x[:, :2], x[:, 2:2], x[:, 2:]]
    mix = build(x)
    ys, backprop = mix.begin_update(parts)
    assert [y.shape for y in ys] == [(2, 2), (0, 2), (3, 2)]
    assert_allclose(np.concatenate(ys), mix.predict([x])[0])
    assert [dx.shape for dx in backprop(ys)] == [part.shape for part in parts]
    assert mix.predict([]) == []


def test_round_trip_and_copy_by_values():
    mix = build()
    mix.set_param("scalars", np.array([3, 1, -1], dtype="f"))
    mix.set_param("scale", np.array([0.5], dtype="f"))
    loaded = scalar_mix(MixOptions()).from_bytes(mix.to_bytes())
    for other in (loaded, mix.copy()):
        assert_allclose(other.predict([ONES])[0], mix.predict([ONES])[0])


def test_options_come_from_the_config_not_from_the_bytes():
    saved = build(layers="top").to_bytes()
    loaded = scalar_mix(MixOptions(layers=0)).from_bytes(saved)
    assert_allclose(loaded.predict([ONES])[0], [[1, 1]])


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_impossible_dropout(dropout):
    with pytest.raises(ValueError, match=f"dropout = {dropout}"):
        MixOptions(dropout=dropout)


def test_layer_that_is_not_there():
    with pytest.raises(ValueError, match="layers = 3, but the biLM has 3 layers, 0 to 2"):
        build(layers=3)


@pytest.mark.parametrize("layers", ["mix", "average", "top"])
def test_layers_of_another_bilm(layers):
    mix = build(layers=layers)
    for other in (ONES[:2], ONES[:, :, :1]):
        n_layers, _, width = other.shape
        expected = f"3 layers of width 2.*{n_layers} layers of width {width}.*replace_listeners"
        with pytest.raises(ValueError, match=expected):
            mix.predict([ONES, other])


@pytest.mark.parametrize("layers", ["mix", "average", "top", 0])
def test_output_is_no_view_of_the_layers(layers):
    """The next layer may write into the output, while the layers may belong to a Doc or to the cache."""
    (y,) = build(layers=layers).predict([ONES])
    assert not np.shares_memory(y, ONES)


def test_without_weights():
    with pytest.raises(ValueError, match="nlp.initialize"):
        scalar_mix(MixOptions()).predict([ONES])

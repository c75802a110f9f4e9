"""The weights file: a round trip keeps all values, the same content has the same bytes, and damage is an error."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import FORMAT, StartState, Weights, on_meta_device
from tests import tiny

CARD = {"name": "tiny", "language": "en", "perplexity": 12.5, "note": "naïve 鳥"}
START = StartState(torch.linspace(-1, 1, 20).view(2, 2, 5), torch.linspace(-3, 3, 28).view(2, 2, 7))
SENTENCES = [["Cat", "a", "cat", "鳥", "🙂\u3000", "unheard"]]


def make(config=None, head=False, dtype=torch.float32, start_state=None):
    bilm = tiny.bilm(config or tiny.config())
    vocabulary = tiny.LEXICON if bilm.config.is_many_langs else tiny.VOCABULARY
    vocabulary = vocabulary if head or bilm.config.n_words else []
    return Weights.from_bilm(
        bilm,
        Head(len(vocabulary), 5) if head else None,
        vocabulary=vocabulary,
        card=CARD,
        start_state=start_state,
        dtype=dtype,
    )


def assert_same(one, other):
    assert dataclasses.replace(one, tensors={}, start_state=None) == dataclasses.replace(
        other, tensors={}, start_state=None
    )
    assert (one.start_state is None) == (other.start_state is None)
    pairs = [(one.tensors, other.tensors)]
    if one.start_state is not None:
        pairs.append((vars(one.start_state), vars(other.start_state)))
    for some, others in pairs:
        assert some.keys() == others.keys()
        for name, tensor in some.items():
            assert tensor.dtype == others[name].dtype and torch.equal(tensor, others[name]), name


CONFIGS = [
    tiny.config(), tiny.config(n_words=8), tiny.lexicon_config(), tiny.lexicon_config(n_symbols=0),
    tiny.lexicon_config(n_words=0, word_dim=0),
]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    "head, dtype, start_state",
    [(True, torch.float32, START), (False, torch.float16, None), (True, torch.bfloat16, None)],
)
def test_round_trip(tmp_path, config, head, dtype, start_state):
    weights, path = make(config, head, dtype, start_state), tmp_path / "w.safetensors"
    weights.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]
    again = Weights.load(path)
    assert_same(again, weights)
    assert_same(Weights.from_bytes(weights.to_bytes()), weights)
    assert Weights.load_card(path) == CARD
    # Products over memory with another alignment may be rounded differently in another process.
    assert all(tensor.data_ptr() % 64 == 0 for tensor in again.tensors.values())
    path.write_bytes(b"x" * path.stat().st_size)
    os.truncate(path, 10)
    model, expected = again.build_bilm(), weights.build_bilm()
    assert not model.training
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert torch.equal(tiny.read(model, SENTENCES).layers, tiny.read(expected, SENTENCES).layers)
    if head:
        assert torch.equal(again.build_head().weight, weights.tensors["head.weight"].float())
        assert torch.equal(again.build_head().bias, weights.tensors["head.bias"].float())
    assert_same(again.without_head(), make(config, False, dtype, start_state))
    assert again.without_head().build_head() is None


def test_the_same_content_has_the_same_bytes():
    weights = make(head=True, start_state=START)
    content = weights.to_bytes()
    weights.tensors = dict(reversed(weights.tensors.items()))
    assert {content} == {weights.to_bytes() for _ in range(6)}
    assert {content} == {Weights.from_bytes(content).to_bytes() for _ in range(6)}


def test_the_digest_is_that_of_all_but_the_card():
    weights = make(tiny.lexicon_config(), head=True, start_state=START)
    assert weights.digest() == dataclasses.replace(weights, card={}).digest()
    changed = [
        {"config": dataclasses.replace(weights.config, forget_bias=0.5)},
        {"vocabulary": tiny.LEXICON[::-1]},
        {"alphabet": tiny.ALPHABET[::-1]},
        {"start_state": None},
        {"tensors": {name: tensor + 1 for name, tensor in weights.tensors.items()}},
    ]
    digests = {dataclasses.replace(weights, **change).digest() for change in changed}
    assert len(digests | {weights.digest()}) == len(changed) + 1


def test_weights_are_a_copy_of_the_network():
    live = tiny.bilm(tiny.config())
    before = tiny.read(live, SENTENCES).layers
    weights = Weights.from_bilm(live)
    with torch.no_grad():
        for parameter in live.parameters():
            parameter.zero_()
    assert torch.equal(tiny.read(weights.build_bilm(), SENTENCES).layers, before)


def test_odd_words_and_characters():
    words = ["<S>", "</S>", "<UNK>", "", "\ud800", "\u2028", "\x85", "a\tb"]
    characters = "\n\0\ud83d\ude42\x85\u2028\U0010ffff"
    weights = dataclasses.replace(make(head=True), vocabulary=words, alphabet=characters)
    again = Weights.from_bytes(weights.to_bytes())
    assert (again.vocabulary, again.alphabet) == (words, characters)


@settings(max_examples=20, deadline=None)
@given(text=st.text(st.characters(exclude_categories=())))
@example("\udcff")
def test_any_text_in_a_card(text):
    """A card may contain half of a surrogate pair, as in the name of a file that is not UTF-8."""
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), card={text: [text]})
    assert Weights.from_bytes(weights.to_bytes()).card == {text: [text]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_not_finite_is_not_written(tmp_path, value, dtype):
    weights, path = make(dtype=dtype), tmp_path / "w.safetensors"
    weights.save(path)
    before = path.read_bytes()
    weights.tensors["lstm.1.recurrent"][1, 4, 27] = value
    with pytest.raises(ValueError, match="lstm.1.recurrent"):
        weights.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_a_word_with_a_newline_is_not_written():
    with pytest.raises(ValueError, match=r"a\\nb"):
        dataclasses.replace(make(), vocabulary=["a\nb"]).to_bytes()


CONTENT = make(head=True, start_state=START).to_bytes()


def header_of(content):
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]


def swapped(content):
    tensors = safetensors.torch.load(content)
    tensors["lstm.0.bias"], tensors["lstm.1.bias"] = (
        tensors["lstm.1.bias"] + 1,
        tensors["lstm.0.bias"],
    )
    return safetensors.torch.save(tensors, header_of(content))  # fmt: skip


def without(name):
    tensors = safetensors.torch.load(CONTENT)
    del tensors[name]
    return safetensors.torch.save(tensors, header_of(CONTENT))


def with_header(**entries):
    header = {n: v for n, v in (header_of(CONTENT) | entries).items() if v is not None}
    return safetensors.torch.save(safetensors.torch.load(CONTENT), header)


def only_header(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


CHANGED = "changed since it was written"
DAMAGED = {
    "clip": (CONTENT.replace(b'\\"cell_clip\\": 0.3', b'\\"cell_clip\\": 0.9'), CHANGED),
    "residual": (CONTENT.replace(b'\\"skip\\": true', b'\\"skip\\":false'), CHANGED),
    "card": (CONTENT.replace(b'\\"language\\": \\"en', b'\\"language\\": \\"es'), CHANGED),
    "digest": (CONTENT.replace(b'"digest"', b'"dIgest"'), CHANGED),
    "two tensors have changed places": (swapped(CONTENT), CHANGED),
    "no vocabulary": (without("vocabulary"), CHANGED),
    "half a start state": (without("start.c"), CHANGED),
    "no format": (with_header(format=None), f"format None, expected '{FORMAT}'.* elmo convert"),
    "another format": (with_header(format="pt"), "format 'pt', expected"),
    "a long config": (with_header(config="[" * 100_000), CHANGED),
    "no config": (with_header(config=None), CHANGED),
    "huge": (only_header({"w": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}), ""),
    "float8": (only_header({"w": {"dtype": "F8_E8M0", "shape": [0], "data_offsets": [0, 0]}}), ""),
    "no metadata": (only_header({"__metadata__": None}), ""),
    "text": (b"nonsense", ""),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damage(tmp_path, damage):
    content, problem = DAMAGED[damage]
    assert content != CONTENT
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"w\.safetensors is not a readable.*{problem}"):
        Weights.load(path)
    with pytest.raises(ValueError, match=rf"weights is not a readable.*{problem}"):
        Weights.from_bytes(content)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_any_wrong_byte_and_any_end_are_errors(place, change):
    with pytest.raises(ValueError, match="not a readable weights file"):
        Weights.from_bytes(CONTENT[:place])
    damaged = bytearray(CONTENT)
    damaged[place] ^= change
    try:
        weights = Weights.from_bytes(bytes(damaged))
    except ValueError:
        return
    # White space of the header may be another one.
    assert_same(weights, make(head=True, start_state=START))


@pytest.mark.parametrize("card", ["{", "[1]", '{"a":' * 100_000, None])
def test_a_damaged_card_alone(tmp_path, card):
    path = tmp_path / "w.safetensors"
    path.write_bytes(with_header(card=card))
    with pytest.raises(ValueError, match=r"w\.safetensors is not a readable weights file"):
        Weights.load_card(path)


@pytest.mark.parametrize(
    "config, change, problem",
    [
        (None, {"config": tiny.config(dim=8)}, r"lstm.0.input has \[2, 5, 28\], not \[2, 5, 32\]"),
        (None, {"tensors": {}}, r"characters has None, not \[261, 3\]"),
        (CONFIGS[1], {"vocabulary": tiny.VOCABULARY[:5]}, "5 words, but the table has 8 rows"),
        (CONFIGS[2], {"vocabulary": ["else", *tiny.LEXICON[1:]]}, "no <bos>|no <eos>|no <oov>"),
        (CONFIGS[2], {"alphabet": "abc"}, "alphabet has 3 characters"),
    ],
)
def test_content_that_does_not_match_its_config(config, change, problem):
    weights = dataclasses.replace(make(config), **change)
    with pytest.raises(ValueError, match=problem):
        Weights.from_bytes(weights.to_bytes()).build_bilm()


def test_half_a_head():
    weights = make(head=True)
    del weights.tensors["head.bias"]
    with pytest.raises(ValueError, match=r"bias has None, not \[8, 1\]"):
        weights.build_head()


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Weights.load(tmp_path / "nowhere.safetensors")
    with pytest.raises(IsADirectoryError):
        Weights.load(Path(tmp_path))


ON_META = [
    tiny.config(), tiny.config(activation="tanh"), tiny.config(n_words=8), tiny.lexicon_config(),
]  # fmt: skip


@pytest.mark.parametrize("config", ON_META)
def test_networks_on_the_meta_device_have_names_and_shapes_alone(config):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    with on_meta_device():
        meta = torch.nn.ModuleList([BiLM(config), Head(3, config.projection)])
    assert torch.equal(torch.rand(1), expected)  # nothing was drawn
    network = torch.nn.ModuleList([BiLM(config), Head(3, config.projection)])
    assert [(name, p.shape, p.dtype) for name, p in meta.named_parameters()] == [
        (name, p.shape, p.dtype) for name, p in network.named_parameters()
    ]
    assert all(p.is_meta for p in meta.parameters())
    assert all(isinstance(p, torch.nn.Parameter) for p in meta.parameters())


def test_networks_are_initialized_again_afterwards():
    with on_meta_device():
        BiLM(tiny.config())
    torch.manual_seed(0)
    one = BiLM(tiny.config())
    torch.manual_seed(0)
    for name, parameter in BiLM(tiny.config()).named_parameters():
        assert torch.equal(parameter, one.get_parameter(name))
    assert one.lstm[0].input.std() > 0.1 and not one.device.type == "meta"


@pytest.mark.parametrize("operation", ["clone", "float"])
def test_an_error_of_the_machine_is_not_damage(monkeypatch, operation):
    """torch raises a RuntimeError, for example if there is too little memory."""

    def fail(tensor):
        raise RuntimeError("can't allocate memory")

    monkeypatch.setattr(torch.Tensor, operation, fail)
    with pytest.raises(RuntimeError, match="^can't allocate memory$"):
        Weights.from_bytes(CONTENT).build_bilm()

"""The weights file: a round trip keeps all values, and errors name every kind of damage."""

import dataclasses
import json

import pytest
import safetensors.torch
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.start_state import StartState
from spacy_elmo.bilm.weights import FORMAT, Weights
from tests import tiny

CARD = {"name": "tiny", "language": "en", "perplexity": 12.5, "note": "naïve 鳥"}


def make(head=False, words=0, dtype=torch.float32, start_state=None):
    bilm = tiny.bilm(tiny.config(n_words=words))
    vocabulary = tiny.VOCABULARY if head or words else []
    return Weights.from_bilm(
        bilm,
        Head(len(vocabulary), 5) if head else None,
        vocabulary=vocabulary,
        card=CARD,
        start_state=start_state,
        dtype=dtype,
    )


def assert_same(one, other):
    assert one.config == other.config
    assert one.card == other.card
    assert one.vocabulary == other.vocabulary
    assert one.alphabet == other.alphabet
    assert_equal(one.tensors, other.tensors)
    assert (one.start_state is None) == (other.start_state is None)
    if one.start_state is not None:
        assert_equal(vars(one.start_state), vars(other.start_state))


def assert_equal(some, others):
    assert some.keys() == others.keys()
    for name, tensor in some.items():
        assert tensor.dtype == others[name].dtype
        assert torch.equal(tensor, others[name]), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("words", [0, 8])
@pytest.mark.parametrize("head", [False, True])
def test_round_trip_by_values(tmp_path, head, words, dtype):
    weights = make(head, words, dtype)
    weights.save(tmp_path / "w.safetensors")
    again = Weights.load(tmp_path / "w.safetensors")
    assert_same(weights, again)
    assert_same(weights, Weights.from_bytes(weights.to_bytes()))
    assert [path.name for path in tmp_path.iterdir()] == ["w.safetensors"]
    assert all(tensor.dtype == dtype for tensor in again.tensors.values())
    # What a user reads: the vectors of the network.
    model = again.build_bilm()
    assert not model.training
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    expected = weights.build_bilm()
    sentences = [["a", "cat"], ["unheard"]]
    assert torch.equal(tiny.read(model, sentences).layers, tiny.read(expected, sentences).layers)
    assert (again.build_head() is not None) == head
    if head:
        assert torch.equal(again.build_head().weight, weights.tensors["head.weight"].float())
        assert torch.equal(again.build_head().bias, weights.tensors["head.bias"].float())


def test_float32_is_the_live_network():
    live = tiny.bilm(tiny.config())
    sentences = [["a", "cat", "sat"]]
    before = tiny.read(live, sentences).layers
    weights = Weights.from_bilm(live)
    with torch.no_grad():
        for parameter in live.parameters():
            parameter.zero_()
    # A copy: training on does not change it.
    assert torch.equal(tiny.read(weights.build_bilm(), sentences).layers, before)


def test_float16_is_close():
    live = tiny.bilm(tiny.config())
    rounded = Weights.from_bilm(live, dtype=torch.float16).build_bilm()
    exact = tiny.read(live, [["a", "cat"]]).layers
    assert (tiny.read(rounded, [["a", "cat"]]).layers - exact).abs().max() < 0.01


def test_a_network_from_weights_can_be_trained():
    model = make().build_bilm()
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())


def test_drawing_a_network_leaves_the_random_numbers_alone():
    weights = make()
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    weights.build_bilm()
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("words", [0, 8])
def test_without_head(words):
    alone = make(head=True, words=words).without_head()
    assert alone.build_head() is None
    assert alone.vocabulary == (tiny.VOCABULARY if words else [])
    assert_same(alone, make(words=words))


START = StartState(torch.linspace(-1, 1, 20).view(2, 2, 5), torch.linspace(-3, 3, 28).view(2, 2, 7))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_start_state(tmp_path, dtype):
    weights = make(head=True, dtype=dtype, start_state=START)
    assert weights.start_state.h.dtype == weights.start_state.c.dtype == dtype
    weights.save(tmp_path / "w.safetensors")
    again = Weights.load(tmp_path / "w.safetensors")
    assert_same(weights, again)
    assert_same(weights, Weights.from_bytes(weights.to_bytes()))
    assert torch.equal(again.start_state.c, START.c.to(dtype))
    assert_same(weights.without_head(), make(dtype=dtype, start_state=START))
    assert tiny.read(again.build_bilm(), [["a"]]).layers.shape == (3, 1, 10)
    # Beside the tensors of the network, whose number and names many rely on.
    assert again.tensors.keys() == make(head=True).tensors.keys()
    names = safetensors.torch.load(weights.to_bytes()).keys()
    assert names - safetensors.torch.load(make(head=True).to_bytes()).keys() == {
        "start.h",
        "start.c",
    }


@pytest.mark.parametrize(
    "damage, problem",
    [
        ({"start.h": torch.zeros(2, 2, 7)}, r"start.h: shape \[2, 2, 7\], expected \[2, 2, 5\]"),
        ({"start.c": torch.zeros(1, 2, 7)}, r"start.c: shape \[1, 2, 7\], expected \[2, 2, 7\]"),
        (
            {"start.c": torch.full((2, 2, 7), torch.inf)},
            "start.c: contains values that are not finite",
        ),
        ({"start.h": torch.zeros(2, 2, 5).int()}, "start.h: type torch.int32, expected a float"),
        ({"start.h": None}, "start.h: missing"),
        ({"start.c": None}, "start.c: missing"),
        ({"start.x": torch.zeros(1)}, "start.x: unexpected"),
    ],
)
def test_damaged_start_state(tmp_path, damage, problem):
    tensors = {"start.h": START.h, "start.c": START.c} | damage
    changes = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    path = rewritten(tmp_path / "w.safetensors", lambda before: before.update(changes))
    with pytest.raises(ValueError, match=problem):
        Weights.load(path)


CONTENT = make(head=True).to_bytes()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(CONTENT) - 1))
def test_truncated_anywhere(tmp_path_factory, size):
    path = tmp_path_factory.getbasetemp() / "truncated.safetensors"
    path.write_bytes(CONTENT[:size])
    for read in (lambda: Weights.load(path), lambda: Weights.from_bytes(CONTENT[:size])):
        with pytest.raises(ValueError, match="not a readable weights file"):
            read()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_a_wrong_byte_is_an_error(place, change):
    damaged = bytearray(CONTENT)
    damaged[place] ^= change
    try:
        weights = Weights.from_bytes(bytes(damaged))
    except ValueError:
        return
    # White space of the header may be another one.
    assert_same(weights, make(head=True))


def rewritten(path, change_tensors=None, **header):
    """Write the file of the tiny model with changed tensors or changed parts of the header."""
    weights = make(head=True)
    weights.save(path)
    with safetensors.safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        before = file.metadata()
    if change_tensors:
        change_tensors(tensors)
    after = {name: value for name, value in (before | header).items() if value is not None}
    path.write_bytes(safetensors.torch.save(tensors, after))
    return path


def test_every_mismatch_is_named(tmp_path):
    def change(tensors):
        del tensors["lstm.1.bias"]
        tensors["lstm.2.bias"] = torch.zeros(3)
        tensors["lstm.0.input"] = torch.zeros(2, 5, 27)
        tensors["lstm.0.bias"] = torch.zeros(2, 28, dtype=torch.float64)
        tensors["lstm.1.input"] = torch.zeros(2, 5, 28, dtype=torch.int32)
        tensors["encoder.characters"][3, 1] = float("nan")
        tensors["head.weight"] = torch.zeros(7, 5)

    path = rewritten(tmp_path / "w.safetensors", change)
    with pytest.raises(ValueError) as error:
        Weights.load(path)
    first, *problems = str(error.value).split("\n")
    assert first == f"{path}: the tensors do not match the header:"
    assert problems == [
        "  encoder.characters: contains values that are not finite",
        "  head.weight: shape [7, 5], expected [8, 5]",
        "  lstm.0.bias: type torch.float64, expected a float of 16 or 32 bits",
        "  lstm.0.input: shape [2, 5, 27], expected [2, 5, 28]",
        "  lstm.1.bias: missing",
        "  lstm.1.input: type torch.int32, expected a float of 16 or 32 bits",
        "  lstm.2.bias: unexpected",
    ]
    with pytest.raises(ValueError, match="lstm.1.bias: missing"):
        Weights.from_bytes(path.read_bytes())


@pytest.mark.parametrize(
    "missing, problem",
    [
        ("head.bias", "head.bias: missing"),
        ("vocabulary", r"head.weight: shape \[8, 5\], expected \[0, 5\]"),
    ],
)
def test_half_a_head(tmp_path, missing, problem):
    path = rewritten(tmp_path / "w.safetensors", lambda tensors: tensors.pop(missing))
    with pytest.raises(ValueError, match=problem):
        Weights.load(path)


@pytest.mark.parametrize(
    "text, problem",
    [
        (torch.zeros(3), "vocabulary: type torch.float32, expected torch.uint8"),
        (torch.tensor([0xFF], dtype=torch.uint8), "can't decode byte 0xff"),
    ],
)
@pytest.mark.parametrize("name", ["vocabulary", "alphabet"])
def test_damaged_names(tmp_path, name, text, problem):
    path = rewritten(tmp_path / "w.safetensors", lambda t: t.update({name: text}))
    with pytest.raises(ValueError, match=problem.replace("vocabulary", name)):
        Weights.load(path)


def test_vocabulary_of_another_length_than_the_table(tmp_path):
    weights = dataclasses.replace(make(words=8), vocabulary=tiny.VOCABULARY[:5])
    weights.save(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match="vocabulary: 5 words, expected 8"):
        Weights.load(tmp_path / "w.safetensors")


@pytest.mark.parametrize("mark", ["<bos>", "<eos>", "<oov>"])
def test_vocabulary_without_a_mark_of_word_input(tmp_path, mark):
    names = [name if name != mark else "else" for name in tiny.LEXICON]
    live = tiny.bilm(tiny.lexicon_config())
    Weights.from_bilm(live, vocabulary=names).save(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=rf"w\.safetensors: (?s:.*) word input has no {mark}"):
        Weights.load(tmp_path / "w.safetensors")


def test_vocabulary_keeps_odd_words():
    words = ["<S>", "</S>", "<UNK>", "", "\ud800", "\u2028", "\x85", "a\tb"]
    weights = dataclasses.replace(make(words=8), vocabulary=words)
    assert Weights.from_bytes(weights.to_bytes()).vocabulary == words


@settings(max_examples=20, deadline=None)
@given(text=st.text(st.characters(exclude_categories=())))
@example("\udcff")
def test_any_text_in_a_card(text):
    """A card may contain half of a surrogate pair, as in the name of a file that is not UTF-8."""
    weights = Weights.from_bilm(tiny.bilm(tiny.config()), card={text: [text]})
    assert Weights.from_bytes(weights.to_bytes()).card == {text: [text]}


LEXICA = [{}, {"n_symbols": 0}, {"n_words": 0, "word_dim": 0}]


@pytest.mark.parametrize("fields", LEXICA)
def test_words_and_alphabet_survive(tmp_path, fields):
    live = tiny.bilm(tiny.lexicon_config(**fields))
    names = tiny.LEXICON if live.config.n_words else []
    weights = Weights.from_bilm(live, vocabulary=names, card=CARD)
    weights.save(tmp_path / "w.safetensors")
    again = Weights.load(tmp_path / "w.safetensors")
    assert_same(weights, again)
    assert_same(weights, again.without_head())
    assert again.alphabet == (tiny.ALPHABET if live.config.n_symbols else "")
    sentences = [["Cat", "cat", "鳥", "🙂\u3000", "unheard"]]
    assert torch.equal(
        tiny.read(live, sentences).layers, tiny.read(again.build_bilm(), sentences).layers
    )


def test_an_alphabet_of_odd_characters():
    characters = "\n\0\ud83d\ude42\x85\u2028\U0010ffff"
    weights = Weights.from_bilm(tiny.bilm(tiny.lexicon_config(n_words=0, word_dim=0, n_symbols=13)))
    weights = dataclasses.replace(weights, alphabet=characters)
    assert Weights.from_bytes(weights.to_bytes()).alphabet == characters


def test_alphabet_of_another_length_than_the_table():
    weights = Weights.from_bilm(tiny.bilm(tiny.lexicon_config()), vocabulary=tiny.LEXICON)
    shorter = dataclasses.replace(weights, alphabet="abc").to_bytes()
    with pytest.raises(ValueError, match="alphabet: 3 characters, expected 12"):
        Weights.from_bytes(shorter)
    bytes_with_alphabet = dataclasses.replace(make(), alphabet="abc").to_bytes()
    with pytest.raises(ValueError, match="alphabet: 3 characters, expected 0"):
        Weights.from_bytes(bytes_with_alphabet)


def test_word_with_a_newline_is_refused(tmp_path):
    weights = dataclasses.replace(make(words=8), vocabulary=["a\nb"])
    with pytest.raises(ValueError, match=r"newline.*a\\nb"):
        weights.save(tmp_path / "w.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", [None, "spacy-elmo 99", "pt"])
def test_another_format(tmp_path, format):
    path = rewritten(tmp_path / "w.safetensors", format=format)
    with pytest.raises(ValueError) as error:
        Weights.load(path)
    assert f"{path}: the header has format {format!r}, expected {FORMAT!r}" in str(error.value)
    assert "spacy elmo convert" in str(error.value)


CONFIG = make().config.to_dict()


@pytest.mark.parametrize(
    "header, problem",
    [
        ({"config": None}, "damaged header.*config"),
        ({"config": "{"}, "damaged header"),
        ({"config": "7"}, "damaged header"),
        ({"config": json.dumps(CONFIG | {"dimm": 3})}, r"Unknown biLM fields \['dimm'\]"),
        ({"config": json.dumps(CONFIG | {"dim": 0})}, "dim = 0"),
        ({"config": json.dumps(CONFIG | {"dim": 8})}, r"shape \[2, 5, 28\], expected \[2, 5, 32\]"),
        ({"config": json.dumps(CONFIG | {"dim": 10**6})}, "do not match the header"),
        ({"config": json.dumps(CONFIG | {"layers": 999})}, "do not match the header"),
        ({"config": "[" * 100_000}, "damaged header"),
        ({"card": '{"a":' * 100_000}, "damaged header"),
        ({"card": "[1, 2]"}, "damaged header"),
        ({"card": None}, "damaged header.*card"),
    ],
)
def test_damaged_header(tmp_path, header, problem):
    path = rewritten(tmp_path / "w.safetensors", **header)
    with pytest.raises(ValueError, match=problem) as error:
        Weights.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "header",
    [
        {"w": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}},
        {"w": {"dtype": "F32", "shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}},
        {"w": {"dtype": "F8_E8M0", "shape": [0], "data_offsets": [0, 0]}},
        {"__metadata__": None},
    ],
)
def test_headers_that_only_safetensors_accepts(tmp_path, header):
    written = json.dumps(header).encode()
    data = len(written).to_bytes(8, "little") + written
    (tmp_path / "w.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match=r"w\.safetensors"):
        Weights.load(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match="weights"):
        Weights.from_bytes(data)


@pytest.mark.parametrize("card", ["{", "[1]", '{"a":' * 100_000, None])
def test_a_damaged_card_alone(tmp_path, card):
    path = rewritten(tmp_path / "w.safetensors", card=card)
    with pytest.raises(ValueError, match="not a readable weights file") as error:
        Weights.load_card(path)
    assert str(path) in str(error.value)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Weights.load(tmp_path / "nowhere.safetensors")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        Weights.load(tmp_path)

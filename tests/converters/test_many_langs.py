"""ELMoForManyLangs' numbers in our network are compared with an oracle, and damaged files are refused."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.many_langs import convert
from tests import pipelines, tiny
from tests.converters import foreign_many_langs as foreign
from tests.converters.foreign import changed


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def clip(x, limit):
    return np.clip(x, -limit, limit) if limit else x


class Oracle:
    """A model directly from its formulas: float64, one sentence, direction, step and word at a time. Source: `elmo.py`,
    `frontend.py` and `modules/` of ELMoForManyLangs 0.0.4.post2.

    `options` are those of its network; `tokens` and `lstm` are its two files; symbols are given by row.
    """

    def __init__(self, options, tokens, lstm, words, characters):
        self.encoder, self.embedder = options["encoder"], options["token_embedder"]
        self.tokens, self.lstm = (
            {name: np.asarray(t, dtype=np.float64) for name, t in state.items()}
            for state in (tokens, lstm)
        )
        self.words, self.characters = (
            {symbol: row for row, symbol in enumerate(symbols or [])}
            for symbols in (words, characters)
        )

    def character_rows(self, word):
        """Return the rows of a word between its marks (the first is called <eow>), and of the padding."""
        symbols = [word] if word in ("<bos>", "<eos>") else list(word)
        row = self.characters
        rows = [row["<eow>"], *(row.get(s, row["<oov>"]) for s in symbols), row["<bow>"]]
        return rows + [row["<pad>"]] * (self.embedder["max_characters_per_token"] - len(rows))

    def token(self, word):
        """Compute the context-free vector (P,)."""
        t, parts = self.tokens, []
        word = word[: self.embedder["max_characters_per_token"] - 2]
        if self.embedder["word_dim"]:
            row = self.words.get(word, self.words["<oov>"])
            parts.append(t["word_emb_layer.embedding.weight"][row])
        if self.embedder["char_dim"]:
            x = t["char_emb_layer.embedding.weight"][self.character_rows(word)]
            pooled = []
            for i, (width, _) in enumerate(self.embedder["filters"]):
                kernel, bias = t[f"convolutions.{i}.weight"], t[f"convolutions.{i}.bias"]
                windows = [x[start : start + width].T for start in range(len(x) - width + 1)]
                features = [np.sum(kernel * window, axis=(1, 2)) + bias for window in windows]
                best = np.max(features, axis=0)
                relu = self.embedder["activation"] == "relu"
                pooled.append(np.maximum(best, 0) if relu else np.tanh(best))
            x = np.concatenate(pooled)
            for i in range(self.embedder["n_highway"]):
                z = t[f"highways._layers.{i}.weight"] @ x + t[f"highways._layers.{i}.bias"]
                new, gate = np.split(z, 2)
                x = sigmoid(gate) * x + (1 - sigmoid(gate)) * np.maximum(new, 0)
            parts.append(x)
        return t["projection.weight"] @ np.concatenate(parts) + t["projection.bias"]

    def run(self, vectors, level, direction):
        """Compute one direction of one layer over the vectors, in their order."""
        t = {
            name.removeprefix(f"{direction}_layer_{level}."): tensor
            for name, tensor in self.lstm.items()
            if name.startswith(f"{direction}_layer_{level}.")
        }
        h, c = np.zeros(self.encoder["projection_dim"]), np.zeros(self.encoder["dim"])
        outputs = []
        for x in vectors:
            z = t["input_linearity.weight"] @ x + t["state_linearity.weight"] @ h
            i, f, g, o = np.split(z + t["state_linearity.bias"], 4)
            c = clip(sigmoid(i) * np.tanh(g) + sigmoid(f) * c, self.encoder["cell_clip"])
            h = t["state_projection.weight"] @ (sigmoid(o) * np.tanh(c))
            h = clip(h, self.encoder["proj_clip"])
            outputs.append(h)
        return outputs

    def layers(self, words):
        """Compute the layers (L+1, n, 2P) of one sentence, without its boundaries."""
        forward = [self.token(word) for word in ["<bos>", *words, "<eos>"]]
        backward = forward[::-1]
        both = [(forward, backward)]
        for level in range(self.encoder["n_layers"]):
            new = (self.run(forward, level, "forward"), self.run(backward, level, "backward"))
            if level:
                new = tuple(
                    [a + b for a, b in zip(y, x, strict=True)]
                    for y, x in zip(new, (forward, backward), strict=True)
                )
            forward, backward = new
            both.append(new)
        width = self.encoder["projection_dim"]
        return np.array(
            [
                [np.concatenate(pair) for pair in zip(f[1:-1], b[::-1][1:-1], strict=True)]
                for f, b in both
            ]
        ).reshape(len(both), len(words), 2 * width)


def assert_equals_oracle(weights, options, states, sentences, lexicons=None):
    oracle = Oracle(options, *states, *(lexicons or foreign.lexicons(options)))
    layers = tiny.read(weights.build_bilm(), sentences).layers
    got = layers.split([len(sentence) for sentence in sentences], 1)
    for sentence, ours in zip(sentences, got, strict=True):
        np.testing.assert_allclose(ours, oracle.layers(sentence), rtol=0, atol=1e-5)


ARCHITECTURES = {
    "as published": {},
    "tanh": {"activation": "tanh", "n_highway": 2},
    "no highway": {"n_highway": 0},
    "no clips": {"cell_clip": None, "proj_clip": 0},
    "one layer": {"n_layers": 1},
    "three layers": {"n_layers": 3},
    "square projections": {"dim": 5, "filters": [[3, 5]]},
    "square lstm": {"dim": 5},
    "as wide as the row": {"filters": [[10, 2], [1, 1], [10, 1]]},
    "words alone": {"char_dim": 0},
    "characters alone": {"word_dim": 0},
    "characters as wide as the projection": {"word_dim": 0, "filters": [[3, 5]]},
    "fifty positions": {"max_characters_per_token": 50},
    "seven positions": {"max_characters_per_token": 7},
    "capital letters": {"name": "CNN"},
}


@pytest.mark.parametrize("fields", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_layers_of_every_architecture(tmp_path, fields):
    options = foreign.options()
    options["token_embedder"]["name"] = fields.get("name", "cnn")
    for name, value in fields.items():
        if name != "name":
            section = next(s for s in ("encoder", "token_embedder") if name in options[s])
            options[section][name] = value
    states = foreign.state_dicts(options)
    weights, _ = convert(foreign.write(tmp_path, options, *states))
    assert_equals_oracle(weights, options, states, foreign.SENTENCES)
    again = Weights.from_bytes(weights.to_bytes())
    assert (again.config, again.vocabulary, again.alphabet, again.card) == (
        weights.config, weights.vocabulary, weights.alphabet, weights.card
    )  # fmt: skip
    assert_equals_oracle(again, options, states, foreign.SENTENCES)


OPTIONS = foreign.options()
STATES = foreign.state_dicts(OPTIONS)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(st.text("catsCxïΩ鳥🙂<>\u3000\ud800\x85 ", max_size=12), max_size=4), max_size=3
    )
)
def test_any_words(tmp_path_factory, sentences):
    folder = tmp_path_factory.getbasetemp() / "any-words"
    if not folder.exists():
        folder.mkdir()
        foreign.write(folder, OPTIONS, *STATES)
    assert_equals_oracle(convert(folder)[0], OPTIONS, STATES, sentences)


def test_files_of_old_pytorch(tmp_path):
    """Every published model has the format of PyTorch before 1.6, which is no zip file. A model card and the softmax
    of the training are not read."""
    foreign.write(tmp_path, OPTIONS, *STATES, old=True)
    (tmp_path / "classifier.pkl").write_bytes(b"anything")
    weights, notes = convert(tmp_path)
    assert_equals_oracle(weights, OPTIONS, STATES, foreign.SENTENCES)
    assert notes == [f"read {tmp_path}, with the network of network.json"]
    converted_from = "encoder.pkl and token_embedder.pkl (ELMoForManyLangs)"
    assert weights.card == {"converted_from": converted_from}
    with pytest.raises(NotADirectoryError, match="is not the folder of"):
        convert(tmp_path / "encoder.pkl")


def name_network(folder, path):
    (folder / "config.json").write_text(json.dumps({"config_path": path}), "utf8")


@pytest.mark.parametrize(
    "path", ["configs/network.json", "/users4/x/network.json", r"C:\configs\network.json", "../network.json"]
)  # fmt: skip
def test_the_network_is_found_by_its_name(tmp_path, path):
    """Its program would follow the path out of the folder."""
    folder = tmp_path / "model"
    folder.mkdir()
    foreign.write(folder, OPTIONS, *STATES)
    (tmp_path / "network.json").write_text("{}")
    name_network(folder, path)
    convert(folder)
    (folder / "network.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"contains no 'network.json'.*cnn_50_100_512"):
        convert(folder)


def test_the_network_that_the_program_ships(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    name_network(tmp_path, "/users/somebody/configs/cnn_50_100_512_4096_sample.json")
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    assert "cnn_50_100_512_4096_sample.json, as shipped with ELMoForManyLangs" in str(error.value)
    # The sizes of the published models.
    for expected in ("[16384, 512]", "[512, 4096]", "[512, 2148]", "[32, 50, 1]", "[4096, 2048]"):
        assert f"expected {expected}" in str(error.value)


def test_unknown_options_are_noted(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "network.json").write_text(json.dumps(changed(OPTIONS, encoder__peepholes=True)))
    assert convert(tmp_path)[1][1:] == ["ignored unknown options: encoder.peepholes"]


def layers(folder):
    return tiny.read(convert(folder)[0].build_bilm(), foreign.SENTENCES).layers


def test_dictionaries(tmp_path):
    """Lines come in any order. A line without a symbol is U+3000, because ELMoForManyLangs strips lines."""
    expected = layers(foreign.write(tmp_path, OPTIONS, *STATES))
    for name in ("word.dic", "char.dic"):
        lines = (tmp_path / name).read_text("utf8").replace("\u3000\t", "\t").splitlines()
        (tmp_path / name).write_bytes("\r\n".join(reversed(lines)).encode())
    assert torch.equal(layers(tmp_path), expected)
    lines = (tmp_path / "char.dic").read_text("utf8").replace("\n\t", "\n")
    (tmp_path / "char.dic").write_text(lines, "utf8")
    assert torch.equal(layers(tmp_path), expected)


def test_symbols_that_no_word_spells(tmp_path):
    expected = layers(foreign.write(tmp_path, OPTIONS, *STATES))
    tokens, lstm = foreign.state_dicts(OPTIONS)
    name = "char_emb_layer.embedding.weight"
    tokens[name] = torch.cat([tokens[name], torch.ones(2, 4)])
    foreign.write(tmp_path, OPTIONS, tokens, lstm)
    with (tmp_path / "char.dic").open("a", encoding="utf8") as file:
        file.write(f"ab\t{len(tokens[name]) - 2}\n<num>\t{len(tokens[name]) - 1}\n")
    assert "char.dic: left out 2 symbols of several characters" in convert(tmp_path)[1][-1]
    assert torch.equal(layers(tmp_path), expected)


def network(**changes):
    content = json.dumps(changed(OPTIONS, **changes))
    return lambda folder: (folder / "network.json").write_text(content, "utf8")


def written(name, content):
    return lambda folder: (folder / name).write_text(content, "utf8")


def line(text, name="char.dic"):
    def add(folder):
        with (folder / name).open("a", encoding="utf8") as file:
            file.write(text + "\n")

    return add


def without(name, symbol):
    return lambda folder: (folder / name).write_text(
        (folder / name).read_text("utf8").replace(symbol, "xyz")
    )


def tensors(part, **changes):
    def change(folder):
        state = torch.load(folder / f"{part}.pkl", weights_only=True)
        for name, tensor in changes.items():
            state[name.replace("__", ".")] = tensor
        torch.save({n: t for n, t in state.items() if t is not None}, folder / f"{part}.pkl")

    return change


DAMAGE = [
    (network(encoder__name="lstm"), "encoder.name = 'lstm' (must be 'elmo')"),
    (network(token_embedder__name="lstm"), "token_embedder.name = 'lstm' (must be 'cnn')"),
    (network(encoder__name=..., encoder__dim=...), "encoder.name is missing; encoder.dim is missing"),
    (network(encoder__n_layers=1.5), "layers = 1.5"),
    (network(encoder__n_layers=999), "encoder.backward_layer_10.input_linearity.weight: missing"),
    (network(encoder__cell_clip=-1), "cell_clip = -1"),
    (network(token_embedder__activation="gelu"), "activation = 'gelu'"),
    (network(token_embedder__filters=7), "filters = 7"),
    (network(token_embedder__filters=[[11, 3]]), "11, 3"),
    (network(token_embedder__char_dim=0, token_embedder__word_dim=0), "are both 0"),
    (network(token_embedder__word_dim="3"), "word_dim = '3'"),
    (network(encoder=[]), "must have the sections encoder and token_embedder"),
    (written("config.json", "{}"), 'config.json has no "config_path"'),
    (written("config.json", "[" * 100_000), "config.json is not valid JSON"),
    (line(""), "char.dic is not a dictionary of ELMoForManyLangs, or is damaged ('': expected a symbol"),
    (line("a b"), "char.dic"),
    (line("é\t22\t1"), "char.dic"),
    (line("é\t-1"), "char.dic"),
    (line("é\t²"), "char.dic"),
    (line("é\t" + "9" * 10_000), "char.dic"),
    (line("é\t22"), "the rows are not 0 to 21"),
    (line("é\t3"), "a new row number"),
    (line("c\t21"), "symbols occur twice"),
    (without("char.dic", "<eow>"), "<eow>"),
    (without("word.dic", "<oov>"), "word.dic"),
    (tensors("token_embedder", projection__bias=None), "token_embedder.projection.bias: missing"),
    (tensors("encoder", x=torch.zeros(2)), "encoder.x: unexpected"),
    (tensors("encoder", forward_layer_0__state_linearity__bias=torch.zeros(27)), "shape [27], expected [28]"),
    (lambda folder: (folder / "encoder.pkl").write_bytes(b"x" * 99), "encoder.pkl is not a file of torch.save"),
]  # fmt: skip


@pytest.mark.parametrize("damage, fragment", DAMAGE)
def test_damage(tmp_path, damage, fragment):
    damage(foreign.write(tmp_path, OPTIONS, *STATES))
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    assert fragment in str(error.value) and str(tmp_path) in str(error.value)


# In a pipeline

WORDS = ["Cat", "sat", "鳥鳥", "x" * 60, "naïve", "🙂", "cat"]


def test_component(tmp_path):
    """It gives what the network gives, also after it is saved, and a consumer's gradient reaches every table."""
    weights, _ = convert(foreign.write(tmp_path, OPTIONS, *STATES))
    path = tmp_path / "many.safetensors"
    weights.save(path)
    expected = tiny.read(weights.build_bilm(), [WORDS]).layers.numpy()
    nlp = pipelines.blank(path, frozen=False)
    np.testing.assert_allclose(nlp(Doc(nlp.vocab, words=WORDS))._.elmo_layers, expected, atol=1e-5)
    model = nlp.get_pipe("elmo").model
    output, backprop = model([Doc(nlp.vocab, words=WORDS)], is_train=True)
    backprop([np.ones_like(layer) for layer in output])
    assert all(p.grad is not None and p.grad.any() for p in model.shims[0].bilm.parameters())
    nlp.to_disk(tmp_path / "nlp")
    path.unlink()
    again = pipelines.spacy.load(tmp_path / "nlp")
    layers = again(Doc(again.vocab, words=WORDS))._.elmo_layers
    np.testing.assert_allclose(layers, expected, atol=1e-5)

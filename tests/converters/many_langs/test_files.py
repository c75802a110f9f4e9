"""Folders of ELMoForManyLangs: the paths of the files, and the content of configuration and dictionaries."""

import json
import shutil

import pytest
import torch

from spacy_elmo.converters.many_langs.conversion import convert
from spacy_elmo.converters.many_langs.files import recognize
from tests import tiny
from tests.converters import foreign_many_langs as foreign
from tests.converters.foreign import changed

OPTIONS = foreign.options()
STATES = foreign.state_dicts(OPTIONS)


def test_one_folder_inside(tmp_path):
    (tmp_path / "ja.model").mkdir()
    (tmp_path / "__MACOSX").mkdir()
    foreign.write(tmp_path / "ja.model", OPTIONS, *STATES)
    assert recognize(tmp_path) == "encoder.pkl and token_embedder.pkl"
    conversion = convert(tmp_path)
    assert conversion.files[0] == tmp_path / "ja.model" / "config.json"


def test_two_models(tmp_path):
    for name in ("ja", "no"):
        (tmp_path / name).mkdir()
        foreign.write(tmp_path / name, OPTIONS, *STATES)
    assert recognize(tmp_path) is None
    with pytest.raises(ValueError, match="exactly one ELMoForManyLangs model"):
        convert(tmp_path)


def test_recognize(tmp_path):
    assert recognize(tmp_path / "nowhere") is None
    assert recognize(tmp_path) is None
    (tmp_path / "encoder.pkl").touch()
    assert recognize(tmp_path) == "encoder.pkl"
    assert recognize(tmp_path / "encoder.pkl") is None


def test_no_model(tmp_path):
    with pytest.raises(ValueError, match="encoder.pkl and token_embedder.pkl"):
        convert(tmp_path)
    with pytest.raises(NotADirectoryError, match="nowhere is not a folder"):
        convert(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["config.json", "word.dic", "char.dic", "token_embedder.pkl", "encoder.pkl"]
)
def test_missing_file(tmp_path, name):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError) as error:
        convert(tmp_path)
    assert str(tmp_path / name) in str(error.value)


def name_network(folder, path):
    (folder / "config.json").write_text(json.dumps({"config_path": path}), "utf8")


@pytest.mark.parametrize(
    "path",
    [
        "configs/network.json",
        "/users4/somebody/configs/network.json",
        r"C:\configs\network.json",
        "../network.json",
    ],
)
def test_the_network_is_found_by_its_name(tmp_path, path):
    folder = tmp_path / "model"
    folder.mkdir()
    foreign.write(folder, OPTIONS, *STATES)
    # Its program would follow the path out of the folder.
    (tmp_path / "network.json").write_text("{}")
    name_network(folder, path)
    assert convert(folder).files[1] == folder / "network.json"


def test_a_path_inside_the_folder_comes_first(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "configs").mkdir()
    shutil.move(tmp_path / "network.json", tmp_path / "configs" / "network.json")
    (tmp_path / "network.json").write_text("{}")
    name_network(tmp_path, "configs/network.json")
    assert convert(tmp_path).files[1] == tmp_path / "configs" / "network.json"


def test_an_absolute_path_is_not_followed(tmp_path):
    folder, outside = tmp_path / "model", tmp_path / "elsewhere.json"
    folder.mkdir()
    foreign.write(folder, OPTIONS, *STATES)
    shutil.move(folder / "network.json", outside)
    name_network(folder, str(outside))
    with pytest.raises(FileNotFoundError, match=r"'elsewhere.json'.*cnn_50_100_512"):
        convert(folder)


def test_the_network_that_the_program_ships(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    name_network(tmp_path, "/users/somebody/configs/cnn_50_100_512_4096_sample.json")
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    assert "do not fit cnn_50_100_512_4096_sample.json, as shipped with ELMoForManyLangs" in str(
        error.value
    )
    # The sizes of the published models.
    for expected in ("[16384, 512]", "[512, 4096]", "[512, 2148]", "[32, 50, 1]", "[4096, 2048]"):
        assert f"expected {expected}" in str(error.value)


@pytest.mark.parametrize("config", ["{", "[]", "{}", '{"config_path": 3}', "[" * 100_000])
def test_damaged_config(tmp_path, config):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(
        ValueError,
        match="config.json( has no .config_path| must contain a JSON object| is not valid JSON)",
    ):
        convert(tmp_path)


# The network.


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"encoder__name": "lstm"}, "encoder.name = 'lstm' .must be 'elmo'"),
        ({"token_embedder__name": "lstm"}, "token_embedder.name = 'lstm' .must be 'cnn'"),
        ({"encoder__name": ..., "encoder__dim": ...}, "encoder.name is missing; encoder.dim is missing"),
        ({"encoder__n_layers": 1.5}, "encoder.n_layers = 1.5"),
        ({"encoder__n_layers": 999}, "999 LSTM layers and 1 highway layers, but the weights contain only 28 arrays"),
        ({"encoder__cell_clip": -1}, "encoder.cell_clip = -1"),
        ({"token_embedder__activation": "gelu"}, "activation = 'gelu'"),
        ({"token_embedder__filters": 7}, "filters = 7"),
        ({"token_embedder__filters": [[11, 3]]}, "11, 3"),
        ({"token_embedder__char_dim": 0, "token_embedder__word_dim": 0}, "are both 0"),
        ({"token_embedder__word_dim": "3"}, "token_embedder.word_dim = '3'"),
        ({"encoder": []}, "must have the sections encoder and token_embedder"),
    ],
)  # fmt: skip
def test_impossible_network(tmp_path, fields, problem):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "network.json").write_text(json.dumps(changed(OPTIONS, **fields)))
    with pytest.raises(ValueError, match=problem) as error:
        convert(tmp_path)
    assert str(tmp_path) in str(error.value) and "network.json" in str(error.value)


def test_unknown_options_are_noted(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "network.json").write_text(json.dumps(changed(OPTIONS, encoder__peepholes=True)))
    assert convert(tmp_path).notes[1:] == ["ignored unknown options: encoder.peepholes"]


# The dictionaries.


def test_a_line_without_a_symbol_is_a_wide_space(tmp_path):
    """U+3000 is a space, and ELMoForManyLangs strips a line before it splits it at the tab."""
    foreign.write(tmp_path, OPTIONS, *STATES)
    path = tmp_path / "char.dic"
    text = path.read_text("utf8")
    assert "\u3000\t" in text
    conversion = convert(tmp_path)
    path.write_text(text.replace("\u3000\t", "\t"), "utf8")
    assert convert(tmp_path).weights.alphabet == conversion.weights.alphabet
    path.write_text(text.replace("\u3000\t", ""), "utf8")
    assert convert(tmp_path).weights.alphabet == conversion.weights.alphabet


def layers(folder):
    return tiny.read(convert(folder).weights.build_bilm(), foreign.SENTENCES).layers


def test_lines_in_any_order(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    expected = layers(tmp_path)
    for name in ("word.dic", "char.dic"):
        lines = (tmp_path / name).read_text("utf8").splitlines()
        (tmp_path / name).write_bytes("\r\n".join(reversed(lines)).encode())
    assert torch.equal(layers(tmp_path), expected)


def test_symbols_that_no_word_spells(tmp_path):
    expected = layers(foreign.write(tmp_path, OPTIONS, *STATES))
    tokens, lstm = foreign.state_dicts(OPTIONS)
    name = "char_emb_layer.embedding.weight"
    tokens[name] = torch.cat([tokens[name], torch.ones(2, 4)])
    foreign.write(tmp_path, OPTIONS, tokens, lstm)
    with (tmp_path / "char.dic").open("a", encoding="utf8") as file:
        file.write(f"ab\t{len(tokens[name]) - 2}\n<num>\t{len(tokens[name]) - 1}\n")
    conversion = convert(tmp_path)
    assert "char.dic: left out 2 symbols of several characters" in conversion.notes[-1]
    assert torch.equal(layers(tmp_path), expected)


@pytest.mark.parametrize(
    "line, problem",
    [
        ("", "line 22, '': expected a symbol, a tab and a row"),
        ("a b", "expected a symbol, a tab and a row"),
        ("é\t22\t1", "expected a symbol, a tab and a row"),
        ("é\t-1", "expected a symbol, a tab and a row"),
        ("é\t²", "expected a symbol, a tab and a row"),
        ("é\t" + "9" * 10_000, "expected a symbol, a tab and a row"),
        ("é\t22", "line 22, .*: row 22, but there are only 22"),
        ("é\t3", "the row or the symbol occurs twice"),
        ("c\t21", "the row or the symbol occurs twice"),
    ],
)
def test_bad_line(tmp_path, line, problem):
    foreign.write(tmp_path, OPTIONS, *STATES)
    with (tmp_path / "char.dic").open("a", encoding="utf8") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=problem) as error:
        convert(tmp_path)
    assert str(tmp_path / "char.dic") in str(error.value)


def test_many_bad_lines(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "word.dic").write_text("no row\n" * 500)
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    assert str(error.value).splitlines()[-1] == "  and 490 more"


def test_no_text(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    (tmp_path / "char.dic").write_bytes(b"\xff\xfe\t1\n")
    with pytest.raises(ValueError, match="char.dic is not a UTF-8 text file"):
        convert(tmp_path)


def test_missing_marks(tmp_path):
    foreign.write(tmp_path, OPTIONS, *STATES)
    foreign.write_lexicon(tmp_path / "word.dic", foreign.WORDS[1:])
    foreign.write_lexicon(tmp_path / "char.dic", ["a", "<pad>", "<bow>"])
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    first, second = str(error.value).splitlines()
    assert first.endswith("word.dic lacks the special symbols <oov>")
    assert second.endswith("char.dic lacks the special symbols <bos>, <eos>, <oov>, <eow>")

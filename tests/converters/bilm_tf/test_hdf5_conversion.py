"""Conversion of bilm-tf's files, with generated files in every variant of the format, and every error."""

import builtins
import itertools
import json
import zlib

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.bilm_tf.hdf5_conversion import convert
from spacy_elmo.converters.formats import detect
from tests import tiny
from tests.converters import foreign
from tests.converters.foreign import assert_same_tensors, changed

CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/"


def character_model(*, seed=0, **fields):
    return tiny.bilm(tiny.config(**fields), seed)


@pytest.mark.parametrize(
    "highways, filters, dim, layers",
    itertools.product([0, 2], [((3, 5),), ((1, 2), (4, 4))], [5, 7], [1, 3]),
)
def test_every_shape_of_a_model(tmp_path, highways, filters, dim, layers):
    """Models without highways, without CNN_proj (filters = projection), without W_P_0 (dim = projection), and so on."""
    # What changes no array, in both of its values.
    clips, skip = (None if dim == 5 else 2.0), highways == 0
    model = character_model(
        highways=highways, filters=filters, dim=dim, layers=layers,
        cell_clip=clips, proj_clip=clips, skip=skip, activation="tanh",
    )  # fmt: skip
    weights = convert(foreign.write_model(tmp_path, model)).weights
    assert weights.config == model.config
    assert weights.config.forget_bias == 1.0
    assert_same_tensors(weights, model)
    # And through our own strict check.
    assert_same_tensors(Weights.from_bytes(weights.to_bytes()), model)


def test_word_input(tmp_path):
    model = tiny.bilm(tiny.config(n_words=8))
    conversion = convert(foreign.write_model(tmp_path, model, tiny.VOCABULARY))
    assert conversion.weights.vocabulary == tiny.VOCABULARY
    assert_same_tensors(conversion.weights, model)
    sentences = [["a", "cat", "unheard"]]
    expected = tiny.read(model, sentences).layers
    assert torch.equal(tiny.read(conversion.weights.build_bilm(), sentences).layers, expected)


def test_vocabulary_as_bilm_tf_reads_it(tmp_path):
    """Lines are stripped, and the line that only some files have is skipped."""
    model = tiny.bilm(tiny.config(n_words=8))
    foreign.write_model(tmp_path, model)
    lines = ["<S>", "</S>", "<UNK>", "!!!MAXTERMID", " a ", "cat\r", "", "naïve", "鳥"]
    (tmp_path / "words.txt").write_bytes("\n".join(lines).encode())
    words = convert(tmp_path, vocabulary=tmp_path / "words.txt").weights.vocabulary
    assert words == ["<S>", "</S>", "<UNK>", "a", "cat", "", "naïve", "鳥"]


def test_number_of_words_without_options(tmp_path):
    model = tiny.bilm(tiny.config(n_words=8))
    options = foreign.options_of(model.config)
    del options["n_tokens_vocab"]
    foreign.write(tmp_path, options, foreign.arrays_of(model), tiny.VOCABULARY)
    assert convert(tmp_path).weights.config.n_words == 8


def test_one_layer_without_its_level(tmp_path):
    model = character_model(layers=1)
    arrays = {
        name.replace("/MultiRNNCell/Cell0", ""): array
        for name, array in foreign.arrays_of(model).items()
    }
    foreign.write(tmp_path, foreign.options_of(model.config), arrays)
    conversion = convert(tmp_path)
    assert_same_tensors(conversion.weights, model)
    assert any("one layer" in note for note in conversion.notes)


OPTIONS = foreign.options_of(tiny.config())


@pytest.mark.parametrize(
    "changes, fields, note",
    [
        ({}, {}, "262 is the value for inference"),
        ({"char_cnn__n_characters": 261}, {}, None),
        ({"char_cnn__n_characters": ...}, {}, "char_cnn.n_characters is missing: assumed 261"),
        ({"char_cnn__n_highway": None}, {"highways": 0}, None),
        ({"char_cnn__n_highway": 0}, {"highways": 0}, None),
        ({"char_cnn__n_highway": ...}, {"highways": 0}, "char_cnn.n_highway is missing: assumed 0"),
        ({"char_cnn__projection_after_highway": True, "char_cnn__reverse": False}, {}, None),
        ({"lstm__cell_clip": None, "lstm__proj_clip": None}, {"cell_clip": None, "proj_clip": None}, None),
        ({"lstm__cell_clip": 0, "lstm__proj_clip": 3}, {"cell_clip": None, "proj_clip": 3.0}, None),
        ({"lstm__cell_clip": False}, {"cell_clip": None}, None),
        ({"lstm__cell_clip": ...}, {"cell_clip": None}, "lstm.cell_clip is missing"),
        ({"lstm__use_skip_connections": ...}, {"skip": False}, "lstm.use_skip_connections is missing"),
        ({"lstm__use_skip_connections": None}, {"skip": False}, None),
        ({"bidirectional": True}, {}, None),
        ({"dropout": 0.1, "n_tokens_vocab": 793471, "sample_softmax": True}, {}, None),
        ({"lstm__n_layers": ...}, {"layers": 1}, "lstm.n_layers is missing: assumed 1"),
        ({"lstm__n_layer": 3}, {}, "ignored unknown options: lstm.n_layer"),
        ({"hello": {"world": 1}}, {}, "ignored unknown options: hello, hello.world"),
    ],
)  # fmt: skip
def test_options(tmp_path, changes, fields, note):
    model = character_model(**fields)
    foreign.write(tmp_path, changed(OPTIONS, **changes), foreign.arrays_of(model))
    conversion = convert(tmp_path)
    assert conversion.weights.config == model.config
    text = "\n".join(conversion.notes)
    if note:
        assert note in text
    else:
        assert text in (
            "",
            "char_cnn.n_characters = 262 is the value for inference; the 261 rows of the file are correct",
        )


@pytest.mark.parametrize(
    "changes, problems",
    [
        ({"lstm__dim": ..., "lstm__projection_dim": None}, ["lstm.dim is missing", "lstm.projection_dim is missing"]),
        ({"lstm__dim": "7", "lstm__n_layers": 1.5}, ["lstm.dim = '7' (must be a whole number)", "lstm.n_layers = 1.5"]),
        ({"lstm__dim": 0}, ["dim = 0"]),
        ({"lstm__cell_clip": -3, "lstm__proj_clip": "3"}, ["lstm.cell_clip = -3", "lstm.proj_clip = '3'"]),
        ({"char_cnn__activation": ...}, ["char_cnn.activation is missing"]),
        ({"char_cnn__activation": "gelu"}, ["activation = 'gelu' (must be one of relu, tanh)"]),
        ({"char_cnn__embedding": ...}, ["char_cnn.embedding.dim is missing"]),
        ({"char_cnn__embedding": 3}, ["char_cnn.embedding.dim is missing"]),
        ({"char_cnn__filters": ...}, ["char_cnn.filters is missing"]),
        ({"char_cnn__filters": [[1, 2, 3]]}, ["char_cnn.filters = [[1, 2, 3]] (must be a list of [width, number])"]),
        ({"char_cnn__filters": 3}, ["char_cnn.filters = 3"]),
        ({"char_cnn__filters": []}, ["filters"]),
        ({"char_cnn__n_characters": 300}, ["char_cnn.n_characters = 300 (must be 261, or 262 for inference)"]),
        ({"char_cnn__max_characters_per_token": 2}, ["max_characters = 2"]),
        ({"bidirectional": False}, ["bidirectional = false (must be true"]),
        ({"char_cnn": ...}, ["char_cnn and n_tokens_vocab"]),
    ],
)  # fmt: skip
def test_impossible_options_are_all_named(tmp_path, changes, problems):
    foreign.write(
        tmp_path, changed(OPTIONS, **changes), foreign.arrays_of(character_model()), ["<S>"]
    )
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    for problem in [str(tmp_path / "options.json"), *problems]:
        assert problem in str(error.value)


def test_every_mismatch_is_named(tmp_path):
    arrays = foreign.arrays_of(character_model())
    del arrays[CELL.format(0, 1) + "B"]
    arrays[CELL.format(0, 2) + "B"] = np.zeros(28, np.float32)
    arrays[CELL.format(1, 0) + "W_0"] = np.zeros((9, 28), np.float32)
    arrays["char_embed"] = np.zeros((262, 3), np.float32)
    arrays["CNN/b_cnn_0"] = np.zeros(2)
    arrays["CNN/b_cnn_1"] = np.zeros(3, np.int32)
    arrays["CNN_proj/b_proj"] = np.full(5, np.nan, np.float32)
    foreign.write(tmp_path, OPTIONS, arrays)
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    first, *problems = str(error.value).split("\n")
    assert first == f"{tmp_path / 'lm_weights.hdf5'} does not fit {tmp_path / 'options.json'}:"
    assert problems == [
        "  CNN/b_cnn_0: type float64, expected float32 (or float16)",
        "  CNN/b_cnn_1: type int32, expected float32 (or float16)",
        "  CNN_proj/b_proj: contains values that are not finite",
        "  RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B: missing",
        "  RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/B: unexpected",
        "  RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0: shape [9, 28], expected [10, 28]",
        "  char_embed: shape [262, 3], expected [261, 3]",
    ]


def test_float16(tmp_path):
    model = character_model()
    weights = convert(foreign.write_model(tmp_path, model), dtype=torch.float16).weights
    for name, tensor in model.state_dict().items():
        assert torch.equal(weights.tensors[name], tensor.half())


def test_value_beyond_float16(tmp_path):
    arrays = foreign.arrays_of(character_model())
    arrays["CNN/b_cnn_0"][0] = -1e6
    foreign.write(tmp_path, OPTIONS, arrays)
    assert convert(tmp_path).weights.tensors["encoder.filter_biases.0"][0] == -1e6
    with pytest.raises(ValueError, match="CNN/b_cnn_0: .* 65504"):
        convert(tmp_path, dtype=torch.float16)


def test_files_are_found_by_content(tmp_path):
    """The folder also contains outputs, sentences and a softmax, like published folders."""
    foreign.write_model(tmp_path, character_model(), vocabulary=["good", "Why"])
    with h5py.File(tmp_path / "lm_embeddings_0.hdf5", "w") as file:
        file["0"] = np.zeros((2, 3, 5))
    (tmp_path / "sentences.json").write_text('[["lstm"]]', "utf8")
    (tmp_path / "broken.json").write_text("{", "utf8")
    (tmp_path / "broken.h5").write_bytes(b"nothing")
    conversion = convert(tmp_path)
    assert conversion.files == [tmp_path / "options.json", tmp_path / "lm_weights.hdf5"]
    assert conversion.weights.vocabulary == []
    assert conversion.weights.card == {
        "converted_from": "lm_weights.hdf5 and options.json (bilm-tf)"
    }


def test_several_candidates_are_listed(tmp_path):
    foreign.write_model(tmp_path, character_model())
    (tmp_path / "second.h5").write_bytes((tmp_path / "lm_weights.hdf5").read_bytes())
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    for part in (
        "expected one .hdf5 or .h5 file that contains RNN_0, but found 2. Choose the file with weights (`--weights`)",
        "lm_weights.hdf5: RNN_0 found",
        "second.h5: RNN_0 found",
    ):
        assert part in str(error.value)
    convert(tmp_path, weights=tmp_path / "second.h5")
    (tmp_path / "more.json").write_text(json.dumps(OPTIONS), "utf8")
    with pytest.raises(
        ValueError, match='one .json file that contains "lstm", but found 2.*--options'
    ):
        convert(tmp_path, weights=tmp_path / "second.h5")
    convert(tmp_path, weights=tmp_path / "second.h5", options=tmp_path / "more.json")


def test_no_candidate_is_listed_with_its_reason(tmp_path):
    with pytest.raises(ValueError, match="no .hdf5 or .h5 file"):
        convert(tmp_path)
    foreign.write_model(tmp_path, character_model())
    content = (tmp_path / "lm_weights.hdf5").read_bytes()
    (tmp_path / "lm_weights.hdf5").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="lm_weights.hdf5: .*not a readable HDF5 file"):
        convert(tmp_path)


def test_explicit_files_need_no_folder(tmp_path):
    foreign.write_model(tmp_path, character_model())
    nowhere = tmp_path / "nowhere"
    files = {"options": tmp_path / "options.json", "weights": tmp_path / "lm_weights.hdf5"}
    convert(nowhere, **files)
    with pytest.raises(NotADirectoryError, match="nowhere is not a folder"):
        convert(nowhere, options=files["options"])


def test_weights_file_with_its_options_beside(tmp_path):
    """The folder has several weights files. The argument chooses one, and its options are read."""
    foreign.write_model(tmp_path, character_model())
    other = character_model(seed=1)
    foreign.write(tmp_path / "other", OPTIONS, foreign.arrays_of(other))
    (tmp_path / "other" / "lm_weights.hdf5").rename(tmp_path / "other.hdf5")
    conversion = convert(tmp_path / "other.hdf5")
    assert_same_tensors(conversion.weights, other)
    assert conversion.files == [tmp_path / "options.json", tmp_path / "other.hdf5"]


@pytest.mark.parametrize("kind", ["options", "weights", "vocabulary"])
def test_explicit_file_that_is_missing(tmp_path, kind):
    foreign.write_model(tmp_path, character_model())
    with pytest.raises(FileNotFoundError, match="nowhere"):
        convert(tmp_path, **{kind: tmp_path / "nowhere"})


@pytest.mark.parametrize(
    "content, problem",
    [
        ("{", "not valid JSON"),
        ("[]", "must contain a JSON object"),
        ('{"lstm": 3}', 'no section "lstm"'),
        ("\xff", "not valid JSON"),
    ],
)
def test_explicit_options_that_are_none(tmp_path, content, problem):
    foreign.write_model(tmp_path, character_model())
    path = tmp_path / "other.json"
    path.write_text(content, "latin1")
    with pytest.raises(ValueError, match=problem) as error:
        convert(tmp_path, options=path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "words, problem",
    [
        (tiny.VOCABULARY[:7], "has 7 words, but the word table `embedding` has 8 rows"),
        (["<S>", *"abcdefg"], "does not contain </S>, <UNK>"),
    ],
)
def test_vocabulary_that_does_not_fit(tmp_path, words, problem):
    foreign.write_model(tmp_path, tiny.bilm(tiny.config(n_words=8)), words)
    with pytest.raises(ValueError) as error:
        convert(tmp_path)
    assert f"{tmp_path / 'vocab.txt'} {problem}" in str(error.value)


def test_word_input_without_a_vocabulary(tmp_path):
    foreign.write_model(tmp_path, tiny.bilm(tiny.config(n_words=8)))
    with pytest.raises(ValueError, match=".txt file .* <S>, .*`--vocabulary`"):
        convert(tmp_path)


def test_vocabulary_of_another_encoding(tmp_path):
    foreign.write_model(tmp_path, tiny.bilm(tiny.config(n_words=8)))
    path = tmp_path / "latin.txt"
    path.write_bytes("naïve".encode("latin1"))
    with pytest.raises(ValueError, match="latin.txt is not a UTF-8 text file"):
        convert(tmp_path, vocabulary=path)


def test_vocabulary_for_character_input(tmp_path):
    foreign.write_model(tmp_path, character_model(), tiny.VOCABULARY)
    with pytest.raises(ValueError, match="vocab.txt cannot be used: .*character input"):
        convert(tmp_path, vocabulary=tmp_path / "vocab.txt")


def test_model_of_one_direction(tmp_path):
    """The names of such a model contain no direction."""
    arrays = {
        name.replace("RNN_0/", ""): array
        for name, array in foreign.arrays_of(character_model()).items()
        if not name.startswith("RNN_1")
    }
    foreign.write(tmp_path, OPTIONS, arrays)
    with pytest.raises(ValueError, match="RNN_0 not found"):
        convert(tmp_path)
    with pytest.raises(ValueError, match="no RNN_1"):
        convert(tmp_path, weights=tmp_path / "lm_weights.hdf5")


def test_without_h5py(tmp_path, monkeypatch):
    foreign.write_model(tmp_path, character_model())
    plain = builtins.__import__

    def no_h5py(name, *args, **kwargs):
        if name == "h5py":
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_h5py)
    for weights in (tmp_path / "lm_weights.hdf5", None):
        with pytest.raises(ValueError, match=r'^HDF5 files .*pip install "spacy-elmo\[h5\]"'):
            convert(tmp_path, weights=weights)
    for source in (tmp_path, tmp_path / "lm_weights.hdf5"):
        with pytest.raises(ValueError, match="^HDF5 files need h5py"):
            detect(source)


def softmax_of(rows, projection=5):
    rng = np.random.default_rng(1)
    return {
        "softmax/W": rng.normal(size=(rows, projection)).astype(np.float32),
        "softmax/b": rng.normal(size=rows).astype(np.float32),
    }


def write_softmax(path, rows):
    arrays = softmax_of(rows)
    foreign.write_arrays(path, arrays)
    return arrays


def assert_head(weights, arrays, words):
    assert weights.vocabulary == words
    head = Weights.from_bytes(weights.to_bytes()).build_head()
    np.testing.assert_array_equal(head.weight.detach().numpy(), arrays["softmax/W"])
    np.testing.assert_array_equal(head.bias.detach().numpy()[:, 0], arrays["softmax/b"])


@pytest.mark.parametrize("words", [0, 8])
def test_softmax_in_the_folder(tmp_path, words):
    """The softmax and the vocabulary of its length become the head, for character and for word input."""
    model = tiny.bilm(tiny.config(n_words=words))
    foreign.write_model(tmp_path, model, tiny.VOCABULARY)
    arrays = write_softmax(tmp_path / "softmax.hdf5", 8)
    if not words:
        (tmp_path / "longer.txt").write_text("<S>\n</S>\n<UNK>\n" * 4, "utf8")
    conversion = convert(tmp_path)
    assert_head(conversion.weights, arrays, tiny.VOCABULARY)
    assert_same_tensors(conversion.weights, model)
    names = ["options.json", "lm_weights.hdf5", "softmax.hdf5", "vocab.txt"]
    assert [path.name for path in conversion.files] == names
    assert "vocabulary: vocab.txt (8 words)" in conversion.notes


def test_softmax_and_vocabulary_given(tmp_path):
    folder = foreign.write_model(tmp_path / "model", character_model())
    arrays = write_softmax(tmp_path / "softmax.hdf5", 8)
    words = tmp_path / "words"
    words.write_text("\n".join(tiny.VOCABULARY), "utf8")
    weights = convert(folder, softmax=tmp_path / "softmax.hdf5", vocabulary=words).weights
    assert_head(weights, arrays, tiny.VOCABULARY)


def test_softmax_nobody_asked_for_stays_out(tmp_path):
    foreign.write_model(tmp_path, character_model(), tiny.VOCABULARY)
    write_softmax(tmp_path / "softmax.hdf5", 9)
    conversion = convert(tmp_path)
    assert conversion.weights.build_head() is None and conversion.weights.vocabulary == []
    left_out = "left out the softmax of softmax.hdf5: no text file has its 9 words"
    assert any(note.startswith(left_out) for note in conversion.notes)
    write_softmax(tmp_path / "second.hdf5", 8)
    conversion = convert(tmp_path)
    assert conversion.weights.build_head() is None
    assert any("second.hdf5, softmax.hdf5. Choose" in note for note in conversion.notes)


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"softmax/b": np.zeros(9, np.float32)}, "softmax/b: shape [9], expected [8]"),
        ({"softmax/W": np.zeros((8, 4), np.float32)}, "softmax/W: shape [8, 4], expected [8, 5]"),
        ({"softmax/b": np.full(8, np.inf, np.float32)}, "softmax/b: contains values that are not finite"),
        ({"softmax/b": np.zeros(8)}, "softmax/b: type float64"),
    ],
)  # fmt: skip
def test_softmax_that_does_not_fit(tmp_path, change, problem):
    folder = foreign.write_model(tmp_path / "model", character_model(), tiny.VOCABULARY)
    foreign.write_arrays(tmp_path / "softmax.hdf5", softmax_of(8) | change)
    words = folder / "vocab.txt"
    with pytest.raises(ValueError) as error:
        convert(folder, softmax=tmp_path / "softmax.hdf5", vocabulary=words)
    assert problem in str(error.value) and "softmax.hdf5" in str(error.value)


def test_softmax_without_its_words(tmp_path):
    folder = foreign.write_model(tmp_path / "model", character_model(), tiny.VOCABULARY)
    write_softmax(tmp_path / "softmax.hdf5", 9)
    with pytest.raises(ValueError, match="9 rows, .*`--vocabulary`"):
        convert(folder, softmax=tmp_path / "softmax.hdf5")
    with pytest.raises(ValueError, match="softmax/W, softmax/b. .* CNN/W_cnn_0"):
        convert(folder, softmax=folder / "lm_weights.hdf5")


@torch.no_grad()
@pytest.mark.parametrize("whole", [True, False])
def test_token_vectors(tmp_path, whole):
    """A table that was computed from the characters replaces them, also from a file with other arrays. The layers of
    its words are the same."""
    model = character_model()
    folder = foreign.write_model(tmp_path / "model", model, tiny.VOCABULARY)
    table = {"embedding": model.encoder(model.token_ids(tiny.VOCABULARY)).numpy()}
    foreign.write_arrays(tmp_path / "t.hdf5", table | (foreign.arrays_of(model) if whole else {}))
    conversion = convert(folder, token_vectors=tmp_path / "t.hdf5")
    weights = Weights.from_bytes(conversion.weights.to_bytes())
    assert weights.config.n_words == 8 and weights.vocabulary == tiny.VOCABULARY
    sentences = [["a", "cat", "sat"], ["鳥"]]
    got, expected = (tiny.read(bilm, sentences).layers for bilm in (weights.build_bilm(), model))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)
    assert any("replace the token encoder" in n for n in conversion.notes)
    assert tmp_path / "t.hdf5" in conversion.files


def test_token_vectors_that_do_not_fit(tmp_path):
    folder = foreign.write_model(tmp_path / "model", character_model(), tiny.VOCABULARY)
    foreign.write_arrays(tmp_path / "t.hdf5", {"embedding": np.zeros((8, 4), np.float32)})
    with pytest.raises(ValueError, match=r"embedding: shape \[8, 4\], expected \[8, 5\]"):
        convert(folder, token_vectors=tmp_path / "t.hdf5")
    foreign.write_arrays(tmp_path / "t.hdf5", {"embedding": np.zeros((9, 5), np.float32)})
    with pytest.raises(ValueError, match="8 words, but the word table `embedding` has 9"):
        convert(folder, token_vectors=tmp_path / "t.hdf5")
    with pytest.raises(ValueError, match="no array embedding"):
        convert(folder, token_vectors=folder / "lm_weights.hdf5")


def test_sizes_beyond_the_file(tmp_path):
    """Options with more layers than the file, or with sizes too large for any machine, are refused before
    allocation."""
    for change, problem in [
        ({"lstm__n_layers": 999}, "999 LSTM layers .* contain only"),
        ({"lstm__n_layers": 10**9}, "layers = 1000000000 .the limit is 1,000"),
        ({"lstm__dim": 10**6}, "does not fit"),
        ({"lstm__cell_clip": 10**400}, "cell_clip = 1000.* up to 10,000"),
        ({"lstm__proj_clip": 1e30}, r"proj_clip = 1e\+30 .* up to 10,000"),
    ]:
        foreign.write(tmp_path, changed(OPTIONS, **change), foreign.arrays_of(character_model()))
        with pytest.raises(ValueError, match=problem):
            convert(tmp_path)


def test_array_that_claims_more_than_the_file(tmp_path):
    """HDF5 does not store a chunk that was never written, and would read it as a terabyte of zeros."""
    foreign.write_model(tmp_path, character_model())
    with h5py.File(tmp_path / "lm_weights.hdf5", "r+") as file:
        del file["char_embed"]
        file.create_dataset("char_embed", (1 << 20, 1 << 20), np.float32, chunks=(1024, 1024))
    with pytest.raises(ValueError, match="char_embed has the shape"):
        convert(tmp_path)


def rewrite(folder, **storage):
    """Store the array char_embed of a model in another layout."""
    foreign.write_model(folder, character_model())
    with h5py.File(folder / "lm_weights.hdf5", "r+") as file:
        array = file["char_embed"][()]
        del file["char_embed"]
        file.create_dataset("char_embed", data=array, **storage)


def test_packed_arrays(tmp_path):
    foreign.write_model(tmp_path / "m", character_model())
    expected = convert(tmp_path / "m").weights.tensors["encoder.characters"]
    for number, storage in enumerate(
        [
            {"chunks": (16, 3)},
            {"compression": "gzip"},
            {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (100, 2)},
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        rewrite(folder, **storage)
        assert torch.equal(convert(folder).weights.tensors["encoder.characters"], expected)
    rewrite(tmp_path / "m", compression="lzf")
    with pytest.raises(ValueError, match="char_embed has .* gzip"):
        convert(tmp_path / "m")


def test_chunks_larger_than_their_array(tmp_path):
    """HDF5 allocates a whole chunk of any size, even for the smallest array."""
    rewrite(tmp_path, chunks=(1 << 15, 1 << 10), maxshape=(None, None), compression="gzip")
    with pytest.raises(ValueError, match="char_embed has .* 134,217,728 bytes"):
        convert(tmp_path)
    rewrite(tmp_path, chunks=(261, 3), compression="gzip")
    with h5py.File(tmp_path / "lm_weights.hdf5", "r+") as file:
        bomb = zlib.compress(bytes(1 << 24))
        file["char_embed"].id.write_direct_chunk((0, 0), bomb)
    with pytest.raises(ValueError, match="char_embed has .* expands"):
        convert(tmp_path)


def test_groups_nested_without_end(tmp_path):
    foreign.write_model(tmp_path, character_model())
    with h5py.File(tmp_path / "lm_weights.hdf5", "r+") as file:
        group = file
        for _ in range(1000):
            group = group.create_group("g")
    options, weights = tmp_path / "options.json", tmp_path / "lm_weights.hdf5"
    with pytest.raises(ValueError, match="lm_weights.hdf5 .* 32 levels"):
        convert(tmp_path, options=options, weights=weights)


@pytest.mark.parametrize(
    "type", [h5py.string_dtype(), h5py.vlen_dtype(np.float32), np.dtype([("x", np.float32)])]
)
def test_array_of_something_else(tmp_path, type):
    """A list of variable length is stored elsewhere in the file, and a thousand lists may share the same bytes."""
    foreign.write_model(tmp_path, character_model())
    with h5py.File(tmp_path / "lm_weights.hdf5", "r+") as file:
        del file["char_embed"]
        file.create_dataset("char_embed", (261, 3), type)
    with pytest.raises(ValueError, match="char_embed has the type"):
        convert(tmp_path)


def test_name_that_is_no_text(tmp_path):
    foreign.write_model(tmp_path, character_model())
    path = tmp_path / "lm_weights.hdf5"
    path.write_bytes(path.read_bytes().replace(b"char_embed", b"char_\xffmbed"))
    with pytest.raises(ValueError, match=r"char_\\xffmbed: unexpected"):
        convert(tmp_path)


def test_array_in_another_file(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(4 * 7 * 4))
    for kind in ("external", "virtual"):
        foreign.write_model(tmp_path, character_model())
        with h5py.File(tmp_path / "lm_weights.hdf5", "r+") as file:
            name = CELL.format(0, 0) + "B"
            del file[name]
            if kind == "external":
                where = [(str(tmp_path / "secret"), 0, 4 * 7 * 4)]
                file.create_dataset(name, (28,), np.float32, external=where)
            else:
                layout = h5py.VirtualLayout((28,), np.float32)
                layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", shape=(28,))
                file.create_virtual_dataset(name, layout)
        with pytest.raises(ValueError, match="LSTMCell/B refers to another file"):
            convert(tmp_path)


def test_options_nested_without_end(tmp_path):
    foreign.write_model(tmp_path, character_model())
    for depth in (700, 100_000):
        nest = '{"a":' * depth + "1" + "}" * depth
        content = json.dumps(OPTIONS)[:-1] + f', "more": {nest}}}'
        (tmp_path / "options.json").write_text(content, "utf8")
        if depth == 700:
            assert convert(tmp_path).weights.config == tiny.config()
        else:
            with pytest.raises(ValueError, match="not valid JSON"):
                convert(tmp_path, options=tmp_path / "options.json")

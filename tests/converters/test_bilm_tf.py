"""bilm-tf's files in and out: round trips through an independent writer, and what damaged files are told."""

import json

import h5py
import numpy as np
import pytest
import torch

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.bilm_tf import FILES, convert_checkpoint, convert_hdf5, export
from tests import tiny
from tests.converters import foreign
from tests.converters.foreign import assert_same_tensors, changed

CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/"
WORDS = tiny.VOCABULARY
ROUND_TRIPS = {
    "as published": {"skip": True},
    "no highway, no clips, tanh": {"highways": 0, "cell_clip": None, "proj_clip": None, "activation": "tanh"},
    "no CNN_proj": {"filters": ((3, 5),), "highways": 2},
    "no W_P_0": {"dim": 5},
    "three layers, no residuals": {"layers": 3, "skip": False},
    "one layer": {"layers": 1},
    "words": {"n_words": 8},
    "words, no W_P_0": {"n_words": 8, "dim": 5},
}  # fmt: skip


def model_of(**fields):
    return tiny.bilm(tiny.config(**fields))


def softmax_of(rows, projection=5):
    table = np.linspace(-1, 1, rows * projection, dtype=np.float32).reshape(rows, projection)
    return {"softmax/W": table, "softmax/b": table[:, 0] / 3}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a model with character input and its vocabulary."""
    return foreign.write_model(tmp_path / "model", model_of(), WORDS)


def weights_of(folder, **options):
    return convert_hdf5(folder, **options)[0]


def datasets(path):
    with h5py.File(path) as file:
        found = {}
        file.visititems(lambda name, node: found.update({name: node}))
        return {
            name: (node.dtype.str, node[()].tobytes())
            for name, node in found.items()
            if isinstance(node, h5py.Dataset)
        }


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("fields", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_round_trip(tmp_path, fields, softmax):
    """Every array and option is the same after conversion and export, byte for byte."""
    model, theirs = model_of(**fields), tmp_path / "theirs"
    foreign.write_model(theirs, model, WORDS)
    given = {"vocabulary": theirs / "vocab.txt"} if softmax or model.config.n_words else {}
    if softmax:
        given["softmax"] = theirs / "softmax.hdf5"
        foreign.write_arrays(given["softmax"], softmax_of(8))
    weights = weights_of(theirs, **given)
    assert_same_tensors(weights, model)
    assert_same_tensors(Weights.from_bytes(weights.to_bytes()), model)
    if not model.config.n_words:  # their files say nothing of characters
        assert weights.config == model.config
    files = export(weights, tmp_path / "ours")
    assert sorted(files) == sorted((tmp_path / "ours").iterdir())
    assert json.loads(files[0].read_text()) == json.loads((theirs / "options.json").read_text())
    assert datasets(files[1]) == datasets(theirs / "lm_weights.hdf5")
    if softmax:
        assert datasets(files[2]) == datasets(theirs / "softmax.hdf5")
    if softmax or model.config.n_words:
        assert files[-1].read_text("utf8") == (theirs / "vocab.txt").read_text("utf8")
    else:
        assert [file.name for file in files] == list(FILES[:2])


def test_one_layer_without_its_level(tmp_path):
    """With one layer, TensorFlow leaves out the level of the cells."""
    model = model_of(layers=1)
    arrays = {
        name.replace("/MultiRNNCell/Cell0", ""): array
        for name, array in foreign.arrays_of(model).items()
    }
    foreign.write(tmp_path, foreign.options_of(model.config), arrays)
    assert_same_tensors(weights_of(tmp_path), model)


def test_vocabulary_as_bilm_tf_reads_it(tmp_path):
    """Lines are stripped, and the line that only some files have is skipped."""
    foreign.write_model(tmp_path, model_of(n_words=8))
    lines = ["<S>", "</S>", "<UNK>", "!!!MAXTERMID", " a ", "cat\r", "", "naïve", "鳥"]
    (tmp_path / "words").write_bytes("\n".join(lines).encode())
    words = weights_of(tmp_path, vocabulary=tmp_path / "words").vocabulary
    assert words == ["<S>", "</S>", "<UNK>", "a", "cat", "", "naïve", "鳥"]


OPTIONS = foreign.options_of(tiny.config())


@pytest.mark.parametrize(
    "changes, fields, note",
    [
        ({"char_cnn__n_characters": 261}, {}, None),
        ({"char_cnn__n_characters": ...}, {}, "char_cnn.n_characters is missing: assumed 261"),
        ({"char_cnn__n_highway": None}, {"highways": 0}, None),
        ({"char_cnn__n_highway": ...}, {"highways": 0}, "char_cnn.n_highway is missing: assumed 0"),
        ({"lstm__cell_clip": 0, "lstm__proj_clip": 3}, {"cell_clip": None, "proj_clip": 3.0}, None),
        ({"lstm__cell_clip": False}, {"cell_clip": None}, None),
        ({"lstm__cell_clip": ...}, {"cell_clip": None}, "lstm.cell_clip is missing"),
        ({"lstm__use_skip_connections": None}, {"skip": False}, None),
        ({"bidirectional": True, "dropout": 0.1, "n_tokens_vocab": 793471}, {}, None),
        ({"char_cnn__reverse": False}, {}, None),
        ({"lstm__n_layers": ...}, {"layers": 1}, "lstm.n_layers is missing: assumed 1"),
        ({"lstm__n_layer": 3}, {}, "ignored unknown options: lstm.n_layer"),
    ],
)  # fmt: skip
def test_options(tmp_path, changes, fields, note):
    model = model_of(**fields)
    foreign.write(tmp_path, changed(OPTIONS, **changes), foreign.arrays_of(model))
    weights, (read, *notes) = convert_hdf5(tmp_path)
    assert weights.config == model.config
    assert read == f"read {tmp_path / 'options.json'}, {tmp_path / 'lm_weights.hdf5'}"
    assert len(notes) == (note is not None) and (note or "") in "".join(notes)


def replaced(**arrays):
    """Return a function that replaces arrays of the weights file by others; None removes an array."""

    def change(folder):
        with h5py.File(folder / "lm_weights.hdf5", "r+") as file:
            for name, array in arrays.items():
                name = name.replace("__", "/")
                if name in file:
                    del file[name]
                if array is not None:
                    file[name] = array

    return change


def stored(**storage):
    """Return a function that stores an array in another way."""

    def change(folder):
        with h5py.File(folder / "lm_weights.hdf5", "r+") as file:
            del file["char_embed"]
            file.create_dataset(
                "char_embed", **({"shape": (261, 3), "dtype": np.float32} | storage)
            )

    return change


def virtual(folder):
    with h5py.File(folder / "lm_weights.hdf5", "r+") as file:
        layout = h5py.VirtualLayout((261, 3), np.float32)
        layout[:] = h5py.VirtualSource("other.h5", "x", shape=(261, 3))
        del file["char_embed"]
        file.create_virtual_dataset("char_embed", layout)


def nested(folder):
    with h5py.File(folder / "lm_weights.hdf5", "r+") as file:
        file.create_group("/".join("g" * 1000))


def options(**changes):
    content = json.dumps(changed(OPTIONS, **changes))
    return lambda folder: (folder / "options.json").write_text(content, "utf8")


def written(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def renamed(folder):
    path = folder / "lm_weights.hdf5"
    path.write_bytes(path.read_bytes().replace(b"char_embed", b"char_\xffmbed"))


def softmax(**change):
    """Return a function that writes a softmax for the eight words, with changed arrays."""
    change = {f"softmax/{name}": array for name, array in change.items()}
    return lambda folder: foreign.write_arrays(folder / "softmax.hdf5", softmax_of(8) | change)


def vectors(array):
    return lambda folder: foreign.write_arrays(folder / "vectors", {"embedding": array})


def words(words):
    def change(folder):
        foreign.write_model(folder, model_of(n_words=8), words)

    return change


NAMED = {"softmax": "softmax.hdf5", "vocabulary": "vocab.txt"}


DAMAGE = [
    (options(lstm__dim=..., lstm__projection_dim=None), ["lstm.dim is missing", "lstm.projection_dim is missing"]),
    (options(lstm__dim="7", lstm__n_layers=1.5), ["dim = '7'", "layers = 1.5"]),
    (options(lstm__cell_clip=-3, lstm__proj_clip="3"), ["cell_clip = -3", "proj_clip = '3'"]),
    (options(char_cnn__activation="gelu"), ["activation = 'gelu'"]),
    (options(char_cnn__n_characters=300), ["char_cnn.n_characters = 300 (must be 261 or 262)"]),
    (options(char_cnn=...), ["char_cnn and n_tokens_vocab are both missing"]),
    (options(lstm__n_layers=999), ["LSTMCell/B: missing", "and 5932 more"]),
    (options(lstm__n_layers=10**9), ["layers = 1000000000"]),
    (options(lstm__dim=10**6), ["the arrays do not fit"]),
    (written("options.json", b'{"lstm": 3}'), ['no section "lstm"']),
    (written("options.json", b'{"a":' * 100_000), ["not valid JSON"]),
    (
        replaced(
            char_embed=np.zeros((262, 3), np.float32), CNN__b_cnn_0=np.zeros(2), CNN__b_cnn_1=None, other=np.zeros(1),
            CNN_proj__b_proj=np.full(5, np.nan, np.float32),
        ),
        [
            "char_embed: shape [262, 3], expected [261, 3]", "CNN/b_cnn_0: type float64", "CNN/b_cnn_1: missing",
            "other: unexpected", "CNN_proj/b_proj: contains values that are not finite",
        ],
    ),
    (written("lm_weights.hdf5", b"nothing"), ["not a readable HDF5 file"]),
    # What strangers could send: an array that takes more memory than its file, or that is in another file.
    (stored(shape=(1 << 20, 1 << 20)), ["char_embed of the shape [1048576, 1048576]"]),
    (stored(chunks=(1 << 15, 1 << 15), maxshape=(None, None)), ["char_embed is compressed, in chunks"]),
    (stored(compression="gzip"), ["char_embed is compressed"]),
    (stored(external=[("options.json", 0, 261 * 3 * 4)]), ["in another file"]),
    (virtual, ["in another file"]),
    (stored(dtype=h5py.vlen_dtype(np.float32)), ["char_embed of the shape [261, 3] and the type object"]),
    (nested, ["32 levels"]),
    (renamed, [r"char_\xffmbed: unexpected"]),
    (softmax(W=np.zeros((8, 4), np.float32)), ["softmax/W: shape [8, 4], expected [8, 5]"], NAMED),
    (softmax(b=np.full(8, np.inf, np.float32)), ["softmax/b: contains values that are not finite"], NAMED),
    (words(WORDS[:7]), ["vocabulary of 8 words, one per line, but has 7"], {"vocabulary": "vocab.txt"}),
    (words(["<S>", *"abcdefg"]), ["does not contain </S>"], {"vocabulary": "vocab.txt"}),
    (words(None), ["but has 0", "--vocabulary"]),
    (
        lambda folder: (softmax()(folder), written("vocab.txt", b"na\xefve")(folder)),
        ["vocab.txt is not a UTF-8 text file"], NAMED,
    ),
    (vectors(np.zeros((8, 4), np.float32)), ["embedding: shape [8, 4], expected [8, 5]"], {"token_vectors": "vectors"}),
    (written("x", b""), ["no array embedding"], {"token_vectors": "lm_weights.hdf5"}),
]  # fmt: skip


@pytest.mark.parametrize("damage, fragments, given", [(*row, {})[:3] for row in DAMAGE])
def test_damage(folder, damage, fragments, given):
    damage(folder)
    with pytest.raises(ValueError) as error:
        convert_hdf5(folder, **{option: folder / name for option, name in given.items()})
    for fragment in [str(folder), *fragments]:
        assert fragment in str(error.value)


def test_files_are_found_or_named(folder):
    """Published folders also contain outputs, sentences and a softmax. A weights file that is named reads its options
    from its folder."""
    foreign.write_arrays(folder / "lm_embeddings_0.hdf5", {"0": np.zeros((2, 3, 5))})
    (folder / "sentences.json").write_text('[["lstm"]]', "utf8")
    foreign.write_arrays(folder / "softmax.hdf5", softmax_of(8))
    weights = weights_of(folder)
    assert weights.vocabulary == []
    assert weights.card == {"converted_from": "lm_weights.hdf5 and options.json (bilm-tf)"}
    other = tiny.bilm(tiny.config(), seed=1)
    foreign.write_arrays(folder / "other.hdf5", foreign.arrays_of(other))
    with pytest.raises(ValueError, match="RNN_0, but found lm_weights.hdf5, other.hdf5. Give"):
        convert_hdf5(folder)
    assert_same_tensors(weights_of(folder / "other.hdf5"), other)
    more = folder / "more_options.json"
    more.write_text(json.dumps(OPTIONS), "utf8")
    with pytest.raises(ValueError, match=r"found more_options.json, options.json.*--options"):
        convert_hdf5(folder / "other.hdf5")
    assert_same_tensors(weights_of(folder / "other.hdf5", options=more), other)


def test_softmax_needs_its_words(folder):
    foreign.write_arrays(folder / "softmax.hdf5", softmax_of(9))
    assert weights_of(folder).build_head() is None
    for given in ({}, {"vocabulary": folder / "vocab.txt"}):
        with pytest.raises(ValueError, match=r"softmax.hdf5.* vocabulary of 9 words.*--vocabulary"):
            convert_hdf5(folder, softmax=folder / "softmax.hdf5", **given)


@torch.no_grad()
@pytest.mark.parametrize("words", [WORDS, ["sat", "</S>", "cat", "<S>", "a"]])
def test_token_vectors(folder, words):
    """The vectors replace the characters. bilm-tf's README writes vocabularies without <UNK>, in any order; then other
    words have zeros, the vector that bilm-tf gives them."""
    model = model_of()
    table = model.encoder(model.token_ids(words))
    foreign.write_arrays(
        folder / "vectors", {"embedding": table.numpy(), **foreign.arrays_of(model)}
    )
    (folder / "words").write_text("\n".join(words), "utf8")
    weights, notes = convert_hdf5(
        folder, token_vectors=folder / "vectors", vocabulary=folder / "words"
    )
    bilm = Weights.from_bytes(weights.to_bytes()).build_bilm()
    sentences = [["a", "cat", "sat"], ["cat"]]
    layers = [tiny.read(each, sentences).layers for each in (bilm, model)]
    torch.testing.assert_close(*layers, atol=1e-6, rtol=0)
    unknown = bilm.encoder(bilm.token_ids(["unheard", "<UNK>"]))
    if "<UNK>" in words:
        assert torch.equal(unknown, table[[2, 2]])
    else:
        assert not unknown.any() and any("vector of zeros" in note for note in notes)
        back = export(weights, folder / "out")  # and such a model can be exported, with <UNK>
        assert back[-1].read_text("utf8").split() == [*words, "<UNK>"]


# Checkpoints


def trained(name):
    """Return the name under which bilm-tf trains an array."""
    for dumped, variable in (
        ("/RNN/MultiRNNCell/Cell", "/rnn/multi_rnn_cell/cell_"),
        ("/RNN/LSTMCell", "/rnn/LSTMCell"),
        ("/LSTMCell/W_P_0", "/lstm_cell/projection/kernel"),
        ("/LSTMCell/W_0", "/lstm_cell/kernel"),
        ("/LSTMCell/B", "/lstm_cell/bias"),
    ):
        name = name.replace(dumped, variable)
    return f"lm/{name}"


def write_checkpoint(folder, model, *, step=7, without=()):
    """Write a model as bilm-tf does: its variables, the optimizer's slots and the state of the training."""
    tensorflow = pytest.importorskip("tensorflow")
    arrays = {**foreign.arrays_of(model), **softmax_of(8)}
    arrays = {trained(name): array for name, array in arrays.items() if name not in without}
    slots = {f"{name}/Adagrad": np.ones_like(array) for name, array in arrays.items()}
    arrays |= {**slots, "global_step": np.float32(step), "train_perplexity": np.float32(0)}
    tensorflow.raw_ops.SaveV2(
        prefix=str(folder / f"model.ckpt-{step}"), tensor_names=list(arrays),
        shape_and_slices=[""] * len(arrays), tensors=list(map(tensorflow.constant, arrays.values())),
    )  # fmt: skip
    options = foreign.options_of(model.config) | {"n_tokens_vocab": 8, "unroll_steps": 20}
    (folder / "options.json").write_text(json.dumps(options), "utf8")
    return folder


@pytest.mark.parametrize("fields", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_checkpoint(tmp_path, fields):
    model = model_of(**fields)
    write_checkpoint(tmp_path, model)
    if not model.config.n_words:
        weights, notes = convert_checkpoint(tmp_path)
        assert_same_tensors(weights, model)
        assert any(note.startswith("left out the softmax") for note in notes)
    words = tmp_path / "vocab.txt"
    words.write_text("\n".join(WORDS), "utf8")
    weights, notes = convert_checkpoint(tmp_path / "model.ckpt-7.index", vocabulary=words)
    assert_same_tensors(weights, model)
    assert weights.vocabulary == WORDS
    head = weights.build_head()
    assert torch.equal(head.weight, torch.from_numpy(softmax_of(8)["softmax/W"]))
    assert torch.equal(head.bias[:, 0], torch.from_numpy(softmax_of(8)["softmax/b"]))
    assert f"read {tmp_path / 'options.json'}, {tmp_path / 'model.ckpt-7'}" in notes[0]


def test_softmax_that_is_the_table_of_words(tmp_path):
    """In bilm-tf this is the option share_embedding_softmax."""
    model = model_of(n_words=8)
    write_checkpoint(tmp_path, model, without=["softmax/W"])
    words = tmp_path / "vocab.txt"
    words.write_text("\n".join(WORDS), "utf8")
    weights = Weights.from_bytes(convert_checkpoint(tmp_path, vocabulary=words)[0].to_bytes())
    assert torch.equal(weights.build_head().weight, model.encoder.words)


def test_newest_checkpoint(tmp_path):
    """The file `checkpoint` names it, often with the path on another machine."""
    other = tiny.bilm(tiny.config(), seed=1)
    write_checkpoint(tmp_path, other, step=6)
    write_checkpoint(tmp_path, model_of(), step=10)
    with pytest.raises(ValueError, match="found model.ckpt-10.index, model.ckpt-6.index. Give"):
        convert_checkpoint(tmp_path)
    named = 'model_checkpoint_path: "/elsewhere/model.ckpt-6"\nall_model_checkpoint_paths: "y"\n'
    (tmp_path / "checkpoint").write_text(named, "utf8")
    assert_same_tensors(convert_checkpoint(tmp_path)[0], other)


def test_damaged_checkpoint(tmp_path):
    write_checkpoint(tmp_path, model_of())
    data = tmp_path / "model.ckpt-7.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[len(content) // 3] ^= 1
    for damaged in (bytes(content), content[:100], b""):
        data.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model.ckpt-7 is not a checkpoint of TensorFlow"):
            convert_checkpoint(tmp_path)
    data.unlink()
    with pytest.raises(ValueError, match=r"model.ckpt-7 is not a checkpoint of TensorFlow"):
        convert_checkpoint(tmp_path)


# Out


def test_another_forget_bias_goes_into_the_bias(tmp_path):
    model = model_of(forget_bias=0.0)
    export(Weights.from_bilm(model), tmp_path)
    back = weights_of(tmp_path)
    assert back.config.forget_bias == 1.0
    sentences = [["a", "cat"], ["extraordinarily"]]
    layers = [tiny.read(bilm, sentences).layers for bilm in (model, back.build_bilm())]
    torch.testing.assert_close(*layers, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "fields, words, problem",
    [
        ({"n_words": 8, "word_dim": 3}, WORDS, "of ELMoForManyLangs"),
        ({"n_symbols": 9}, [], "of ELMoForManyLangs"),
        ({"unicode_form": "NFC"}, [], "spelling"),
        ({"dim": 5, "square_projections": True}, [], "a projection between equal sizes"),
        ({"filters": ((1, 5),), "square_projections": True}, [], "a projection between equal sizes"),
        ({"n_words": 8}, [*WORDS[:7], " a"], r"express the words \[' a'\]"),
        ({"n_words": 8}, [*WORDS[:7], "a\rb"], r"express the words \['a\\rb'\]"),
    ],
)  # fmt: skip
def test_what_bilm_tf_lacks(tmp_path, fields, words, problem):
    with pytest.raises(ValueError, match=problem):
        export(Weights(tiny.config(**fields), {}, words), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []

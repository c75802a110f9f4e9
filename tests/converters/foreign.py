"""Files of bilm-tf models, generated from a small biLM with bilm-tf's names."""

import json

import h5py
import numpy as np
import torch


def options_of(config):
    """Return options.json for inference with bilm-tf."""
    options = {
        "lstm": {
            "dim": config.dim,
            "projection_dim": config.projection,
            "n_layers": config.layers,
            "cell_clip": config.cell_clip,
            "proj_clip": config.proj_clip,
            "use_skip_connections": config.skip,
        }
    }
    if config.n_words:
        options["n_tokens_vocab"] = config.n_words
    else:
        options["char_cnn"] = {
            "activation": config.activation,
            "embedding": {"dim": config.char_dim},
            "filters": [list(group) for group in config.filters],
            "max_characters_per_token": config.max_characters,
            "n_characters": 262,
            "n_highway": config.highways,
        }
    return options


def changed(options, **changes):
    """Return a copy of options with `section__key=value` replaced; `...` deletes the key."""
    options = json.loads(json.dumps(options))
    for path, value in changes.items():
        *sections, key = path.split("__")
        section = options
        for name in sections:
            section = section[name]
        if value is ...:
            del section[key]
        else:
            section[key] = value
    return options


def arrays_of(model):
    """Return the datasets of lm_weights.hdf5, by name."""
    arrays = {}
    for layer, lstm in enumerate(model.lstm):
        for d in (0, 1):
            cell = f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            arrays[f"{cell}/W_0"] = np.concatenate(
                [lstm.input[d].detach(), lstm.recurrent[d].detach()]
            )
            arrays[f"{cell}/B"] = lstm.bias[d]
            if lstm.projection is not None:
                arrays[f"{cell}/W_P_0"] = lstm.projection[d]
    encoder = model.encoder
    if model.config.n_words:
        arrays["embedding"] = encoder.words
    else:
        arrays["char_embed"] = encoder.characters
        for i, (weight, bias) in enumerate(
            zip(encoder.filters, encoder.filter_biases, strict=True)
        ):
            arrays[f"CNN/W_cnn_{i}"] = weight[None]
            arrays[f"CNN/b_cnn_{i}"] = bias
        for k, highway in enumerate(encoder.highways):
            for gate in ("carry", "transform"):
                arrays[f"CNN_high_{k}/W_{gate}"] = getattr(highway, gate).weight
                arrays[f"CNN_high_{k}/b_{gate}"] = getattr(highway, gate).bias
        if encoder.projection is not None:
            arrays["CNN_proj/W_proj"] = encoder.projection.weight
            arrays["CNN_proj/b_proj"] = encoder.projection.bias
    return {
        name: array if isinstance(array, np.ndarray) else array.detach().numpy()
        for name, array in arrays.items()
    }


def write(folder, options, arrays, vocabulary=None):
    """Write the files of a model, with the names of bilm-tf's examples."""
    folder.mkdir(exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options), "utf8")
    write_arrays(folder / "lm_weights.hdf5", arrays)
    if vocabulary is not None:
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary), "utf8")
    return folder


def write_arrays(path, arrays):
    """Write an HDF5 file."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def write_model(folder, model, vocabulary=None):
    """Write the files of one of our networks."""
    return write(folder, options_of(model.config), arrays_of(model), vocabulary)


def assert_same_tensors(weights, model):
    """Check that converted weights have the tensors of one of our networks, and perhaps a head."""
    expected = model.state_dict()
    got = weights.without_head().tensors
    assert got.keys() == expected.keys()
    for name, tensor in got.items():
        assert torch.equal(tensor, expected[name]), name
        assert tensor.is_contiguous()

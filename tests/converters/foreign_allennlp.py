"""Files of trained AllenNLP models, generated from a small biLM with AllenNLP's names."""

import json

import torch

from tests.converters.foreign import options_of

PREFIX = "text_field_embedder.token_embedder_elmo._elmo."


def state_of(model, mixes=()):
    """Return the state dict of an `Elmo`, number by number, by AllenNLP's formulas."""
    config, encoder = model.config, model.encoder
    state = {}
    table = torch.zeros(262, config.char_dim)
    table[1:] = encoder.characters
    state["_elmo_lstm._token_embedder._char_embedding_weights"] = table
    for i, (width, number) in enumerate(config.filters):
        kernel = torch.empty(number, config.char_dim, width)
        for position in range(width):
            kernel[:, :, position] = encoder.filters[i][position].t()
        state[f"_elmo_lstm._token_embedder.char_conv_{i}.weight"] = kernel
        state[f"_elmo_lstm._token_embedder.char_conv_{i}.bias"] = encoder.filter_biases[i]
    for k, highway in enumerate(encoder.highways):
        size = config.n_filters
        weight, bias = torch.empty(2 * size, size), torch.empty(2 * size)
        for row in range(size):
            weight[row] = highway.transform.weight[:, row]
            weight[size + row] = -highway.carry.weight[:, row]
            bias[row] = highway.transform.bias[row]
            bias[size + row] = -highway.carry.bias[row]
        state[f"_elmo_lstm._token_embedder._highways._layers.{k}.weight"] = weight
        state[f"_elmo_lstm._token_embedder._highways._layers.{k}.bias"] = bias
    state["_elmo_lstm._token_embedder._projection.weight"] = encoder.projection.weight.t()
    state["_elmo_lstm._token_embedder._projection.bias"] = encoder.projection.bias
    c = config.dim
    theirs = [*range(c), *range(2 * c, 3 * c), *range(c, 2 * c), *range(3 * c, 4 * c)]
    for layer, lstm in enumerate(model.lstm):
        for d, direction in enumerate(("forward", "backward")):
            name = f"_elmo_lstm._elmo_lstm.{direction}_layer_{layer}."
            bias = lstm.bias[d].clone()
            bias[2 * c : 3 * c] += config.forget_bias
            state[name + "input_linearity.weight"] = lstm.input[d][:, theirs].t()
            state[name + "state_linearity.weight"] = lstm.recurrent[d][:, theirs].t()
            state[name + "state_linearity.bias"] = bias[theirs]
            state[name + "state_projection.weight"] = lstm.projection[d].t()
    for k, (weights, gamma) in enumerate(mixes):
        state[f"scalar_mix_{k}.gamma"] = torch.tensor([gamma])
        for layer, weight in enumerate(weights):
            state[f"scalar_mix_{k}.scalar_parameters.{layer}"] = torch.tensor([weight])
    return {name: tensor.detach().contiguous() for name, tensor in state.items()}


def tagger_of(model, mixes=(), prefix=PREFIX):
    """Return the state dict of a tagger that contains the ELMo."""
    state = {prefix + name: tensor for name, tensor in state_of(model, mixes).items()}
    return {"tag_projection_layer.weight": torch.ones(2, 3)} | state


def config_of(**elmo):
    """Return the configuration of such a tagger."""
    embedder = {"type": "elmo_token_embedder", "options_file": "https://example.com/o.json", **elmo}
    return {"model": {"text_field_embedder": {"token_embedders": {"elmo": embedder}}}}


def write(folder, state, config=None, options=None):
    """Write the unpacked folder of an archive, with `options` as `options.json`."""
    folder.mkdir(exist_ok=True)
    torch.save(state, folder / "weights.th")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), "utf8")
    if options is not None:
        (folder / "options.json").write_text(json.dumps(options), "utf8")
    return folder


def write_model(folder, model, mixes=()):
    """Write a complete model with its options."""
    return write(folder, tagger_of(model, mixes), config_of(), options_of(model.config))

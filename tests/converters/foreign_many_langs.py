"""Files of ELMoForManyLangs models: random numbers with the names that ELMoForManyLangs saves."""

import json
from collections import OrderedDict

import torch

WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "cat", "Cat", "sat", "鳥", "naïve", "\u3000", "x" * 8]
CHARACTERS = [*"catsCxnïve", "\u3000", "鳥", "<", ">", "🙂"]
MARKS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]

# What a real text brings: unknown and long words, other scripts, marks as words, a sentence of nothing.
SENTENCES = [
    ["cat"],
    ["Cat", "sat", "cat"],
    ["", "<bos>", "cat", "<eos>", "<pad>", "<oov>", "<S>", "</S>"],
    ["鳥鳥", "🙂🙃", "naïve", "nai\u0308ve", "\u3000", "x" * 60],
    ["xxxxxxxxy", "x" * 8, "x" * 9, "t" * 11, "Ω" * 200],
    [],
]


def options(**fields):
    """Return a network configuration. No two fields of its sections have the same name."""
    small = {
        "encoder": {
            "name": "elmo", "projection_dim": 5, "cell_clip": 0.3, "proj_clip": 0.2, "dim": 7, "n_layers": 2
        },
        "token_embedder": {
            "name": "cnn", "activation": "relu", "filters": [[1, 2], [2, 3], [4, 4]], "n_highway": 1,
            "word_dim": 3, "char_dim": 4, "max_characters_per_token": 10,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": 8192},
        "dropout": 0.1,
    }  # fmt: skip
    for name, value in fields.items():
        section = next(s for s in ("encoder", "token_embedder") if name in small[s])
        small[section][name] = value
    return small


def lexicons(options):
    """Return the symbols of word.dic and char.dic by row. In training, the marks are written after the characters."""
    embedder = options["token_embedder"]
    return WORDS, [*CHARACTERS, *MARKS] if embedder["char_dim"] else None


def state_dicts(options, seed=0):
    """Return the content of token_embedder.pkl and encoder.pkl."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
        return torch.randn(shape, generator=generator) * 0.5

    encoder, embedder = options["encoder"], options["token_embedder"]
    width, cells = encoder["projection_dim"], encoder["dim"]
    words, characters = lexicons(options)
    tokens, lstm, features = OrderedDict(), OrderedDict(), 0
    if embedder["word_dim"]:
        features += embedder["word_dim"]
        tokens["word_emb_layer.embedding.weight"] = random(len(words), embedder["word_dim"])
    if embedder["char_dim"]:
        n = sum(number for _, number in embedder["filters"])
        features += n
        tokens["char_emb_layer.embedding.weight"] = random(len(characters), embedder["char_dim"])
        for i, (positions, number) in enumerate(embedder["filters"]):
            tokens[f"convolutions.{i}.weight"] = random(number, embedder["char_dim"], positions)
            tokens[f"convolutions.{i}.bias"] = random(number)
        for i in range(embedder["n_highway"]):
            tokens[f"highways._layers.{i}.weight"] = random(2 * n, n)
            tokens[f"highways._layers.{i}.bias"] = random(2 * n)
    tokens["projection.weight"], tokens["projection.bias"] = random(width, features), random(width)
    for level in range(encoder["n_layers"]):
        for direction in ("forward", "backward"):
            cell = f"{direction}_layer_{level}."
            lstm[cell + "input_linearity.weight"] = random(4 * cells, width)
            lstm[cell + "state_linearity.weight"] = random(4 * cells, width)
            lstm[cell + "state_linearity.bias"] = random(4 * cells)
            lstm[cell + "state_projection.weight"] = random(width, cells)
    return tokens, lstm


def write(folder, options, tokens, lstm, *, old=False):
    """Write the files of a model.

    Args:
        old: write tensors as PyTorch did before 1.6, as in all published models.
    """
    words, characters = lexicons(options)
    write_lexicon(folder / "word.dic", words)
    if characters is not None:
        write_lexicon(folder / "char.dic", characters)
    (folder / "config.json").write_text(json.dumps({"config_path": "network.json", "seed": 1}))
    (folder / "network.json").write_text(json.dumps(options), "utf8")
    for name, state in (("token_embedder", tokens), ("encoder", lstm)):
        torch.save(state, folder / f"{name}.pkl", _use_new_zipfile_serialization=not old)
    return folder


def write_lexicon(path, symbols):
    """Write a dictionary as `biLM.py` does, in the order of the first occurrence of its symbols."""
    path.write_text("".join(f"{symbol}\t{row}\n" for row, symbol in enumerate(symbols)), "utf8")


def write_model(folder, options):
    """Write the files of a random model."""
    return write(folder, options, *state_dicts(options))

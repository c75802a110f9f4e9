"""ELMoForManyLangs directly from its formulas: float64, one sentence, direction, step and word at a time.

It shares no code with the package, and reads the model's files by their own names. Source: `elmo.py`, `frontend.py` and
`modules/` of the program, 0.0.4.post2.
"""

import numpy as np


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def clip(x, limit):
    return np.clip(x, -limit, limit) if limit else x


class Oracle:
    """A model. `options` are those of its network; `tokens` and `lstm` are its two files; symbols are given by row."""

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

"""The biLM directly from its formulas: float64, one sentence, one direction, one step, one word at a time.

It is slow and plain on purpose. Tests compare fast code with it, so it shares no code with `spacy_elmo.bilm` (unlike
`bilm/reference.py`) and takes only a configuration's fields and the tensors by name. Sources: Peters et al. 2018 and
bilm-tf's `model.py`, `training.py`, `data.py`; TensorFlow's `LSTMCell` and `sampled_softmax_loss`.
"""

import numpy as np


def sigmoid(x):
    return 0.5 * (1 + np.tanh(x / 2))


def relu(x):
    return np.maximum(x, 0)


def clip(x, limit):
    return x if limit is None else np.clip(x, -limit, limit)


def char_ids(word, size):
    """Return [start, bytes, end, padding ...]; the boundaries are words of one special character."""
    if word == "<S>":
        inside = [256]
    elif word == "</S>":
        inside = [257]
    else:
        inside = list(word.encode("utf8", "replace"))[: size - 2]
    ids = [258, *inside, 259]
    return ids + [260] * (size - len(ids))


class Oracle:
    """A biLM. `tensors` have the names of a weights file. Matrices multiply from the right."""

    def __init__(self, config, tensors, vocabulary=()):
        self.config = config
        self.tensors = {name: np.asarray(t, dtype=np.float64) for name, t in tensors.items()}
        self.vocabulary = list(vocabulary)

    def token(self, word):
        """Return the context-free vector (P,)."""
        if self.config.n_words:
            name = word if word in self.vocabulary else "<UNK>"
            return self.tensors["encoder.words"][self.vocabulary.index(name)]
        t = {name.removeprefix("encoder."): tensor for name, tensor in self.tensors.items()}
        characters = t["characters"][char_ids(word, self.config.max_characters)]
        activation = {"relu": relu, "tanh": np.tanh}[self.config.activation]
        pooled = []
        for group, (width, _) in enumerate(self.config.filters):
            windows = [
                characters[start : start + width]
                for start in range(self.config.max_characters - width + 1)
            ]
            # Sum over the window's positions and the characters' dimensions.
            features = [np.tensordot(window, t[f"filters.{group}"], 2) for window in windows]
            pooled.append(activation(np.max(features, 0) + t[f"filter_biases.{group}"]))
        x = np.concatenate(pooled)
        for k in range(self.config.highways):
            carry = sigmoid(x @ t[f"highways.{k}.carry.weight"] + t[f"highways.{k}.carry.bias"])
            new = relu(x @ t[f"highways.{k}.transform.weight"] + t[f"highways.{k}.transform.bias"])
            x = carry * new + (1 - carry) * x
        if len(x) != self.config.projection or self.config.square_projections:
            x = x @ t["projection.weight"] + t["projection.bias"]
        return x

    def cell(self, x, h, c, layer, direction):
        """Compute one step of one direction: from h (P,) and c (C,) to the next h and c."""
        t = {
            name.removeprefix(f"lstm.{layer}."): tensor[direction]
            for name, tensor in self.tensors.items()
            if name.startswith(f"lstm.{layer}.")
        }
        z = x @ t["input"] + h @ t["recurrent"] + t["bias"]
        i, j, f, o = np.split(z, 4)
        c = sigmoid(f + self.config.forget_bias) * c + sigmoid(i) * np.tanh(j)
        c = clip(c, self.config.cell_clip)
        h = sigmoid(o) * np.tanh(c)
        if self.config.dim != self.config.projection or self.config.square_projections:
            h = clip(h @ t["projection"], self.config.proj_clip)
        return h, c

    def run(self, words, direction, state, closing=False):
        """Run one direction over `<S> words </S>`. Return the outputs (L, steps, P) by step, and the last state.

        The last word of the sequence is processed only if `closing`.
        """
        sequence = ["<S>", *words, "</S>"]
        sequence = sequence[::-1] if direction else sequence
        xs = [self.token(word) for word in (sequence if closing else sequence[:-1])]
        outputs, hs, cs = [], [], []
        for layer in range(self.config.layers):
            h, c = state[0][layer], state[1][layer]
            ys = []
            for x in xs:
                h, c = self.cell(x, h, c, layer, direction)
                # The recurrent h is the value before the residual.
                ys.append(h + x if self.config.skip and layer > 0 else h)
            outputs.append(ys)
            hs.append(h)
            cs.append(c)
            xs = ys
        return np.array(outputs), (np.array(hs), np.array(cs))

    def zero_state(self):
        """Return h (L, 2, P) and c (L, 2, C) of zeros."""
        layers = self.config.layers
        return np.zeros((layers, 2, self.config.projection)), np.zeros((layers, 2, self.config.dim))

    def layers(self, words, state=None, closing=False):
        """Return the layers (L+1, n, 2P) of one sentence, and the state after it: h (L, 2, P), c (L, 2, C)."""
        h, c = self.zero_state() if state is None else state
        n = len(words)
        forward, last_f = self.run(words, 0, (h[:, 0], c[:, 0]), closing)
        backward, last_b = self.run(words, 1, (h[:, 1], c[:, 1]), closing)
        tokens = np.array([self.token(word) for word in words]).reshape(n, self.config.projection)
        result = [np.concatenate([tokens, tokens], 1)]
        for layer in range(self.config.layers):
            # Step 0 of each direction is its boundary; step 1 of the backward one is the last word.
            f, b = forward[layer, 1 : n + 1], backward[layer, 1 : n + 1][::-1]
            result.append(np.concatenate([f, b], 1))
        state = tuple(np.stack([f, b], 1) for f, b in zip(last_f, last_b, strict=True))
        return np.array(result), state


def full_loss(hidden, targets, weight, bias):
    """Return the cross-entropy of each row (M,) under the softmax over all V words. `weight` (V, P), `bias` (V,)."""
    losses = []
    for h, target in zip(np.asarray(hidden, np.float64), targets, strict=True):
        logits = weight @ h + bias
        losses.append(np.log(np.sum(np.exp(logits))) - logits[target])
    return np.array(losses)


def expected_count(word, words, tries):
    """Return the expected count of a word among distinct draws after a number of tries: 1 - (1 - P(k))^n."""
    p = np.log((word + 2) / (word + 1)) / np.log(words + 1)
    return 1 - (1 - p) ** tries


def sampled_loss(hidden, targets, weight, bias, negatives, tries):
    """Return the sampled softmax loss of each row (M,). The softmax is over its target and the negatives; the logarithm
    of the expected count is subtracted from each logit. A negative that is the target does not count."""
    losses = []
    for h, target in zip(np.asarray(hidden, np.float64), targets, strict=True):
        classes = [target] + [k for k in negatives if k != target]
        logits = np.array(
            [
                weight[k] @ h + bias[k] - np.log(expected_count(k, len(weight), tries))
                for k in classes
            ]
        )
        losses.append(np.log(np.sum(np.exp(logits))) - logits[0])
    return np.array(losses)

"""A training step of bilm-tf's network in TensorFlow itself, saved as bilm-tf does, with the outputs after it.

Run by the Python that has TensorFlow: `python train_in_tensorflow.py FOLDER ...`. Each folder holds options.json
(bilm-tf's) and inputs.npz: `forward` and `backward`, what each direction reads, (B, T) rows or (B, T, characters) ids,
and `targets` (B, T). It receives the checkpoint and outputs.npz: the variables by name, and, behind the prefix "says:",
for each direction the token vectors (B, T, P), the top LSTM layer (B, T, P) and the log-probabilities (B, T, V).

Names, scopes and arithmetic are those of bilm-tf's training.py; everything that only trains well is left out.
"""

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow

tf = tensorflow.compat.v1
tf.disable_eager_execution()


def characters(ids, options, reuse):
    """Compute token vectors from character ids."""
    cnn, width = options["char_cnn"], options["lstm"]["projection_dim"]
    dim, longest = cnn["embedding"]["dim"], cnn["max_characters_per_token"]
    activation = {"relu": tf.nn.relu, "tanh": tf.nn.tanh}[cnn["activation"]]
    with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):
        table = tf.get_variable("char_embed", [cnn["n_characters"], dim])
        x, pooled = tf.nn.embedding_lookup(table, ids), []
        with tf.variable_scope("CNN"):
            for i, (span, number) in enumerate(cnn["filters"]):
                weight = tf.get_variable(f"W_cnn_{i}", [1, span, dim, number])
                bias = tf.get_variable(f"b_cnn_{i}", [number])
                y = tf.nn.conv2d(x, weight, strides=[1, 1, 1, 1], padding="VALID") + bias
                y = tf.nn.max_pool(y, [1, 1, longest - span + 1, 1], [1, 1, 1, 1], "VALID")
                pooled.append(tf.squeeze(activation(y), axis=[2]))
        n_filters = sum(number for _, number in cnn["filters"])
        x = tf.reshape(tf.concat(pooled, 2), [-1, n_filters])
        for i in range(cnn["n_highway"]):
            with tf.variable_scope(f"CNN_high_{i}"):
                carry, transform = (
                    tf.matmul(x, tf.get_variable(f"W_{gate}", [n_filters, n_filters]))
                    + tf.get_variable(f"b_{gate}", [n_filters])
                    for gate in ("carry", "transform")
                )
            carry = tf.nn.sigmoid(carry)
            x = carry * tf.nn.relu(transform) + (1.0 - carry) * x
        if n_filters != width:
            with tf.variable_scope("CNN_proj"):
                weight = tf.get_variable("W_proj", [n_filters, width])
                x = tf.matmul(x, weight) + tf.get_variable("b_proj", [width])
    return tf.reshape(x, [*ids.shape[:2], width])


def lstm(x, options):
    """Compute the top layer of one direction."""
    sizes, cells = options["lstm"], []
    projects = (
        {"num_proj": sizes["projection_dim"]} if sizes["projection_dim"] < sizes["dim"] else {}
    )
    for layer in range(sizes["n_layers"]):
        cell = tf.nn.rnn_cell.LSTMCell(
            sizes["dim"], cell_clip=sizes["cell_clip"], proj_clip=sizes["proj_clip"], **projects
        )
        if sizes["use_skip_connections"] and layer:
            cell = tf.nn.rnn_cell.ResidualWrapper(cell)
        cells.append(tf.nn.rnn_cell.DropoutWrapper(cell, input_keep_prob=1.0))
    cell = tf.nn.rnn_cell.MultiRNNCell(cells) if len(cells) > 1 else cells[0]
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype="float32")
    return tf.stack(outputs, axis=1)


def network(options, inputs):
    """Compute the loss and the outputs of each direction."""
    says, losses = {}, []
    directions = ["forward", "backward"] if options["bidirectional"] else ["forward"]
    shape = [options["n_tokens_vocab"], options["lstm"]["projection_dim"]]
    for k, direction in enumerate(directions):
        if "char_cnn" in options:
            x = characters(inputs[direction], options, reuse=k > 0)
        else:
            with tf.variable_scope(tf.get_variable_scope(), reuse=k > 0):
                table = tf.get_variable("embedding", shape)
            x = tf.nn.embedding_lookup(table, inputs[direction])
        if len(directions) > 1:
            with tf.variable_scope(f"RNN_{k}"):
                top = lstm(x, options)
        else:
            top = lstm(x, options)
        with tf.variable_scope("softmax", reuse=k > 0):
            shared = options.get("share_embedding_softmax")
            weight = table if shared else tf.get_variable("W", shape)
            logits = tf.einsum("btp,vp->btv", top, weight) + tf.get_variable("b", shape[:1])
        says |= {
            f"says:{direction}:token": x,
            f"says:{direction}:top": top,
            f"says:{direction}:log_softmax": tf.nn.log_softmax(logits),
        }
        losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(inputs["targets"], logits))
    return tf.reduce_mean(losses), says


def train(folder):
    """Run one training step and save the files that bilm-tf saves."""
    options = json.loads((folder / "options.json").read_text("utf8"))
    with np.load(folder / "inputs.npz") as file:
        inputs = dict(file)
    with tf.Graph().as_default():
        tf.set_random_seed(0)
        step = tf.get_variable(
            "global_step", [], initializer=tf.zeros_initializer(), trainable=False
        )
        with tf.variable_scope("lm", initializer=tf.random_normal_initializer(stddev=0.4)):
            loss, says = network(options, inputs)
        optimizer = tf.train.AdagradOptimizer(0.2, initial_accumulator_value=1.0)
        train_step = optimizer.minimize(20 * loss, global_step=step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train_step)
            saver = tf.train.Saver(tf.global_variables(), max_to_keep=2)
            saver.save(session, str(folder / "model.ckpt"), global_step=1)
            variables = {v.name.removesuffix(":0"): v for v in tf.global_variables()}
            values = session.run({**variables, **says})
    np.savez(folder / "outputs.npz", **values)


for name in sys.argv[1:]:
    train(Path(name))

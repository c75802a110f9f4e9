"""Conversion of bilm-tf's options.json to a `BiLMConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...bilm.config import BiLMConfig
from ..readers.options import OptionsReader

# Options that do not change the output of a trained model. The last two are in the options of the released checkpoint;
# no program uses them.
_TRAINING_ONLY = {
    "all_clip_norm_val", "batch_size", "dropout", "learning_rate", "n_epochs", "n_negative_samples_batch",
    "n_tokens_vocab", "n_train_tokens", "sample_softmax", "share_embedding_softmax", "unroll_steps",
    "char_cnn.projection_after_highway", "char_cnn.reverse",
}  # fmt: skip


def config_of(options: Mapping[str, Any], table_rows: int = 0) -> tuple[BiLMConfig, list[str]]:
    """Convert the options of a model to a configuration.

    Args:
        options: the content of options.json.
        table_rows: number of rows of the word embedding matrix; 0 if there is none. If the options contain
            neither `char_cnn` nor `n_tokens_vocab`, this is the number of words.

    Returns:
        The configuration, and notes for the user on missing options and on ignored options.

    Raises:
        ValueError: options are missing or invalid. The message names all these options.
    """
    reader = OptionsReader(options)
    if reader.value("bidirectional", default=True, silent=True) is False:
        reader.problems.append(
            "bidirectional = false (must be true: a model of one direction is not a biLM)"
        )
    fields: dict[str, Any] = {
        "dim": reader.whole("lstm.dim"),
        "projection": reader.whole("lstm.projection_dim"),
        "layers": reader.whole("lstm.n_layers", default=1),
        "cell_clip": reader.clip("lstm.cell_clip"),
        "proj_clip": reader.clip("lstm.proj_clip"),
        "skip": bool(reader.value("lstm.use_skip_connections", default=False)),
        # TensorFlow adds 1 to the forget gate at run time; the bias in the files does not include it.
        "forget_bias": 1.0,
    }
    if reader.value("char_cnn", default=None, silent=True):
        fields |= _character_fields(reader)
    else:
        fields["n_words"] = reader.whole("n_tokens_vocab", default=table_rows)
        reader.notes.append("the options have no char_cnn, so the model's input is words")
        if fields["n_words"] == 0:
            reader.problems.append(
                "char_cnn and n_tokens_vocab are both missing, and the weights have no word table `embedding`"
            )
    if reader.problems:
        raise ValueError("; ".join(reader.problems))
    return BiLMConfig(**fields), reader.notes + reader.ignored(_TRAINING_ONLY | {"lstm"})


def _character_fields(reader: OptionsReader) -> dict[str, Any]:
    count = reader.whole("char_cnn.n_characters", default=261)
    if count == 262:
        reader.notes.append(
            "char_cnn.n_characters = 262 is the value for inference; the 261 rows of the file are correct"
        )
    elif count != 261:
        reader.problems.append(
            f"char_cnn.n_characters = {count} (must be 261, or 262 for inference)"
        )
    activation = reader.value("char_cnn.activation")
    filters = reader.value("char_cnn.filters")
    if not isinstance(filters, list) or not all(map(_is_filter_group, filters)):
        reader.problems.append(
            f"char_cnn.filters = {filters!r:.60} (must be a list of [width, number])"
        )
    return {
        "char_dim": reader.whole("char_cnn.embedding.dim"),
        "filters": filters,
        "activation": activation,
        "highways": reader.whole("char_cnn.n_highway", default=0),
        "max_characters": reader.whole("char_cnn.max_characters_per_token", default=50),
    }


def _is_filter_group(group: Any) -> bool:
    return isinstance(group, list) and len(group) == 2 and all(type(n) is int for n in group)

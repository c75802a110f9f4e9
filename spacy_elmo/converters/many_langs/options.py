"""Conversion of ELMoForManyLangs' network configuration to a `BiLMConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...bilm.config import BiLMConfig
from ...bilm.words.alphabet import N_MARKS
from ..readers.options import OptionsReader

# Options that do not change the output of a trained model. The last three only matter for character input.
_UNUSED = {
    "dropout", "classifier", "classifier.name", "classifier.n_samples", "classifier.corr_dim",
    "token_embedder.activation", "token_embedder.filters", "token_embedder.n_highway",
}  # fmt: skip


def config_of(
    options: Mapping[str, Any], *, words: int, characters: int
) -> tuple[BiLMConfig, list[str]]:
    """Convert the options of a model to a configuration.

    Args:
        options: the content of the network configuration.
        words: number of rows of the word embedding matrix; 0 if there is no such matrix.
        characters: number of single characters with a row in the character embedding matrix.

    Returns:
        The configuration, and notes for the user on missing options and on ignored options.

    Raises:
        ValueError: options are missing or invalid, or the network is not a biLM. The message names all
            problems.
    """
    reader = OptionsReader(options)
    for part, known in (("token_embedder", "cnn"), ("encoder", "elmo")):
        name = reader.value(f"{part}.name")
        if name is not ... and str(name).lower() != known:
            reader.problems.append(f"{part}.name = {name!r:.60} (must be {known!r:.60})")
    word_dim, char_dim = (reader.whole(f"token_embedder.{d}") for d in ("word_dim", "char_dim"))
    if not (word_dim or char_dim):
        reader.problems.append(
            "token_embedder.word_dim and char_dim are both 0, so the model has no input"
        )
    fields: dict[str, Any] = {
        "dim": reader.whole("encoder.dim"),
        "projection": reader.whole("encoder.projection_dim"),
        "layers": reader.whole("encoder.n_layers"),
        "cell_clip": reader.clip("encoder.cell_clip"),
        "proj_clip": reader.clip("encoder.proj_clip"),
        "max_characters": reader.whole("token_embedder.max_characters_per_token"),
        # ELMoForManyLangs adds nothing to the forget gate, always projects, and always has residual connections.
        "forget_bias": 0.0,
        "square_projections": True,
        "skip": True,
    }
    if word_dim:
        fields |= {"n_words": words, "word_dim": word_dim}
    if char_dim:
        fields |= {
            "n_symbols": N_MARKS + characters,
            "char_dim": char_dim,
            "activation": reader.value("token_embedder.activation"),
            "filters": reader.value("token_embedder.filters"),
            "highways": reader.whole("token_embedder.n_highway"),
        }
    if reader.problems:
        raise ValueError("; ".join(reader.problems))
    return BiLMConfig(**fields), reader.notes + reader.ignored(_UNUSED)

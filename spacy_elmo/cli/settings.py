"""Settings of a command: a config file with overrides, as in spaCy (`--section.key value`), and the tokenizer."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confection import Config
from spacy.cli._util import NoSuchOption, parse_config_overrides
from spacy.util import load_config

if TYPE_CHECKING:
    from ..pretrain.config import Prepare, PretrainConfig

ACCEPTS_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Typer settings of a command that accepts overrides."""


def load_pretrain_config(
    path: Path, extra_args: list[str], *, training: bool = True
) -> PretrainConfig:
    """Load a pretraining config, apply the overrides of the command line, and validate it.

    Args:
        training: see `PretrainConfig.of`.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it cannot be parsed, a setting is unknown or invalid, or an argument is not a setting.
    """
    from ..pretrain.config import PretrainConfig

    if not path.is_file():
        raise FileNotFoundError(
            f"No config file at {path}. `python -m spacy elmo init-config --list` shows the shipped ones"
        )
    try:
        config = load_config(path, interpolate=False)
    except (configparser.Error, ValueError) as error:
        # The parser receives the text, not the file, and calls it "<string>".
        message = str(error).strip().replace("<string>", path.name)
        raise ValueError(f"{path} is not a valid config file: {message}") from error
    # The defaults of a section that is left out can be overridden as well.
    for section in PretrainConfig.model_fields:
        config.setdefault(section, {})
    try:
        overrides = parse_config_overrides(extra_args)
    except NoSuchOption as error:
        raise ValueError(
            f"{error.option_name} is neither an option of this command (see --help) nor a setting, which is written"
            " with its section: --training.max_steps 1000"
        ) from error
    return PretrainConfig.of(
        Config().from_str(config.to_str(), overrides=overrides), training=training
    )


def tokenizer_settings(card: Mapping[str, Any], lang: str | None, tokenized: bool) -> Prepare:
    """Return the tokenizer settings that the options name, or else those of the weights' card.

    Raises:
        ValueError: see `settings_of`.
    """
    from ..pretrain.config import Prepare
    from ..pretrain.scoring.evaluate import settings_of

    if tokenized:
        return Prepare(tokenized=True)
    return settings_of(card) if lang is None else Prepare(lang=lang)


def raw_text_files(config: PretrainConfig) -> dict[str, list[Path]]:
    """Return the files of each text that a pretraining config names.

    Raises:
        OSError, ValueError: see `text_files`.
    """
    from ..text.files import text_files

    sources = (config.paths.raw_text, config.paths.dev_text)
    return {source: text_files(source) for source in sources if source is not None}

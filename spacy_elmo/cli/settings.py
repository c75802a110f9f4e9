"""Config files on the command line, in spaCy's manners: `CONFIG --section.key value`."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import TYPE_CHECKING

from confection import Config
from spacy.cli._util import NoSuchOption, parse_config_overrides
from spacy.util import load_config

if TYPE_CHECKING:
    from ..pretrain.config import PretrainConfig

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Typer settings of a command that takes overrides."""


def read_settings(path: Path, extra_args: list[str], *, training: bool = True) -> PretrainConfig:
    """A checked pretraining config with the overrides of the command line.

    Args:
        training: as of `PretrainConfig.of`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it cannot be parsed, a setting is unknown or impossible, or an argument is no setting.
    """
    from ..pretrain.config import PretrainConfig

    if not path.is_file():
        raise FileNotFoundError(f"No config file at {path}; the repository's configs/ has examples")
    try:
        config = load_config(path, interpolate=False)
    except (configparser.Error, ValueError) as error:
        # The parser is given the text, not the file, and calls it "<string>".
        message = str(error).strip().replace("<string>", path.name)
        raise ValueError(f"{path} cannot be read as a config file: {message}") from error
    # A section that is left out holds its defaults, and they can be overridden as well.
    for section in PretrainConfig.model_fields:
        config.setdefault(section, {})
    try:
        overrides = parse_config_overrides(extra_args)
    except NoSuchOption as error:
        raise ValueError(
            f"{error.option_name} is neither an option of this command (--help lists them) nor a setting, which has its"
            " section before it: --training.max_steps 1000"
        ) from error
    return PretrainConfig.of(
        Config().from_str(config.to_str(), overrides=overrides), training=training
    )

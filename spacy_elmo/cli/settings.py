"""Settings of a command: overrides of a config file, as in spaCy (`--section.key value`), and the tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spacy.cli._util import NoSuchOption, parse_config_overrides

if TYPE_CHECKING:
    from ..pretraining.config import Prepare

ACCEPTS_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Typer settings of a command that accepts overrides."""


def config_overrides(extra_args: list[str]) -> dict[str, Any]:
    """Return the settings that the rest of a command line overrides, by "section.key".

    Raises:
        ValueError: an argument is not a setting.
    """
    try:
        return parse_config_overrides(extra_args)
    except NoSuchOption as error:
        raise ValueError(
            f"{error.option_name} is neither an option of this command (see --help) nor a setting, which is written"
            " with its section: --training.max_steps 1000"
        ) from error


def tokenizer_settings(card: Mapping[str, Any], lang: str | None, tokenized: bool) -> Prepare:
    """Return the tokenizer settings that the options name, or else those of the weights' card.

    Raises:
        ValueError: see `settings_of`.
    """
    from ..pretraining.config import Prepare
    from ..pretraining.perplexity import settings_of

    if tokenized:
        return Prepare(tokenized=True)
    return settings_of(card) if lang is None else Prepare(lang=lang)

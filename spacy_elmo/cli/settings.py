"""Settings from the command line: values that override a config file, and options of the tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spacy.cli._util import NoSuchOption, parse_config_overrides

if TYPE_CHECKING:
    from ..pretraining.config import Prepare

ACCEPTS_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Typer's `context_settings` for commands that accept overrides, such as `--training.max_steps 1000`."""


def config_overrides(extra_args: list[str]) -> dict[str, Any]:
    """Parse the overrides at the end of a command line, and return them as {"section.key": value}."""
    try:
        return parse_config_overrides(extra_args)
    except NoSuchOption as error:
        raise ValueError(
            f"This command has no option {error.option_name} (see --help). To override a setting of the config, write"
            " its section as well, for example --training.max_steps 1000"
        ) from error


def tokenizer_settings(card: Mapping[str, Any], lang: str | None, tokenized: bool) -> Prepare:
    """Return the tokenizer settings from the options `--lang` and `--tokenized`. If neither option is set,
    return the settings for the tokenizer that the model card of the weights names.
    """
    from ..pretraining.config import Prepare
    from ..pretraining.perplexity import settings_of

    if tokenized:
        return Prepare(tokenized=True)
    return settings_of(card) if lang is None else Prepare(lang=lang)

"""The pipeline se_elmo_giella. `spacy.load("se_elmo_giella")` calls `load`."""

from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.util import get_model_meta, load_model_from_init_py

__version__ = get_model_meta(Path(__file__).parent)["version"]


def load(**overrides: Any) -> Language:
    """Load the pipeline. The arguments are those of `spacy.load`."""
    return load_model_from_init_py(__file__, **overrides)

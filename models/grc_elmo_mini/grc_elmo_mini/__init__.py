"""The biLM grc_elmo_mini_v2 for spacy-elmo. spacy-elmo finds it through the entry point in pyproject.toml."""

from pathlib import Path

BILM = {
    "language": "grc",
    "path": Path(__file__).with_name("grc_elmo_mini_v2.safetensors"),
}

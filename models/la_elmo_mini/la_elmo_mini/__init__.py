"""The biLM la_elmo_mini_v2 for spacy-elmo. spacy-elmo finds it through the entry point in pyproject.toml."""

from pathlib import Path

BILM = {
    "language": "la",
    "path": Path(__file__).with_name("la_elmo_mini_v2.safetensors"),
}

"""The biLM de_elmo_mini_v3 for spacy-elmo. spacy-elmo finds it through the entry point in pyproject.toml."""

from pathlib import Path

BILM = {
    "language": "de",
    "path": Path(__file__).with_name("de_elmo_mini_v3.safetensors"),
}

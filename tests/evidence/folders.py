"""The folders of the evidence project."""

from pathlib import Path

EVIDENCE = Path(__file__).parents[2] / "evidence"

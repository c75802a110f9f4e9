"""Where the evidence project is."""

from pathlib import Path

EVIDENCE = Path(__file__).parents[2] / "evidence"

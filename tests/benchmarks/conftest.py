"""The benchmarks are scripts, which import what they share from the folders beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

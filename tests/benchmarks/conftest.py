"""The benchmarks are scripts, which import each other as modules of one folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

"""Put the folder of the benchmarks on the path, because they are scripts that import modules from it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

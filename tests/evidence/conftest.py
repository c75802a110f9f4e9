"""The evidence project is no package: its modules are found as they are there, in the folder that it runs in."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "evidence"))

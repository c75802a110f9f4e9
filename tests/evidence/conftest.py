"""The evidence project is no package, so its modules are imported from its folder, as when it runs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "evidence"))

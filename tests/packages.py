"""Installation of the packages in models/."""

import shutil
import subprocess
import sys
from pathlib import Path

MODELS = Path(__file__).parent.parent / "models"
# The packages of weights contain a weights file, the packages of pipelines a config.
WEIGHTS = sorted(file.parents[1] for file in MODELS.glob("*/*/*.safetensors"))
PIPELINES = sorted(file.parents[2] for file in MODELS.glob("*/*/*/config.cfg"))


def copy(package: Path, folder: Path) -> Path:
    """Return a copy of a package, because pip writes files where it builds."""
    return Path(shutil.copytree(package, folder / package.name))


def install(package: Path, site: Path) -> None:
    """Install a package with pip, but without a network, to a folder for `sys.path`."""
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(site)]
    command = [sys.executable, "-m", "pip", "install", *options, str(package)]
    subprocess.run(command, check=True, capture_output=True)

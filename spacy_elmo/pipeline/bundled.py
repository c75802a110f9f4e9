"""The weights that come with the package, and the way from a `weights` option to a file."""

from __future__ import annotations

from pathlib import Path

DEFAULT_WEIGHTS = "en_mini_v3"
FOLDER = Path(__file__).parent.parent / "weights"


def bundled_names() -> list[str]:
    """The names that `weights` understands, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def find_weights(weights: str) -> Path:
    """The file of a bundled biLM's name, or of a path. A name wins over a path that is spelt like it.

    Raises:
        FileNotFoundError: there is neither. It names what was tried and what is bundled.
    """
    bundled = FOLDER / f"{weights}.safetensors"
    if weights in bundled_names():
        return bundled
    path = Path(weights)
    if not path.exists():
        names = ", ".join(bundled_names()) or "none"
        raise FileNotFoundError(
            f"No biLM {weights!r}: there is no file {path.absolute()}, and it is not the name of a"
            f" bundled biLM (bundled: {names}). Give one of these, or the path of a .safetensors file"
        )
    return path

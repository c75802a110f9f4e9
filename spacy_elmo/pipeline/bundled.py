"""The weights files that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

DEFAULT_WEIGHTS = "en_mini_v3"
FOLDER = Path(__file__).parent.parent / "weights"


def bundled_names() -> list[str]:
    """Return the names of the bundled biLMs, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def find_weights(weights: str) -> Path:
    """Return the path of a weights file, given the name of a bundled biLM or a path. A name wins over an equal path.

    Raises:
        FileNotFoundError: there is neither. The message contains the path that was tried and the bundled names.
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

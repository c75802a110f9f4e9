"""Names of the weights that can be loaded: bundled weights, and weights in installed packages."""

from __future__ import annotations

import re
import warnings
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

AUTO = "auto"
"""Value of the option `weights` that selects the default biLM for the language of the pipeline."""
DEFAULT_WEIGHTS = "en_base_v2"
"""Name of the default biLM for English."""
ENTRY_POINTS = "spacy_elmo_weights"
"""Group of the Python entry points with which installed packages declare weights. The name of an entry point
is the name of the weights. The entry point refers to an object {"language": ..., "path": ...}."""
_FOREIGN = re.compile(r"\.(hdf5|h5|zip|tar|tar\.gz|tgz|pkl|th|pt|bin|ckpt|index|json)$")
"""Pattern for the suffixes of model files of other programs."""
_VERSIONED = re.compile(r"(?P<model>.+)_v(?P<version>[0-9]+)")
FOLDER = Path(__file__).parent / "weights"


def bundled_names() -> list[str]:
    """Return the names of the biLMs that are part of this package, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def installed_names(lang: str | None = None) -> list[str]:
    """Return the names of the weights for a language code (None: for any) in installed packages, sorted."""
    names = sorted({point.name for point in entry_points(group=ENTRY_POINTS)})
    return names if lang is None else [name for name in names if _language(name) == lang]


def known_names() -> list[str]:
    """Return the names of all bundled weights, followed by the names of all installed weights."""
    return bundled_names() + [name for name in installed_names() if name not in bundled_names()]


def default_weights(lang: str) -> str:
    """Return the name of the default biLM for a language: for English a bundled biLM, otherwise the newest version of
    the biLM that is installed for this language, if there is only one."""
    if lang == "en":
        return DEFAULT_WEIGHTS
    names = installed_names(lang)
    if newest := _newest(names):
        return newest
    if names:
        advice = f'Choose one of them, for example weights = "{names[0]}"'
    else:
        advice = "Weights for another language are only used if you name them"
    raise ValueError(f"{ways_to_weights(lang)}. {advice}")


def ways_to_weights(lang: str) -> str:
    """Return a text for an error message: the installed weights for a language, or how to get some."""
    if lang == "en":
        return f'The bundled biLM for English is weights = "{DEFAULT_WEIGHTS}"'
    if names := installed_names(lang):
        return f"Installed weights for the language {lang!r}: {', '.join(names)}"
    in_clone = sorted((FOLDER.parents[1] / "models").glob(f"{lang}_elmo_*"))
    package = (
        f"`python -m pip install {in_clone[0]}`" if in_clone else "docs/languages.md lists them"
    )
    return (
        f"No biLM for the language {lang!r} is installed. Install a package of weights, if there is one"
        f" ({package}). Or download a public biLM, which `python -m spacy elmo download` lists, and"
        " convert it. Or train a biLM on raw text: run `python -m spacy elmo init-config"
        f" {lang}.cfg --from pretrain_language`, then `python -m spacy elmo pretrain {lang}.cfg runs/{lang}"
        f" --prepare.lang {lang} --paths.raw_text TEXT`, and set weights ="
        f' "runs/{lang}/model-best.safetensors"'
    )


def find_weights(weights: str) -> Path:
    """Return the path of a weights file.

    Args:
        weights: name of a bundled biLM, name of an installed biLM, or path of a weights file. If several of
            them exist, the first in this order is used.
    """
    if weights in bundled_names():
        return FOLDER / f"{weights}.safetensors"
    if weights in installed_names():
        return Path(_declared(weights)["path"])
    path = Path(weights)
    if not path.exists():
        names = ", ".join(known_names()) or "none"
        if _FOREIGN.search(weights):
            advice = (
                "Convert a model of another program first: `python -m spacy elmo convert --help`"
            )
        elif _VERSIONED.fullmatch(weights):
            advice = "Packages of weights are installed by `python -m pip install FOLDER`"
        else:
            advice = "`python -m spacy elmo download` lists public models"
        raise FileNotFoundError(
            f"Cannot find the weights {weights!r}: there is no file {path.absolute()}, and no biLM of this name."
            f" Bundled and installed biLMs: {names}. {advice}"
        )
    if is_foreign(path) or path.is_dir():
        raise ValueError(
            f"{path} is not a weights file of spacy-elmo (.safetensors). If it is a model of another program, convert"
            f" it: `python -m spacy elmo convert auto {path} ours.safetensors`"
        )
    return path


def is_foreign(path: Path) -> bool:
    """Return True if the name of a file is that of a model of another program."""
    return _FOREIGN.search(path.name) is not None


def _newest(names: list[str]) -> str | None:
    """Return the name with the highest version, such as `base_v2` for `base_v1` and `base_v2`; None: there is no name,
    or the names belong to different models."""
    versions = [match for name in names if (match := _VERSIONED.fullmatch(name))]
    if len(versions) == len(names) and len({match["model"] for match in versions}) == 1:
        return max(versions, key=lambda match: int(match["version"]))[0]
    return names[0] if len(names) == 1 else None


def _language(name: str) -> str | None:
    """Return the language code of installed weights. If their package is damaged, warn and return None."""
    try:
        return str(_declared(name)["language"])
    except ValueError as error:
        warnings.warn(str(error), stacklevel=4)
        return None


def _declared(name: str) -> dict[str, Any]:
    """Return the language and the path that a package declares for the weights `name`."""
    point = next(iter(entry_points(group=ENTRY_POINTS, name=name)))
    try:
        declared = point.load()
        return {"language": declared["language"], "path": declared["path"]}
    except Exception as error:
        raise ValueError(
            f"The package of the weights {name!r} ({point.value}) is damaged: {error!r}. Install it again"
        ) from error

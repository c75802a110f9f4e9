"""The weights that are known by name: those of this package, and those of installed packages of weights."""

from __future__ import annotations

import re
import warnings
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

AUTO = "auto"
"""The value of `weights` that means the default biLM of the pipeline's language."""
DEFAULT_WEIGHTS = "en_base_v1"
"""The default biLM of English."""
ENTRY_POINTS = "spacy_elmo_weights"
"""Group of the entry points by which a package declares weights: NAME = an object {"language": ..., "path": ...}."""
_FOREIGN = re.compile(r"\.(hdf5|h5|zip|tar|tar\.gz|tgz|pkl|th|pt|bin|ckpt|index|json)$")
"""Ends of the names of files in which other programs keep a biLM."""
_VERSIONED = re.compile(r"(?P<model>.+)_v(?P<version>[0-9]+)")
FOLDER = Path(__file__).parent.parent / "weights"


def bundled_names() -> list[str]:
    """Return the names of the bundled biLMs, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def installed_names(lang: str | None = None) -> list[str]:
    """Return the names that installed packages of weights declare, sorted.

    Args:
        lang: only weights of this language.
    """
    names = sorted({point.name for point in entry_points(group=ENTRY_POINTS)})
    return names if lang is None else [name for name in names if _language(name) == lang]


def known_names() -> list[str]:
    """Return all names of weights: the bundled ones, then those of installed packages."""
    return bundled_names() + [name for name in installed_names() if name not in bundled_names()]


def default_weights(lang: str | None) -> str:
    """Return the name of the default biLM of a language.

    It is a bundled one for English; for another language the one that is installed, of several versions of it the
    newest.

    Args:
        lang: language of the pipeline; None: it is not known, as inside `spacy-elmo.ElmoTok2Vec.v1`.

    Raises:
        ValueError: the language is not known; or no biLM of it is installed, and the message names ways to get one; or
            several are that are not versions of one.
    """
    if lang is None:
        raise ValueError(
            f'weights = "{AUTO}" needs the language of a pipeline, which only the component elmo knows. Name the'
            f' weights, such as weights = "{DEFAULT_WEIGHTS}"'
        )
    if lang == "en":
        return DEFAULT_WEIGHTS
    names = installed_names(lang)
    if newest := _newest(names):
        return newest
    if names:
        advice = f'Name the one that you mean, such as weights = "{names[0]}"'
    else:
        advice = "Weights of another language are only used if they are named"
    raise ValueError(f"{ways_to_weights(lang)}. {advice}")


def ways_to_weights(lang: str) -> str:
    """Return a sentence for an error message: the installed weights of a language, or how to get some."""
    if lang == "en":
        return f'The bundled biLM of the language is weights = "{DEFAULT_WEIGHTS}"'
    if names := installed_names(lang):
        return f"Of the language {lang!r}, {' and '.join(names)} are installed"
    from .models import known_models

    public = [model.name for model in known_models().values() if lang in model.languages]
    download = f"; or `python -m spacy elmo download {public[0]}` and convert it" if public else ""
    return (
        f"No biLM of the language {lang!r} is installed. Install a package of one, if there is any (docs/languages.md"
        f" lists them){download}; or train one on raw text: `python -m spacy elmo init-config {lang}.cfg --from"
        f" pretrain_language`, then `python -m spacy elmo pretrain {lang}.cfg runs/{lang} --prepare.lang {lang}"
        f' --paths.raw_text TEXT`, and name the file: weights = "runs/{lang}/model-best.safetensors"'
    )


def find_weights(weights: str) -> Path:
    """Return the path of a weights file, given the name of a bundled or installed biLM or a path.

    A name has precedence over an equal path, and a bundled name over an installed one.

    Raises:
        FileNotFoundError: there is none of these. The message contains the path that was tried and the known names.
        ValueError: it is a file of another program, or the package that declares the name is damaged.
    """
    if weights in bundled_names():
        return FOLDER / f"{weights}.safetensors"
    if weights in installed_names():
        return Path(_declared(weights)["path"])
    path = Path(weights)
    if not path.exists():
        names = ", ".join(known_names()) or "none"
        raise FileNotFoundError(
            f"No biLM {weights!r}: there is no file {path.absolute()}, and it is not the name of a bundled or installed"
            f" biLM ({names}). {_way_to(weights)}"
        )
    if _FOREIGN.search(path.name) or path.is_dir():
        raise ValueError(
            f"{path} is no weights file of spacy-elmo (.safetensors). If it is a model of another program, convert it:"
            f" `python -m spacy elmo convert auto {path} ours.safetensors`"
        )
    return path


def _way_to(weights: str) -> str:
    """Return the way from what a user wrote, which is neither a name nor a file, to weights."""
    from .models import known_models

    if weights in known_models():
        return (
            f"It is a public model: `python -m spacy elmo download {weights}` fetches it and shows the command that"
            " converts it"
        )
    if _FOREIGN.search(weights):
        return "A model of another program must be converted: `python -m spacy elmo convert --help`"
    if _VERSIONED.fullmatch(weights):
        return "If it is the name of a package of weights, install that first: `python -m pip install FOLDER`"
    return "Use one of these, or the path of a .safetensors file"


def _newest(names: list[str]) -> str | None:
    """Return the name with the highest version, None if there is no name or the names are not those of one model."""
    if len(names) == 1:
        return names[0]
    versions = [match for name in names if (match := _VERSIONED.fullmatch(name))]
    if len(versions) < len(names) or len({match["model"] for match in versions}) != 1:
        return None
    return max(versions, key=lambda match: int(match["version"]))[0]


def _language(name: str) -> str | None:
    """Return the language of installed weights; None, with a warning, if their package is damaged: those of the other
    languages can be used all the same."""
    try:
        return str(_declared(name)["language"])
    except ValueError as error:
        warnings.warn(str(error), stacklevel=4)
        return None


def _declared(name: str) -> dict[str, Any]:
    """Return the language and the path that an installed package declares for a name."""
    point = next(iter(entry_points(group=ENTRY_POINTS, name=name)))
    try:
        declared = point.load()
        return {"language": declared["language"], "path": declared["path"]}
    except Exception as error:
        raise ValueError(
            f"The package that declares the weights {name!r} ({point.value}) is damaged: {error!r}. Install it again"
        ) from error

"""Function that writes a small Python package with a weights file. When the package is installed, the option
`weights = NAME` of the `elmo` component loads the file."""

from __future__ import annotations

import dataclasses
import keyword
import re
import sys
from pathlib import Path
from string import Template

import torch

from ..bilm.weights import Weights
from ..files import atomic_folder
from ..weight_names import ENTRY_POINTS, bundled_names
from .weights_readme import creative_commons, model_card

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_v[0-9]+")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?")

_PYPROJECT = Template("""\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "$version"
description = "A biLM for spacy-elmo: weights = \\"$name\\", language $language"
readme = "README.md"
license = "$licence"
dependencies = ["spacy-elmo"]

[project.entry-points.$group]
$name = "$module:BILM"

[tool.setuptools]
packages = ["$module"]
package-data = {$module = ["*.safetensors"]}
""")
_MODULE = Template('''\
"""The biLM $name for spacy-elmo. spacy-elmo finds it through the entry point in pyproject.toml."""

from pathlib import Path

BILM = {
    "language": "$language",
    "path": Path(__file__).with_name("$name.safetensors"),
}
''')


def write_package(
    weights: Weights,
    name: str,
    out: Path,
    *,
    version: str | None = None,
    head: bool = False,
    force: bool = False,
) -> Path:
    """Write a Python package that contains a weights file (in float16, without the softmax layer), a README
    and an entry point by which spacy-elmo finds the file.

    Args:
        weights: the biLM; its card must contain a language and a licence.
        name: the name that users write as `weights = NAME`. It must end with the version of the model, as in
            `la_elmo_mini_v1`. The name of the package is the part before the version.
        out: folder in which the package's folder is created.
        version: version of the package; None: the version at the end of `name`. For example, v1 becomes
            1.0.0.
        head: also write the weights with the head (softmax layer) to `head_file(name, out)`, in float16.
            Users need this file to continue the pretraining.
        force: replace an existing package folder and an existing file with the head.

    Returns:
        The package's folder, such as `out / "la_elmo_mini"`.

    Raises:
        ValueError: `name` is not like `la_elmo_mini_v1`; `name` is the name of a bundled biLM, or the name
            of the package is taken; `version` is no version of a Python package; the card has
            no licence or no language code; `limits` or `evaluation` in the card has a wrong format (see
            `model_card`); or `head` is true, but the biLM has no head.
        OSError: a file cannot be written; or `force` is false, but the package folder or the file with the
            head already exists.
    """
    distribution, _, model_version = name.rpartition("_v")
    version = version or f"{model_version}.0.0"
    _check(weights, name, version)
    if head and weights.build_head() is None:
        raise ValueError("The weights have no head to write: leave out `--head`")
    fields: dict[str, str] = {
        "name": name,
        "module": distribution,
        "distribution": distribution.replace("_", "-"),
        "version": version,
        "group": ENTRY_POINTS,
        "language": weights.card["language"],
        "licence": _licence_expression(str(weights.card["licence"])),
    }
    readme = model_card(name, weights.card, weights.config.spelling)
    packaged = _in_float16(weights.without_head())
    folder, with_head = out / distribution, head_file(name, out)
    for result in (folder, with_head) if head else (folder,):
        if result.exists() and not force:
            raise FileExistsError(f"{result} exists; to replace it, set force (`--force`)")
    out.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as partial:
        (partial / distribution).mkdir()
        for path, template in (
            ("pyproject.toml", _PYPROJECT),
            (f"{distribution}/__init__.py", _MODULE),
        ):
            (partial / path).write_text(template.substitute(fields), encoding="utf8")
        (partial / "README.md").write_text(readme, encoding="utf8")
        packaged.save(partial / distribution / f"{name}.safetensors")
    if head:
        _in_float16(weights).save(with_head)
    return folder


def head_file(name: str, out: Path) -> Path:
    """Return the path of the file with the weights and the head, which is next to the package folder."""
    return out / f"{name}_with_head.safetensors"


def _in_float16(weights: Weights) -> Weights:
    tensors = {key: tensor.to(torch.float16) for key, tensor in weights.tensors.items()}
    return dataclasses.replace(weights, tensors=tensors)


def _check(weights: Weights, name: str, version: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name for packaged weights. Use lower-case words joined by underscores, with the version of"
            " the model at the end, such as la_elmo_mini_v1"
        )
    module = name.rpartition("_v")[0]
    if module == "spacy_elmo" or keyword.iskeyword(module) or module in sys.stdlib_module_names:
        raise ValueError(
            f"{name!r} would be a package with the name {module!r}, which is taken: choose another name"
        )
    if not _VERSION.fullmatch(version):
        raise ValueError(
            f"{version!r} is no version of a Python package. Choose one such as 1.0.0 or 1.1rc1"
        )
    if name in bundled_names():
        raise ValueError(f"{name!r} is the name of a bundled biLM: choose another one")
    if missing := [field for field in ("language", "licence") if not weights.card.get(field)]:
        raise ValueError(
            f"The card of the weights has no {' and no '.join(missing)}, which users of a package must know. Set them"
            " with `--lang` and `--licence`"
        )
    if not _LANGUAGE.fullmatch(language := str(weights.card["language"])):
        raise ValueError(
            f"language = {language!r} in the card is no language code of two or three letters; set one with `--lang`"
        )


def _licence_expression(licence: str) -> str:
    """Convert the name of a licence to an SPDX expression such as CC-BY-SA-4.0, because pyproject.toml
    requires this format."""
    if known := creative_commons(licence):
        return known
    # A name without Latin letters would leave nothing.
    return "LicenseRef-" + (re.sub(r"[^A-Za-z0-9.]+", "-", licence).strip("-") or "other")

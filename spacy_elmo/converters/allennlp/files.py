"""Reader of the files of a trained AllenNLP model: parameters, configuration, and options of the ELMo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ...text.json_object import read_json_object
from ..bilm_tf.files import has_lstm, read_options
from ..readers.torch_file import read_state_dict

_WEIGHTS = ("weights.th", "best.th")
_CONFIG = "config.json"


@dataclass
class TrainedModel:
    """The content of the files of a trained AllenNLP model, unchanged."""

    weights_file: Path
    state: dict[str, Tensor]
    config_file: Path | None = None
    config: dict[str, Any] = field(default_factory=dict)
    """The content of config.json; empty if the model has no such file."""
    options_file: Path | None = None
    options: dict[str, Any] | None = None
    """The content of the options.json of the ELMo; None if the model has no such file."""

    @property
    def files(self) -> list[Path]:
        """The files that were read."""
        paths = [self.weights_file, self.config_file, self.options_file]
        return [path for path in paths if path is not None]


def read_files(source: str | Path, *, options: str | Path | None = None) -> TrainedModel:
    """Read the parameters, the configuration and the ELMo options of a trained AllenNLP model.

    Args:
        source: folder with the content of an archive: `config.json`, and `weights.th` or `best.th`. Or a file
            of parameters, with or without a `config.json` in its folder.
        options: ELMo options file (options.json). None: the file that the configuration names, if the folder
            contains this file; otherwise the only JSON file in the folder that has a section `lstm`. No
            file outside the folder is read, and nothing is downloaded.

    Raises:
        OSError: the folder or a file is missing or cannot be read.
        ValueError: the folder contains no file of parameters, or several files could be the options file.
        ValueError: a file is damaged.
    """
    path = Path(source)
    folder = path.parent if path.is_file() else path
    weights_file = path if path.is_file() else _weights_file(path)
    model = TrainedModel(weights_file, read_state_dict(weights_file))
    if (config_file := folder / _CONFIG).exists():
        model.config_file, model.config = config_file, read_json_object(config_file)
    model.options_file = Path(options) if options else _options_file(folder, model.config)
    if model.options_file is not None:
        model.options = read_options(model.options_file)
    return model


def recognize(source: str | Path) -> str | None:
    """Return the reason why a folder or file seems to be a trained AllenNLP model, or None. Raise no
    error."""
    path = Path(source)
    try:
        if path.is_file():
            return f"{path.name} is a file of parameters" if path.suffix == ".th" else None
        names = [name for name in (_CONFIG, *_WEIGHTS) if (path / name).is_file()]
    except OSError:  # a folder that may not be read
        return None
    return " and ".join(names) if set(names) & set(_WEIGHTS) else None


def settings(config: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    """Yield the path (with dots) and the value of each setting with the name `key`, at any depth of
    `config`."""
    sections: list[tuple[str, Any]] = [("", config)]
    while sections:
        path, section = sections.pop(0)
        entries = enumerate(section) if isinstance(section, list) else section.items()
        for name, value in entries:
            if name == key:
                yield f"{path}{name}", value
            if isinstance(value, list | dict):
                sections.append((f"{path}{name}.", value))


def _weights_file(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} does not exist. Give a trained model: its archive (model.tar.gz), its unpacked folder, or its"
            " file of parameters (.th)"
        )
    for name in _WEIGHTS:
        if (folder / name).exists():
            return folder / name
    others = ", ".join(path.name for path in sorted(folder.glob("*.th"))) or "none"
    raise ValueError(
        f"{folder} contains no {' or '.join(_WEIGHTS)}. Give the file of parameters instead of the folder (.th files"
        f" here: {others})"
    )


def _options_file(folder: Path, config: Mapping[str, Any]) -> Path | None:
    named = []
    for path, value in settings(config, "options_file"):
        # AllenNLP before 1.0 packed the files of a configuration into the archive, as `fta/` and the setting's path.
        inside = [folder / "fta" / path, folder / str(value)]
        named += [
            file
            for file in inside
            if file.is_file() and file.resolve().is_relative_to(folder.resolve())
        ][:1]
    files = list(dict.fromkeys(named)) or _with_lstm(folder)
    if len(files) > 1:
        names = ", ".join(str(file.relative_to(folder)) for file in files)
        raise ValueError(
            f"{folder} contains several files that could be the options: {names}. Choose one with options"
            " (`--options`)"
        )
    return files[0] if files else None


def _with_lstm(folder: Path) -> list[Path]:
    files = []
    for path in sorted(folder.glob("*.json")):
        try:
            files += [path] if has_lstm(path) else []
        except (ValueError, OSError):
            continue  # a file that cannot be read is not the options
    return files

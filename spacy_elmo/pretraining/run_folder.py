"""The output folder of a pretraining run. A run checks the folder before it writes there."""

from __future__ import annotations

import json
from pathlib import Path

from confection import Config

from ..files import atomic_file, remove_folder, remove_partial
from .config import PretrainConfig
from .corpus.prepared import DESCRIPTION

# config.cfg is not in this list, because a run that failed when it read its text leaves only this file.
_FILES = ("log.jsonl", "model-best.safetensors", "model-last.safetensors", "report.html")
_FOLDERS = ("checkpoint", "corpus")
_CONFIG = "config.cfg"
# Settings that may differ when a run is resumed: its limits, the frequency of its reports, and the number of processes
# of `prepare`, which changes no result. Also the learning rate: a diverged run is resumed with a lower one. And the
# path of the teacher, because the checkpoint contains a hash of the teacher.
_CHANGEABLE = (
    "max_steps", "max_epochs", "max_tokens", "max_minutes",
    "patience", "log_every", "eval_every", "save_every", "learn_rate", "n_process", "teacher",
)  # fmt: skip


def prepare_run_folder(
    out: Path, config: PretrainConfig, *, resume: bool = False, force: bool = False
) -> None:
    """Make `out` the folder of a new or resumed run, and write `config.cfg`. No file is deleted before all
    checks have passed.

    Args:
        resume: continue the run in `out`, if there is one.
        force: delete the old run in `out`.

    Raises:
        FileExistsError: `out` contains a run, but `resume` and `force` are both false; or `out` contains a
            folder or `config.cfg` that has the name of one of a run, but is not from a run.
        FileNotFoundError: the training text or the held-out text does not exist.
        ValueError: the run to resume has other settings (the message lists them), or the old run contains the
            corpus or the weights that the new run needs.
    """
    present = [name for name in (*_FILES, *_FOLDERS) if (out / name).exists()]
    _check_own(out, present)
    if present and not (resume or force):
        raise FileExistsError(
            f"{out} already contains a run ({', '.join(present)}). To continue it, set resume (`--resume`); to replace"
            " it, set force (`--force`)"
        )
    if present and resume and (out / _CONFIG).exists():
        _check_same(out / _CONFIG, config)
    if config.paths.corpus is None and not (resume and (out / "corpus").exists()):
        config.paths.text_files()
    old = [out / name for name in present] if force else []
    for name in ("corpus", "init", "teacher"):
        source = getattr(config.paths, name)
        if source is not None and any(
            Path(source).resolve().is_relative_to(path.resolve()) for path in old
        ):
            raise ValueError(
                f"paths.{name} = {source} belongs to the run in {out}, which force (`--force`) would delete. Copy"
                f" {source} to another folder, or choose another folder for the run"
            )
    out.mkdir(parents=True, exist_ok=True)
    for name in (*_FILES, *_FOLDERS, _CONFIG):
        remove_partial(out, name)
    for path in old:
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink()
    with atomic_file(out / _CONFIG) as partial:
        Config(config.model_dump()).to_disk(partial)


def corpus_folder(config: PretrainConfig, out: Path) -> Path:
    """Return the folder for the prepared corpus of a run, even if the folder does not exist yet."""
    return out / "corpus" if config.paths.corpus is None else Path(config.paths.corpus)


def _check_own(out: Path, present: list[str]) -> None:
    """Check that the subfolders of `out` that a run replaces or deletes were written by a run, and also
    `config.cfg`, if no other file of a run is present."""
    for folder, is_own in (
        ("corpus", lambda found: DESCRIPTION in found),
        ("checkpoint", lambda found: all(name.endswith(".pt") for name in found)),
    ):
        path = out / folder
        found = {file.name for file in path.glob("[!.]*")}
        if found and not is_own(found):
            raise FileExistsError(
                f"{path} contains files that are not from a run ({', '.join(sorted(found)):.100}), and the run would"
                " replace them. Choose another output folder"
            )
    if not present and (path := out / _CONFIG).exists():
        try:
            PretrainConfig.read(path)
        except (OSError, ValueError) as error:
            raise FileExistsError(
                f"{path} is not from a run of this version, and the run would replace it. Delete it, or choose another"
                f" output folder ({error})"
            ) from error


def _check_same(path: Path, config: PretrainConfig) -> None:
    try:
        before = _flat(PretrainConfig.read(path))
    except ValueError as error:
        raise ValueError(f"Cannot read {path}, the config of the run to resume: {error}") from error
    now = _flat(config)
    changed = [
        f"{name} = {now.get(name)!r}, was {before.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name) and name.rpartition(".")[2] not in _CHANGEABLE
    ]
    if changed:
        raise ValueError(
            f"{path.parent} contains a run with other settings. Restore them, or choose another folder:\n  "
            + "\n  ".join(changed)
        )


def _flat(config: PretrainConfig) -> dict[str, object]:
    # JSON turns tuples into lists, because the config that is read from a file has lists.
    sections = json.loads(json.dumps(config.model_dump()))
    return {
        f"{section}.{key}": value
        for section, keys in sections.items()
        for key, value in keys.items()
    }

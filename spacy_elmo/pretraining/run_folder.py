"""The output folder of a pretraining run. A run checks the folder before it writes there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from confection import Config

from ..files import atomic_file, flush_folder, remove_folder, remove_partial
from .config import PretrainConfig
from .corpus.prepared import DESCRIPTION

# config.cfg is not in this list, because a run that failed when it read its text leaves only this file.
_FILES = ("log.jsonl", "model-best.safetensors", "model-last.safetensors", "report.html")
_FOLDERS = ("checkpoint", "corpus")
_CONFIG = "config.cfg"
REPLACED = "replaced"
"""Name of the subfolder that keeps a replaced run until the new run is complete."""
# Settings that may differ when a run is resumed: its limits, the frequency of its reports, and the number of processes
# of `prepare`, which changes no result. Also the learning rate: a diverged run is resumed with a lower one. And the
# path of the teacher, because the checkpoint contains a hash of the teacher.
_CHANGEABLE = (
    "max_steps", "max_epochs", "max_tokens", "max_minutes",
    "patience", "log_every", "eval_every", "save_every", "learn_rate", "n_process", "teacher",
)  # fmt: skip


@dataclass(frozen=True)
class FolderReady:
    """Stage of a run: the folder of the run is locked and checked."""

    has_checkpoint: bool
    """True if the run continues from a checkpoint in the folder."""
    replaced: Path | None
    """The folder with the replaced run, which is kept until the new run is complete; None if no run was
    replaced."""


def prepare_run_folder(
    out: Path,
    config: PretrainConfig,
    *,
    resume: bool = False,
    force: bool = False,
) -> FolderReady:
    """Make `out` the folder of a new or resumed run, and write `config.cfg`. No file is deleted before all
    checks have passed.

    Args:
        resume: continue the run in `out`, if there is one.
        force: replace the old run in `out` by a new run. The old run is moved to `out/replaced`, and is
            deleted when the new run is complete. If `out/replaced` already contains a run, the run in `out`
            never finished. Then the run in `out` is deleted, and the run in `out/replaced` is kept.

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
    to_replace = [out / name for name in present] if force else []
    # `finish` deletes `replaced`.
    _check_sources(out, config, [*to_replace, out / REPLACED], resume=resume)
    out.mkdir(parents=True, exist_ok=True)
    for name in (*_FILES, *_FOLDERS, _CONFIG, REPLACED):
        remove_partial(out, name)
    if force and (present or (out / REPLACED).exists()):
        _set_aside(out)
    with atomic_file(out / _CONFIG) as partial:
        Config(config.model_dump()).to_disk(partial)
    return FolderReady(
        has_checkpoint=resume and has_checkpoint(out),
        replaced=out / REPLACED if (out / REPLACED).exists() else None,
    )


def corpus_folder(config: PretrainConfig, out: Path) -> Path:
    """Return the folder for the prepared corpus of a run, even if the folder does not exist yet."""
    return out / "corpus" if config.paths.corpus is None else Path(config.paths.corpus)


def has_checkpoint(out: Path) -> bool:
    """Return True if `out` contains a checkpoint. An empty folder `checkpoint`, which a killed run can leave,
    does not count."""
    return any((out / "checkpoint").glob("*.pt"))


def finish(out: Path) -> None:
    """Delete the replaced run in `out/replaced`, if there is one. Call this function when the run in `out` is
    complete."""
    if (out / REPLACED).exists():
        remove_folder(out / REPLACED)


def _set_aside(out: Path) -> None:
    """Move the files of the run in `out` to the subfolder `replaced`.

    If `replaced` already contains a file of the same name, the file in `out` is deleted instead.
    """
    replaced = out / REPLACED
    replaced.mkdir(exist_ok=True)
    for name in (*_FILES, *_FOLDERS, _CONFIG):
        path = out / name
        if not (replaced / name).exists():
            if path.exists():
                path.rename(replaced / name)
        elif path.is_dir():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)
    flush_folder(replaced)
    flush_folder(out)


def _check_own(out: Path, present: list[str]) -> None:
    """Check that the subfolders of `out` that a run replaces or deletes were written by a run, and also
    `config.cfg`, if no other file of a run is present."""
    for folder, is_own in (
        ("corpus", lambda found: DESCRIPTION in found),
        ("checkpoint", lambda found: all(name.endswith(".pt") for name in found)),
        (REPLACED, {*_FILES, *_FOLDERS, _CONFIG}.issuperset),
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


def _check_sources(
    out: Path, config: PretrainConfig, to_replace: list[Path], *, resume: bool
) -> None:
    """Check that the text of a run exists, and that the files to replace do not contain the corpus or the
    weights that the run needs."""
    paths = config.paths
    for name in ("corpus", "init", "teacher"):
        source = getattr(paths, name)
        if source is not None and any(
            Path(source).resolve().is_relative_to(p.resolve()) for p in to_replace
        ):
            raise ValueError(
                f"paths.{name} = {source} belongs to the run in {out}, which force (`--force`) would replace. Copy"
                f" {source} to another folder, or choose another folder for the run"
            )
    if paths.corpus is None and not (resume and (out / "corpus").exists()):
        paths.text_files()


def _check_same(path: Path, config: PretrainConfig) -> None:
    try:
        before = _flat(PretrainConfig.of(Config().from_disk(path)).model_dump())
    except ValueError as error:
        raise ValueError(f"Cannot read {path}, the config of the run to resume: {error}") from error
    now = _flat(config.model_dump())
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


def _flat(sections: dict[str, dict[str, object]]) -> dict[str, object]:
    # JSON turns tuples into lists, because the config that is read from a file has lists.
    sections = json.loads(json.dumps(sections))
    return {
        f"{section}.{key}": value
        for section, keys in sections.items()
        for key, value in keys.items()
    }

"""Folder to which `embed` writes vectors. A call of `embed` can resume an interrupted call, or replace
existing vectors.

A call that replaces complete vectors writes the new vectors to the subfolder `.new`. When the new vectors are
complete, the call moves them to the folder, and deletes the old vectors. If this move is interrupted, the
next call completes the move.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...digest import json_digest, with_digests
from ...files import atomic_write, flush_folder, remove_partial
from ...run_lock import LOCK
from ...text.json_object import read_json_object
from ..corpora.items import Shard
from .shard_file import ShardFile, shard_name
from .vectors import FORMAT, INDEX

_NEW = ".new"
_SETTINGS = "settings.json"
_SHARDS = "shard-*.safetensors"


class VectorFolder:
    """Folder to which a call of `embed` writes shard files. Each file stores the vectors of consecutive
    texts.

    An interrupted call can be resumed, because each file is written atomically and does not depend on other
    files. The resumed call computes only the missing files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = path
        """Folder for new files: `path`, or the subfolder `.new` while complete vectors in `path` are
        replaced."""
        self._count = 0

    def begin(self, settings: Mapping[str, Any], *, resume: bool, force: bool) -> None:
        """Create the folder if necessary, and write the file with the settings of the vectors.

        Args:
            settings: options of the vectors, path of the text, and fingerprint of the pipeline, in JSON
                types.
            resume: keep existing vectors.
            force: replace existing vectors. Other files stay.

        Raises:
            FileExistsError: the folder contains vectors, and neither `resume` nor `force` is set.
            FileExistsError: the path is a file, or a folder with other files but no vectors.
            ValueError: `resume` is set, but the existing vectors have other settings. The message names these
                settings.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"{self.path} is a file. Choose a new or empty folder")
        new = self.path / _NEW
        if (new / INDEX).exists():
            self._install()
        present = {p.name for p in self.path.glob("*") if p.suffix != ".partial"} - {LOCK}
        if _SETTINGS in present:
            if not (resume or force):
                raise FileExistsError(
                    f"{self.path} already contains vectors. To keep them and compute the rest, set resume (`--resume`)."
                    " To replace them, set force (`--force`)"
                )
            if force:
                shutil.rmtree(new, ignore_errors=True)
            if new.exists() or (force and INDEX in present):
                self._target = new
            elif force:
                self._delete()  # the old vectors are incomplete, so there is no reason to keep them
            before = self._target / _SETTINGS
            if before.exists():
                check_same_settings(self._target, read_json_object(before), settings)
        elif present:
            raise FileExistsError(
                f"{self.path} contains other files ({', '.join(sorted(present)[:3])}, ...). Choose a new or empty"
                " folder"
            )
        self._target.mkdir(parents=True, exist_ok=True)
        remove_partial(self._target)
        atomic_write(self._target / _SETTINGS, _json(settings))

    def missing(self, shards: Iterable[Shard]) -> Iterator[Shard]:
        """Yield the shards (groups of consecutive texts) that have no file in the folder yet.

        Raises:
            ValueError: the text of a shard has changed since the shard file was written.
        """
        for shard in shards:
            self._count += 1
            path = self._file(shard.number)
            if not path.exists():
                yield shard
            elif ShardFile(path).metadata["digest"] != shard.digest:
                raise ValueError(
                    f"The text of {shard.source} has changed since {path} was computed. Restore the text, or start"
                    " again with force (`--force`)"
                )

    def write(self, shard: Shard, content: bytes) -> dict[str, Any]:
        """Write the file of a shard, and return the dict that describes the file in the index (see
        `Vectors.files`)."""
        path = self._file(shard.number)
        atomic_write(path, content)
        return _entry(ShardFile(path))

    def finish(self) -> None:
        """Write the index file, which makes the vectors complete. Vectors in the subfolder `.new` then
        replace the old vectors.

        Call this method after all shards from `missing` have been written.

        Raises:
            ValueError: there are more shard files than shards, because text was removed from the corpus.
        """
        # The numbers of more than a million shards have more digits.
        files = sorted(self._target.glob(_SHARDS), key=lambda file: (len(file.name), file.name))
        if len(files) > self._count:
            raise ValueError(
                f"The text of {files[self._count]} has been removed. Restore the text, or start again with force"
                " (`--force`)"
            )
        path = self._target / INDEX
        index = {
            "format": FORMAT,
            "settings": {
                **read_json_object(self._target / _SETTINGS),
                "texts": texts_digest(ShardFile(file).metadata["digest"] for file in files),
            },
            "shards": [_entry(ShardFile(file)) for file in files],
        }
        atomic_write(path, _json(with_digests(index, path)))
        if self._target != self.path:
            self._install()

    def _install(self) -> None:
        """Move the complete vectors from the subfolder `.new` to the folder, and delete the old vectors. If a
        call is interrupted, call this method again."""
        new = self.path / _NEW
        shards = {entry["file"] for entry in read_json_object(new / INDEX)["shards"]}
        (self.path / INDEX).unlink(missing_ok=True)
        for file in [*new.glob(_SHARDS), new / _SETTINGS]:
            if file.exists():
                file.replace(self.path / file.name)
        for file in self.path.glob(_SHARDS):
            if file.name not in shards:
                file.unlink()
        flush_folder(self.path)
        (new / INDEX).replace(self.path / INDEX)
        flush_folder(self.path)
        shutil.rmtree(new)
        self._target = self.path

    def _delete(self) -> None:
        """Delete the vectors, and then the settings file. The settings file is last, because it identifies a
        folder of vectors."""
        for file in [self.path / INDEX, *self.path.glob(_SHARDS)]:
            file.unlink(missing_ok=True)
        (self.path / _SETTINGS).unlink(missing_ok=True)

    def _file(self, number: int) -> Path:
        return self._target / shard_name(number)


def texts_digest(digests: Iterable[str]) -> str:
    """Return one digest for the digests of all shards, in the order of the corpus."""
    return json_digest(list(digests))


def check_same_settings(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a resumed call of `embed` has the same settings (`now`) as the existing vectors (`before`).

    Args:
        path: path of the vectors, for the error message.

    Raises:
        ValueError: some settings are different. The message names these settings.
    """
    changed = [
        f"{name} = {now.get(name)!r}, was {before.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"{path} contains vectors with other settings. Use the same settings, or write to another path:\n  "
            + "\n  ".join(changed)
        )


def _entry(shard: ShardFile) -> dict[str, Any]:
    names = ("source", "first", "items", "rows")
    return {"file": shard.path.name, **{name: shard.metadata[name] for name in names}}


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf8")

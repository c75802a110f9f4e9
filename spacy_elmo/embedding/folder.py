"""The folder of vectors while `embed` writes it: resuming, replacing, finishing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..corpora.items import Shard
from ..files import atomic_write, remove_partial
from ..text.json_object import read_json_object
from .shard_file import ShardFile
from .vectors import FORMAT, INDEX, index_digest

_SETTINGS = "settings.json"
_SHARDS = "shard-*.safetensors"


class VectorFolder:
    """Folder of shard files that an `embed` run fills.

    Each file is written atomically, and each shard depends on its items alone. So a run that was killed at any moment
    is resumed by computing the missing shards, and its files equal those of an uninterrupted run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0

    def begin(self, settings: Mapping[str, Any], *, resume: bool, force: bool) -> None:
        """Make the folder, and write the settings into it.

        Args:
            resume: keep the vectors in the folder, if there are any.
            force: delete them (these files, and nothing else).

        Raises:
            FileExistsError: there are vectors, and neither `resume` nor `force` is set; or other files.
            ValueError: the vectors to keep have other settings; the message names each.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"{self.path} is a file; choose a folder that is new or empty")
        present = {path.name for path in self.path.glob("*") if path.suffix != ".partial"}
        if _SETTINGS in present:
            if not (resume or force):
                raise FileExistsError(
                    f"{self.path} contains vectors already; --resume keeps them and computes the rest,"
                    " --force deletes them"
                )
            if resume:
                check_same_settings(self.path, read_json_object(self.path / _SETTINGS), settings)
            else:
                self.delete()
        elif present:
            raise FileExistsError(
                f"{self.path} contains other files ({', '.join(sorted(present)[:3])}, ...); choose a folder that is new"
                " or empty"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        remove_partial(self.path)
        atomic_write(self.path / _SETTINGS, _json(settings))

    def missing(self, shards: Iterable[Shard]) -> Iterator[Shard]:
        """Yield the shards that have no file.

        Raises:
            ValueError: an existing file was made from other text.
        """
        for shard in shards:
            self._count += 1
            path = self._file(shard.number)
            if not path.exists():
                yield shard
            elif ShardFile(path).metadata["digest"] != shard.digest:
                raise ValueError(
                    f"{path} was made from other text than {shard.source} contains now. Restore the text, or start"
                    " again with --force"
                )

    def write(self, shard: Shard, content: bytes) -> dict[str, Any]:
        """Write a shard's file, and return its entry of the index."""
        path = self._file(shard.number)
        atomic_write(path, content)
        return _entry(ShardFile(path))

    def finish(self) -> None:
        """Write the index, once `missing` is exhausted and each of its shards is written.

        Raises:
            ValueError: there are more shard files than shards, because the text has become shorter.
        """
        files = sorted(self.path.glob(_SHARDS))
        if len(files) > self._count:
            raise ValueError(
                f"{files[self._count]} was made from text that has been removed. Restore the text, or start again with"
                " --force"
            )
        index = {
            "format": FORMAT,
            "settings": read_json_object(self.path / _SETTINGS),
            "shards": [_entry(ShardFile(file)) for file in files],
        }
        atomic_write(self.path / INDEX, _json({**index, "digest": index_digest(index)}))

    def delete(self) -> None:
        """Delete the vectors, if there are any, and the folder if it is empty then.

        The settings are deleted last: until then they mark the files as vectors of this folder.
        """
        if not self.path.is_dir():
            return
        for file in [self.path / INDEX, *self.path.glob(_SHARDS)]:
            file.unlink(missing_ok=True)
        remove_partial(self.path)
        (self.path / _SETTINGS).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _file(self, number: int) -> Path:
        return self.path / f"shard-{number:06}.safetensors"


def check_same_settings(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that existing vectors have the settings of the run that is to resume them.

    Raises:
        ValueError: a setting differs; the message names each.
    """
    changed = [
        f"{name} = {now.get(name)!r}, was {before.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"{path} contains vectors with other settings; restore these settings, or write to another place:\n  "
            + "\n  ".join(changed)
        )


def _entry(shard: ShardFile) -> dict[str, Any]:
    names = ("source", "first", "items", "rows")
    return {"file": shard.path.name, **{name: shard.metadata[name] for name in names}}


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf8")

"""A folder of vectors while it is being written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..corpora.items import Shard
from ..files import atomic_write, remove_partial
from .shard_file import ShardFile
from .vectors import FORMAT, INDEX

_SETTINGS = "settings.json"
_SHARDS = "shard-*.safetensors"


class VectorFolder:
    """Shards that are there, and those that are missing.

    A file appears whole or not at all, and each shard follows from its items alone: so a run that was killed anywhere
    goes on by computing what is missing, and its files are those of an unbroken one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0

    def claim(self, settings: Mapping[str, Any], *, resume: bool, force: bool) -> bool:
        """Make the folder, and write down the settings.

        Args:
            resume: go on with the vectors that are there, if any.
            force: delete them (these files, and nothing else).

        Returns:
            Whether there are shards to go on with.

        Raises:
            FileExistsError: there are vectors, and neither was said; or something else.
            ValueError: those to go on with have other settings; names each.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"{self.path} is a file; choose a folder, new or empty")
        present = {path.name for path in self.path.glob("*") if path.suffix != ".partial"}
        if _SETTINGS in present:
            if not (resume or force):
                raise FileExistsError(
                    f"{self.path} holds vectors already. --resume goes on with them, --force deletes them"
                )
            if resume:
                check_same(
                    self.path, json.loads((self.path / _SETTINGS).read_text("utf8")), settings
                )
            else:
                self.delete()
        elif present:
            raise FileExistsError(
                f"{self.path} holds other files ({', '.join(sorted(present)[:3])}, ...); choose a folder, new or empty"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        remove_partial(self.path)
        atomic_write(self.path / _SETTINGS, _json(settings))
        return any(self.path.glob(_SHARDS))

    def missing(self, shards: Iterable[Shard]) -> Iterator[Shard]:
        """Those shards that have no file.

        Raises:
            ValueError: a file was made of other text.
        """
        for shard in shards:
            self._count += 1
            path = self._file(shard.number)
            if not path.exists():
                yield shard
            elif ShardFile(path).about["digest"] != shard.digest:
                raise ValueError(
                    f"{path} was made of other text than {shard.source} has now. Give the text as it was, or begin anew"
                    " with --force"
                )

    def write(self, shard: Shard, content: bytes) -> dict[str, Any]:
        """Add a shard; what the index will say of it."""
        path = self._file(shard.number)
        atomic_write(path, content)
        return _entry(ShardFile(path))

    def finish(self) -> None:
        """Write the index, when `missing` has come to its end and each of its shards is written.

        Raises:
            ValueError: there are more, of a text that was longer.
        """
        files = sorted(self.path.glob(_SHARDS))
        if len(files) > self._count:
            raise ValueError(
                f"{files[self._count]} was made of text that is no longer there. Give the text as it was, or begin anew"
                " with --force"
            )
        index = {
            "format": FORMAT,
            "settings": json.loads((self.path / _SETTINGS).read_text("utf8")),
            "shards": [_entry(ShardFile(file)) for file in files],
        }
        atomic_write(self.path / INDEX, _json(index))

    def delete(self) -> None:
        """Remove the vectors, if there are any, and the folder if nothing else is in it. The settings go last: until
        then they say whose the files are."""
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


def check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare the settings of vectors that are there with those of a command that is to go on with them.

    Raises:
        ValueError: naming each that differs.
    """
    changed = [
        f"{name} = {now.get(name)!r}, was {before.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"{path} holds vectors with other settings; set them back, or write elsewhere:\n  "
            + "\n  ".join(changed)
        )


def _entry(shard: ShardFile) -> dict[str, Any]:
    names = ("source", "first", "items", "rows")
    return {"file": shard.path.name, **{name: shard.about[name] for name in names}}


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf8")

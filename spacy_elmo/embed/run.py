"""A corpus to vectors on disk: from its first file read to the last one written."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from spacy.language import Language

from ..corpora.items import Shard, corpus_files, shards
from ..corpora.pipelines import identity
from ..files import atomic_file, remove_partial
from .embedder import Embedder, EmbedOptions
from .folder import VectorFolder, check_same
from .vectors import open_vectors

Format: TypeAlias = Literal["safetensors", "hdf5", "parquet"]
Engine: TypeAlias = Callable[
    [Language, EmbedOptions, Iterable[Shard]], Iterator[tuple[Shard, bytes]]
]

_EVERYTHING = EmbedOptions()


def embed_here(
    nlp: Language, wanted: EmbedOptions, shards: Iterable[Shard]
) -> Iterator[tuple[Shard, bytes]]:
    """The shards and the content of their files, computed one after the other in this process."""
    embedder = Embedder(nlp, wanted)
    for shard in shards:
        yield shard, embedder(shard)


def embed(
    nlp: Language,
    text: str,
    out: str | Path,
    wanted: EmbedOptions = _EVERYTHING,
    *,
    tokenized: bool = False,
    format: Format = "safetensors",
    engine: Engine = embed_here,
    resume: bool = False,
    force: bool = False,
) -> Iterator[Mapping[str, Any]]:
    """Write the vectors of a corpus, in memory that does not grow with it.

    With `format` "safetensors" `out` is a folder for `open_vectors`. With any other it is a file, for which such a
    folder is made first, beside it (`OUT.parts`), and removed when the file is complete: for a while both are there.

    Args:
        nlp: with an elmo.
        text: file, directory or glob pattern, as of `corpus_files`.
        tokenized: texts are words separated by spaces.
        engine: how shards become the content of their files; in any order.
        resume: go on with what a run with the same arguments has left; all is then as if it had never stopped.
        force: delete what is there.

    Yields:
        The entry of each shard in `Vectors.files`, when it is written. Those that are there do not count.

    Raises:
        FileExistsError: there is something already, and neither `resume` nor `force` was said.
        IsADirectoryError: `out` is a folder, and the format is one file.
        FileNotFoundError: there is no text.
        ValueError: other settings or text than those of what is there; a file or line that cannot be read; no elmo.
    """
    out = Path(out)
    if resume and force:
        raise ValueError(
            "--resume goes on with the vectors in OUT and --force deletes them: choose one"
        )
    join = _file_format(format)
    settings = {
        "text": text,
        "tokenized": tokenized,
        **dataclasses.asdict(wanted),
        **identity(nlp),
    }
    found = shards(corpus_files(text), tokenized=tokenized)
    # What a typing mistake can spoil comes before anything is written.
    first = next(found, None)
    if first is None:
        raise ValueError(f"Nothing in the text of {text!r}")
    if join is not None and out.is_dir():
        raise IsADirectoryError(f"{out} is a folder; {format} is one file, to be called otherwise")
    folder = VectorFolder(out if join is None else out.with_name(f"{out.name}.parts"))
    if join is not None and out.exists() and not force:
        if not resume:
            raise FileExistsError(f"{out} exists; --force overwrites it")
        check_same(out, join.read_settings(out), settings)
        folder.delete()
        return
    folder.claim(settings, resume=resume, force=force)
    if join is not None:
        out.unlink(missing_ok=True)
    for shard, content in engine(nlp, wanted, folder.missing(itertools.chain([first], found))):
        yield folder.write(shard, content)
    folder.finish()
    if join is not None:
        _write_file(join, folder, out)
        folder.delete()


def _file_format(format: Format) -> Any:
    """The module that writes and reads such a file; None for a folder."""
    try:
        if format == "hdf5":
            from . import hdf5

            return hdf5
        if format == "parquet":
            from . import parquet

            return parquet
    except ImportError as error:
        extra = {"hdf5": "h5", "parquet": "parquet"}[format]
        raise ValueError(f"{format} needs `pip install spacy-elmo[{extra}]` ({error})") from error
    return None


def _write_file(join: Any, folder: VectorFolder, out: Path) -> None:
    remove_partial(out.parent, out.name)
    with atomic_file(out) as partial:
        join.write(open_vectors(folder.path), partial)

"""`spacy_elmo.embed`: from the text files of a corpus to the vectors on disk."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from spacy.language import Language

from ..corpora.items import Shard, corpus_files, read_shards
from ..corpora.pipelines import LayerSelection, fingerprint
from ..files import atomic_file, remove_partial
from ..run_lock import lock
from .embedder import Embedder, EmbedOptions, Pooling, VectorDType
from .folder import VectorFolder, check_same_settings
from .vectors import Vectors, open_vectors

VectorFormat: TypeAlias = Literal["safetensors", "hdf5", "parquet"]
Engine: TypeAlias = Callable[
    [Language, EmbedOptions, Iterable[Shard]], Iterator[tuple[Shard, bytes]]
]
"""Function that computes the contents of shard files, in any order."""

_DEFAULTS = EmbedOptions()


class _FileFormat(NamedTuple):
    """Functions of a format in which the vectors are one file."""

    write: Callable[[Vectors, Path], None]
    read_settings: Callable[[Path], Mapping[str, Any]]


def embed_here(
    nlp: Language, options: EmbedOptions, shards: Iterable[Shard]
) -> Iterator[tuple[Shard, bytes]]:
    """Yield the shards and the contents of their files, computed one after the other in this process."""
    embedder = Embedder(nlp, options)
    for shard in shards:
        yield shard, embedder(shard)


def embed(
    nlp: Language,
    text: str | Path,
    out: str | Path,
    *,
    layers: LayerSelection = "all",
    dtype: VectorDType = "float32",
    pooling: Pooling | None = None,
    tokenized: bool = False,
    format: VectorFormat = "safetensors",
    resume: bool = False,
    force: bool = False,
) -> None:
    """Write the vectors of a corpus to disk, in memory that does not grow with the corpus.

    It does what `python -m spacy elmo embed` does. `open_vectors(out)` opens what it has written by default.

    With `format` "safetensors" `out` is a folder for `open_vectors`. With any other it is a file, for which such a
    folder is written first, beside it (`OUT.parts`), and deleted when the file is complete: for a while both exist.

    Args:
        nlp: a pipeline with an elmo; the components after elmo do not run.
        text: file, directory or glob pattern. A line, a record, a Doc or a sentence of it is an item.
        out: folder to write; with another `format` than "safetensors" a file.
        layers: layers to keep: "all", their "average", or the "top" one.
        dtype: number type of the vectors.
        pooling: pooling to one vector per item, over its non-whitespace tokens; None: one vector per token.
        tokenized: texts are words separated by spaces.
        format: "safetensors" for `open_vectors`; "hdf5" in the layout of `allennlp elmo`; or "parquet".
        resume: continue an interrupted call with the same arguments; the result equals that of an uninterrupted one.
        force: replace existing vectors, which are deleted when the new ones are complete.

    Raises:
        BlockingIOError: another run is writing to `out`.
        FileExistsError: `out` exists, and neither `resume` nor `force` is set.
        IsADirectoryError: `out` is a folder, and the format is one file.
        FileNotFoundError: there is no text.
        ValueError: existing vectors have other settings or text; a file or line cannot be read; there is no elmo.
    """
    shards = embed_shards(
        nlp, str(text), out, EmbedOptions(layers, dtype, pooling), tokenized=tokenized, format=format,
        resume=resume, force=force,
    )  # fmt: skip
    for _ in shards:
        pass


def embed_shards(
    nlp: Language,
    text: str,
    out: str | Path,
    options: EmbedOptions = _DEFAULTS,
    *,
    tokenized: bool = False,
    format: VectorFormat = "safetensors",
    engine: Engine = embed_here,
    resume: bool = False,
    force: bool = False,
) -> Iterator[Mapping[str, Any]]:
    """Write the vectors of a corpus as `embed` does, step by step.

    Args:
        options: the layers to keep, the number type, and pooling.
        engine: function that computes the contents of shard files.

    Yields:
        The entry of each shard in `Vectors.files`, when it is written. Shards of an earlier run are not repeated.

    Raises:
        OSError, ValueError: see `embed`.
    """
    out = Path(out)
    if resume and force:
        raise ValueError(
            "resume (`--resume`) keeps the vectors in OUT and force (`--force`) replaces them; set one of them"
        )
    file_format = _file_format(format)
    settings = {
        "text": text,
        "tokenized": tokenized,
        **dataclasses.asdict(options),
        **fingerprint(nlp),
    }
    shards = read_shards(corpus_files(text), tokenized=tokenized)
    # Mistakes in the arguments are detected before anything is written.
    first = next(shards, None)
    if first is None:
        raise ValueError(f"The text of {text!r} is empty; there is nothing to embed")
    if file_format is not None and out.is_dir():
        raise IsADirectoryError(
            f"{out} is a folder; {format} is one file, choose another name for it"
        )
    if file_format is None and not out.exists():
        out.mkdir(parents=True)  # the lock is inside a folder
    with lock(out):
        folder = VectorFolder(out if file_format is None else out.with_name(f"{out.name}.parts"))
        if file_format is not None and out.exists() and not force:
            if not resume:
                raise FileExistsError(f"{out} exists; to overwrite it, set force (`--force`)")
            # Parts beside a file are those of the run that was to replace it.
            if not folder.path.exists():
                check_same_settings(out, file_format.read_settings(out), settings)
                return
        folder.begin(settings, resume=resume, force=force)
        missing = folder.missing(itertools.chain([first], shards))
        for shard, content in engine(nlp, options, missing):
            yield folder.write(shard, content)
        folder.finish()
        if file_format is not None:
            _write_file(file_format, folder, out)


def _file_format(format: VectorFormat) -> _FileFormat | None:
    """Return the functions of a format; None for a folder."""
    try:
        if format == "hdf5":
            from .hdf5 import read_hdf5_settings, write_hdf5

            return _FileFormat(write_hdf5, read_hdf5_settings)
        if format == "parquet":
            from .parquet import read_parquet_settings, write_parquet

            return _FileFormat(write_parquet, read_parquet_settings)
    except ImportError as error:
        extra = {"hdf5": "h5", "parquet": "parquet"}[format]
        raise ValueError(f"{format} needs `pip install spacy-elmo[{extra}]` ({error})") from error
    return None


def _write_file(file_format: _FileFormat, folder: VectorFolder, out: Path) -> None:
    remove_partial(out.parent, out.name)
    with atomic_file(out) as partial:
        file_format.write(open_vectors(folder.path), partial)
    remove_partial(out.parent, folder.path.name)
    folder.discard()

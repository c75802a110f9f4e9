"""Implementation of `spacy_elmo.embed`, which writes the vectors of a corpus to disk."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from spacy.language import Language

from ...files import atomic_file, remove_folder, remove_partial
from ...run_lock import lock
from ..corpora.items import Shard, corpus_files, read_shards
from ..corpora.pipelines import LayerSelection, fingerprint
from .embedder import Embedder, EmbedOptions, Pooling, VectorDType
from .folder import VectorFolder, check_same_settings, texts_digest
from .vectors import Vectors, open_vectors

VectorFormat: TypeAlias = Literal["safetensors", "hdf5", "parquet"]
Engine: TypeAlias = Callable[
    [Language, EmbedOptions, Iterable[Shard]], Iterator[tuple[Shard, bytes]]
]
"""Type of a function that computes the vectors of shards (groups of consecutive texts). The function yields
pairs in any order: a shard, and the content of the shard file."""

_DEFAULTS = EmbedOptions()


class _FileFormat(NamedTuple):
    """Functions for a format that stores all vectors in one file: `write` writes the vectors, and
    `read_settings` reads the settings with which they were computed."""

    write: Callable[[Vectors, Path], None]
    read_settings: Callable[[Path], Mapping[str, Any]]


def embed_here(
    nlp: Language, options: EmbedOptions, shards: Iterable[Shard]
) -> Iterator[tuple[Shard, bytes]]:
    """Compute the vectors of shards (groups of consecutive texts) in this process, one shard after the other.

    Yields:
        A shard, and the content of the file with its vectors.
    """
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
    """Write the vectors of a corpus to disk. Memory never holds the vectors of the whole corpus.

    This function does the same as `python -m spacy elmo embed`. With the default format, `open_vectors(out)`
    opens the result.

    With `format` "safetensors", `out` is a folder. With the other formats, `out` is a file, and the vectors
    are first written to a folder with the name of the file plus ".parts". When the file is complete, this
    folder is deleted. So the disk must have space for the folder and the file.

    Args:
        nlp: a pipeline with an elmo component. The components after elmo do not run.
        text: file, folder or glob pattern. An item of the corpus is a line, a JSON record, a Doc or a
            sentence, depending on the type of file.
        out: folder to write; with `format` "hdf5" or "parquet", file to write.
        layers: layers to write: "all", their "average", or the "top" layer.
        dtype: data type of the vectors.
        pooling: "mean" or "max": write one vector per item, the mean or maximum of the vectors of all tokens
            that are not whitespace. None: write one vector per token.
        tokenized: True if the texts are already tokenized, with spaces between the tokens.
        format: "safetensors" for `open_vectors`, "hdf5" in the layout of `allennlp elmo`, or "parquet".
        resume: continue an interrupted call with the same arguments. The result is the same as without
            interruption.
        force: replace existing vectors. Complete vectors are only deleted when the new vectors are complete.

    Raises:
        BlockingIOError: another call is writing to `out`.
        FileExistsError: `out` contains vectors, and neither `resume` nor `force` is set; or `out` is a folder
            with other files.
        IsADirectoryError: `out` is a folder, but `format` needs a file.
        FileNotFoundError: `text` matches no file.
        ValueError: an argument has an unknown value, the text is empty or cannot be read, the pipeline has no
            elmo component, or the existing vectors have other settings or another text.
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
    """Write the vectors of a corpus as `embed` does, in shards (groups of consecutive texts). Report each
    shard after its file has been written.

    Args:
        options: layers, data type and pooling of the vectors.
        engine: function that computes the vectors of the shards.

    Yields:
        A dict for each shard that this call has written. `Vectors.files` describes the keys of the dict.

    Raises:
        OSError, ValueError: see `embed`.
    """
    out = Path(out)
    if resume and force:
        raise ValueError(
            "resume (`--resume`) keeps the vectors in OUT, and force (`--force`) replaces them. Set only one of them"
        )
    file_format = _file_format(format)
    settings = {
        "text": text,
        "tokenized": tokenized,
        **dataclasses.asdict(options),
        **fingerprint(nlp),
    }
    shards = read_shards(corpus_files(text), tokenized=tokenized)
    # Detect mistakes in the arguments before anything is written.
    first = next(shards, None)
    if first is None:
        raise ValueError(f"The text {text!r} is empty, so there is nothing to embed")
    if file_format is not None and out.is_dir():
        raise IsADirectoryError(
            f"{out} is a folder, but the format {format} writes a file. Choose another name"
        )
    if file_format is None and not out.exists():
        out.mkdir(parents=True, exist_ok=True)  # the lock is inside a folder
    with lock(out):
        folder = VectorFolder(out if file_format is None else out.with_name(f"{out.name}.parts"))
        if file_format is not None and out.exists() and not force:
            if not resume:
                raise FileExistsError(
                    f"{out} already exists. To overwrite it, set force (`--force`)"
                )
            # If there are parts and a file, an interrupted run was replacing the file.
            if not folder.path.exists():
                before = dict(file_format.read_settings(out))
                digest = before.pop("texts", None)
                check_same_settings(out, before, settings)
                if digest != texts_digest(s.digest for s in itertools.chain([first], shards)):
                    raise ValueError(
                        f"The text {text!r} has changed since {out} was written. Restore the text, or start again with"
                        " force (`--force`)"
                    )
                return
        folder.begin(settings, resume=resume, force=force)
        missing = folder.missing(itertools.chain([first], shards))
        for shard, content in engine(nlp, options, missing):
            yield folder.write(shard, content)
        folder.finish()
        if file_format is not None:
            _write_file(file_format, folder, out)


def _file_format(format: VectorFormat) -> _FileFormat | None:
    """Return the functions that write and read a file format. Return None for "safetensors", because this
    format is a folder."""
    if format not in (formats := get_args(VectorFormat)):
        raise ValueError(f"format = {format!r}: it must be one of {formats}")
    try:
        if format == "hdf5":
            from .hdf5 import read_hdf5_settings, write_hdf5

            return _FileFormat(write_hdf5, read_hdf5_settings)
        if format == "parquet":
            from .parquet import read_parquet_settings, write_parquet

            return _FileFormat(write_parquet, read_parquet_settings)
    except ImportError as error:
        extra = {"hdf5": "h5", "parquet": "parquet"}[format]
        raise ValueError(
            f'The format {format} needs another library: pip install "spacy-elmo[{extra}]" ({error})'
        ) from error
    return None


def _write_file(file_format: _FileFormat, folder: VectorFolder, out: Path) -> None:
    remove_partial(out.parent, out.name)
    with atomic_file(out) as partial:
        file_format.write(open_vectors(folder.path), partial)
    remove_partial(out.parent, folder.path.name)
    remove_folder(folder.path)

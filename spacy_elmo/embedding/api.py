"""`spacy_elmo.embed`: the vectors of a corpus on disk, in one call."""

from __future__ import annotations

from pathlib import Path

from spacy.language import Language

from ..corpora.pipelines import LayerSelection
from . import embed_corpus
from .embed_corpus import VectorFormat
from .embedder import EmbedOptions, Pooling, VectorDType


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

    Args:
        nlp: a pipeline with an elmo; the components after elmo do not run.
        text: file, directory or glob pattern. A line, a record, a Doc or a sentence of it is an item.
        out: folder to write; with another `format` than "safetensors" a file.
        layers: layers to keep: "all", their "average", or the "top" one.
        dtype: number type of the vectors.
        pooling: pooling to one vector per item, over its non-whitespace tokens; None: one vector per token.
        tokenized: texts are words separated by spaces.
        format: "safetensors" for `open_vectors`; "hdf5" in the layout of `allennlp elmo`; or "parquet".
        resume: continue an interrupted call with the same arguments.
        force: delete vectors that exist at `out`.

    Raises:
        FileExistsError: `out` exists, and neither `resume` nor `force` is set.
        FileNotFoundError: there is no text.
        ValueError: a file or line cannot be read, there is no elmo, or existing vectors have other settings.
    """
    options = EmbedOptions(layers, dtype, pooling)
    shards = embed_corpus.embed(
        nlp, str(text), out, options, tokenized=tokenized, format=format, resume=resume, force=force
    )
    for _ in shards:
        pass

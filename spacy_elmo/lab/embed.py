"""`spacy_elmo.embed`: the ELMo vectors of a corpus, in Parquet or HDF5 files.

A Parquet file has a row for each token, or for each span that the biLM reads as a sequence (a sentence, unless the
option `get_spans` of elmo says otherwise). The columns are

- `doc` (string): name of the document, such as "letters.txt:12";
- `index` (int32): index of the token in its document, or of the first token of the span;
- `end` (int32): only for spans: index of the last token, plus 1;
- `text` (string): text of the token or span;
- `space` (bool): whether a space follows the token or span;
- `vector`: list of `width` numbers, float32 or float16; or, with all layers, `layers`: a list of such lists.

The metadata of a file, a JSON object with the key `spacy_elmo`, tells how its vectors were computed.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spacy.language import Language
from spacy.tokens import Doc, Span
from thinc.api import to_numpy

from ..digest import json_digest
from ..files import atomic_file, check_output_file, remove_partial
from ..pipeline.encode.spans import spans_of
from ..text.passages import batches
from .documents import CHARACTERS_PER_BATCH, Document, make_docs, read_documents
from .pipelines import (
    LayerSelection,
    elmo_and_later,
    find_elmo,
    load_pipeline,
    vector_settings,
)

VectorDType: TypeAlias = Literal["float32", "float16"]
Unit: TypeAlias = Literal["token", "span"]
VectorFormat: TypeAlias = Literal["parquet", "hdf5"]

METADATA = b"spacy_elmo"
"""Key of the metadata of a Parquet file that tells how its vectors were computed."""
CHARACTERS_PER_FILE = 1 << 18
"""Approximate number of characters of the documents in a Parquet file. All layers of the original ELMo take 600 MB for
that many characters of English."""


class Embedder:
    """Callable that computes the vectors of a batch of documents, for `map_batches` of Ray Data.

    Args:
        pipeline: a pipeline with an elmo component, or the name or path of such a pipeline or of weights. The
            components after elmo do not run.
        layers: "all", their "average" as in `token._.elmo`, the "top" layer, or the index of a layer.
        dtype: data type of the vectors.
        unit: "token": a vector for each token, also for whitespace; "span": for each span that the biLM reads
            as a sequence, the mean of the vectors of its tokens, as in `span._.elmo`. Spans without words are
            left out.
    """

    def __init__(
        self,
        pipeline: str | Language,
        *,
        layers: LayerSelection | int = "all",
        dtype: VectorDType = "float32",
        unit: Unit = "token",
    ) -> None:
        for name, value, choices in (
            ("layers", layers, get_args(LayerSelection)),
            ("dtype", dtype, get_args(VectorDType)),
            ("unit", unit, get_args(Unit)),
        ):
            if value not in choices and not (name == "layers" and isinstance(value, int)):
                raise ValueError(f"{name} = {value!r}: it must be one of {choices}")
        self.nlp = pipeline if isinstance(pipeline, Language) else load_pipeline(pipeline)
        self.layers = layers
        self.dtype = dtype
        self.unit = unit
        self._later = elmo_and_later(self.nlp)[1:]
        self._get_spans = find_elmo(self.nlp)[1].model.attrs["options"].get_spans
        self.metadata: dict[str, Any] = {
            "pipeline": vector_settings(self.nlp), "layers": layers, "dtype": dtype, "unit": unit
        }  # fmt: skip
        """Settings of the vectors, in JSON types: the arguments, and what the vectors of the pipeline depend on."""

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Compute the vectors of some documents, as a table with the columns of a Parquet file.

        Args:
            batch: the columns `doc` (names of the documents) and `text` (texts, or lists of words).
        """
        # Otherwise, the vocabulary of the pipeline would grow with the corpus.
        with self.nlp.memory_zone():
            pairs = self.vectors(batch["text"])
            rows = [span for spans, _ in pairs for span in spans]
            vectors = np.concatenate([vectors for _, vectors in pairs], axis=-2)
            names = [
                name for name, (spans, _) in zip(batch["doc"], pairs, strict=True) for _ in spans
            ]
            columns = {"doc": pa.array(names, pa.string())}
            columns["index"] = pa.array([span.start for span in rows], pa.int32())
            if self.unit == "span":
                columns["end"] = pa.array([span.end for span in rows], pa.int32())
            texts = [s.text.strip() if self.unit == "span" else s.text for s in rows]
            columns["text"] = pa.array(texts, pa.string())
            columns["space"] = pa.array([bool(span[-1].whitespace_) for span in rows])
        if vectors.ndim == 2:
            columns["vector"] = lists(vectors)
        else:
            columns["layers"] = lists(vectors.transpose(1, 0, 2))
        return pa.table(columns).replace_schema_metadata({METADATA: json.dumps(self.metadata)})

    def vectors(self, texts: Iterable[str | Iterable[str]]) -> list[tuple[list[Span], np.ndarray]]:
        """Compute the vectors of some texts, or of documents that are given as sequences of words.

        Returns:
            For each document, its tokens or spans (a token is a Span of length 1), and their vectors: (spans,
            width), or (layers, spans, width) for all layers.
        """
        docs = list(make_docs(self.nlp, texts, self._later))
        vectors = [vectors_of(doc, self.layers) for doc in docs]
        if self.unit == "token":
            spans = [[doc[i : i + 1] for i in range(len(doc))] for doc in docs]
        else:
            spans = [with_words(doc_spans) for doc_spans in spans_of(docs, self._get_spans)]
            vectors = [span_means(v, s) for v, s in zip(vectors, spans, strict=True)]
        return [(s, v.astype(self.dtype)) for s, v in zip(spans, vectors, strict=True)]


def vectors_of(doc: Doc, layers: LayerSelection | int) -> np.ndarray:
    """Return the vectors of the tokens of a Doc: (tokens, width), or (layers, tokens, width) for all layers."""
    if layers == "average":
        found = doc._.elmo
    elif (found := doc._.elmo_layers) is not None and layers != "all":
        number = len(found) - 1 if layers == "top" else int(layers)
        if not 0 <= number < len(found):
            raise ValueError(
                f"layer = {number} does not exist. The Doc has the layers 0 to {len(found) - 1}"
            )
        found = found[number]
    if found is None:
        raise ValueError(
            f"The Doc has no ELMo vectors for layers = {layers!r}. Process it with a pipeline that has an elmo"
            ' component; elmo needs store = "layers" for other layers than "average"'
        )
    return to_numpy(found)


def with_words(spans: Iterable[Span]) -> list[Span]:
    """Return the Spans that contain a token that is not whitespace."""
    return [span for span in spans if not all(token.is_space for token in span)]


def span_means(vectors: np.ndarray, spans: Sequence[Span]) -> np.ndarray:
    """Return the mean of the vectors of the words of each Span, without whitespace tokens.

    Args:
        vectors: the vectors of the tokens of a Doc, (..., tokens, width).
        spans: Spans of this Doc that contain words.

    Returns:
        (..., spans, width) float32.
    """
    means = np.empty((*vectors.shape[:-2], len(spans), vectors.shape[-1]), np.float32)
    for number, span in enumerate(spans):
        words = [token.i for token in span if not token.is_space]
        means[..., number, :] = vectors[..., words, :].mean(axis=-2, dtype="float32")
    return means


def lists(vectors: np.ndarray) -> pa.Array:
    """Convert vectors to a column: (rows, width), or (rows, layers, width) for a list of lists."""
    column = pa.array(vectors.reshape(-1))
    for size in vectors.shape[:0:-1]:
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def embed(
    nlp: Language,
    text: str | Path,
    out: str | Path,
    *,
    layers: LayerSelection = "all",
    dtype: VectorDType = "float32",
    unit: Unit = "token",
    format: VectorFormat = "parquet",
    tokenized: bool = False,
    force: bool = False,
) -> None:
    """Write the vectors of a corpus to disk, as `python -m spacy elmo embed` does. Memory never holds the vectors
    of the whole corpus.

    Parquet files are written one after the other. A call that was interrupted can be repeated: it keeps the
    files that are complete, and the result is the same as without the interruption.

    Args:
        nlp: a pipeline with an elmo component. The components after elmo do not run.
        text: file, folder or glob pattern. A document of the corpus is a line, a record, a Doc or a sentence,
            depending on the type of file.
        out: folder for the files `part-00000.parquet`, ...; with `format` "hdf5", the file to write.
        layers: see `Embedder`.
        dtype: see `Embedder`.
        unit: see `Embedder`.
        format: "parquet" (see the module `spacy_elmo.lab.embed`), or "hdf5" in the layout of bilm-tf: a dataset
            for each document, named "0", "1", ..., of the shape (layers, tokens, width).
        tokenized: True if the texts are already tokenized, with spaces between the tokens.
        force: replace existing files.
    """
    out = Path(out)
    embedder = Embedder(nlp, layers=layers, dtype=dtype, unit=unit)
    documents = read_documents(str(text), tokenized=tokenized)
    if format == "hdf5":
        check_output_file(out, force=force)
        _write_hdf5(embedder, documents, out)
        return
    out.mkdir(parents=True, exist_ok=True)
    remove_partial(out)
    for old in out.glob("part-*.parquet") if force else ():
        old.unlink()
    for number, part in enumerate(batches(documents, CHARACTERS_PER_FILE, len)):
        path = out / f"part-{number:05}.parquet"
        texts = json_digest([[document.name, document.text] for document in part])
        embedder.metadata["texts"] = texts
        if path.exists():
            check_metadata(path, embedder.metadata)
        else:
            _write_parquet(embedder, part, path)


def check_metadata(path: Path, expected: Mapping[str, Any]) -> None:
    """Check that the vectors of a Parquet file were computed in the same way as those of this call."""
    metadata = json.loads((pq.read_schema(path).metadata or {}).get(METADATA, "{}"))
    if differences := [name for name in expected if metadata.get(name) != expected[name]]:
        raise ValueError(
            f"{path} has vectors of another text or with other settings ({', '.join(differences)}). Replace it with"
            " force (`--force`), or choose another folder"
        )


def as_batch(documents: Iterable[Document]) -> dict[str, list[Any]]:
    """Return documents in the form that `Embedder` takes."""
    return {"doc": [d.name for d in documents], "text": [d.text for d in documents]}


def _write_parquet(embedder: Embedder, documents: list[Document], path: Path) -> None:
    """Write the vectors of some documents to a Parquet file, with a row group for each batch."""
    tables = map(embedder, map(as_batch, batches(documents, CHARACTERS_PER_BATCH, len)))
    first = next(tables)
    with atomic_file(path) as partial:
        # Only names and texts repeat.
        with pq.ParquetWriter(partial, first.schema, use_dictionary=["doc", "text"]) as writer:
            for table in itertools.chain([first], tables):
                writer.write_table(table)


def _write_hdf5(embedder: Embedder, documents: Iterable[Document], path: Path) -> None:
    import h5py

    with atomic_file(path) as partial, h5py.File(partial, "w") as file:
        for batch in batches(documents, CHARACTERS_PER_BATCH, len):
            with embedder.nlp.memory_zone():
                for _, vectors in embedder.vectors(document.text for document in batch):
                    file[str(len(file))] = vectors
        file.attrs[METADATA.decode()] = json.dumps(embedder.metadata)

"""`spacy_elmo.SearchIndex`: search for the Spans of a corpus that are most similar to a Doc, Span or Token.

An index on disk is a folder with a Parquet file, in the format that `embed` writes, for the method "hnsw" also the
graph of usearch, and the digests of both. So a folder that `embed` has written is an index, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from ..digest import file_digest
from ..files import atomic_folder, read_json_object
from ..text.passages import batches
from .documents import CHARACTERS_PER_BATCH, read_documents
from .embed import METADATA, Embedder, as_batch, lists, span_means, vectors_of, with_words
from .normalize import normalize
from .pipelines import LayerSelection

SearchMethod: TypeAlias = Literal["exact", "hnsw"]

_ROWS, _GRAPH, _DIGESTS = "spans.parquet", "graph.usearch", "digests.json"
_SAMPLE = 20_000
"""Largest number of entries from which the whitening is estimated."""


class Hit(NamedTuple):
    """A Span that a search has found, and how similar it is to the query."""

    doc_id: str
    start: int
    """Index of the first token of the Span in the Doc."""
    end: int
    """Index of the last token of the Span in the Doc, plus 1."""
    text: str
    cosine: float
    """Cosine of the whitened vectors of the Span and the query."""


class SearchIndex:
    """Index of Docs, Spans and Tokens. A search finds the entries that are most similar to a Doc, Span or Token.

    The vector of a Doc or Span is the mean of the ELMo vectors of its tokens, without whitespace tokens. The
    similarity is the cosine of two vectors after whitening: the mean of the entries is subtracted, and directions in
    which they differ much count less. The index stores vectors, texts and token positions, but no Docs.

    Args:
        layers: the vectors to compare: the "average" of all layers, as in `_.elmo`, the "top" layer, or the
            index of a layer.
        method: "exact" compares the query with every vector. "hnsw" searches a graph of vectors with the
            library usearch: the search time hardly grows with the number of vectors, but some near vectors can
            be missed.
        about: any metadata to store with the index, in JSON types.
    """

    def __init__(
        self,
        *,
        layers: LayerSelection | int = "average",
        method: SearchMethod = "exact",
        about: Mapping[str, Any] | None = None,
    ) -> None:
        if method not in ("exact", "hnsw"):
            raise ValueError(f"method = {method!r} (`--method`) must be exact or hnsw")
        if layers == "all":
            raise ValueError(
                'layers = "all": an index needs one vector of each entry. Choose "average", "top" or a number'
            )
        self.layers = layers
        self.method = method
        self.about = dict(about or {})
        self._entries: list[tuple[str, int, int, str]] = []
        self._blocks: list[np.ndarray] = []
        self._prepared: tuple[np.ndarray, np.ndarray, Any] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, doc_id: str, tokens: Iterable[Doc | Span | Token]) -> None:
        """Add Spans or Tokens of a Doc, or the whole Doc. A Span with only whitespace tokens is left out.

        Args:
            doc_id: any name for the Doc. A search returns this name in each hit from the Doc.
            tokens: the Spans, such as `doc.sents`, or `[doc]` for the whole Doc.
        """
        if spans := with_words(map(_as_span, tokens)):
            entries = [(doc_id, span.start, span.end, span.text.strip()) for span in spans]
            self._add(entries, span_means(vectors_of(spans[0].doc, self.layers), spans))

    def add_table(self, table: pa.Table) -> None:
        """Add the rows of a table from `Embedder` or `embed`, which must have a column `vector`."""
        starts = table["index"].to_pylist()
        ends = table["end"].to_pylist() if "end" in table.column_names else [i + 1 for i in starts]
        entries = zip(
            table["doc"].to_pylist(), starts, ends, table["text"].to_pylist(), strict=True
        )
        if len(table):
            self._add(list(entries), np.stack(table["vector"].to_numpy()))

    def search(self, query: Doc | Span | Token, k: int = 10) -> list[Hit]:
        """Return the k entries of the index that are most similar to a query, most similar first. If the index
        has fewer entries, return all.
        """
        spans = with_words([_as_span(query)])
        if not spans:
            raise ValueError(f"The query {query.text!r} contains no words")
        vector = span_means(vectors_of(spans[0].doc, self.layers), spans)[0]
        if not len(self):
            return []
        self._check_width(len(vector))
        center, matrix, whitened = self._prepare()
        vector = normalize((vector - center) @ matrix)
        if self.method == "hnsw":
            matches = whitened.search(vector, min(k, len(self)))
            numbers, cosines = matches.keys.astype(int), 1 - matches.distances
        else:
            cosines = whitened @ vector
            kth = max(len(cosines) - k, 0)
            numbers = np.flatnonzero(cosines >= np.partition(cosines, kth)[kth])
            numbers = numbers[np.argsort(-cosines[numbers], kind="stable")][:k]
            cosines = cosines[numbers]
        return [
            Hit._make((*self._entries[number], cosine))
            for number, cosine in zip(numbers.tolist(), cosines.tolist(), strict=True)
        ]

    def to_disk(self, folder: str | Path) -> None:
        """Write the index to a folder. An earlier index in the folder is replaced."""
        folder = Path(folder)
        if others := sorted({path.name for path in folder.glob("*")} - {_ROWS, _GRAPH, _DIGESTS}):
            raise FileExistsError(
                f"{folder} contains {others[0]}. Choose an empty folder, or a new one"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not len(self):
            raise ValueError("The index is empty and cannot be saved. Add Docs or Spans first")
        docs, starts, ends, texts = zip(*self._entries, strict=True)
        columns = {
            "doc": pa.array(docs, pa.string()),
            "index": pa.array(starts, pa.int32()),
            "end": pa.array(ends, pa.int32()),
            "text": pa.array(texts, pa.string()),
            "vector": lists(self._matrix()),
        }
        metadata = {"layers": self.layers, "method": self.method, **self.about}
        table = pa.table(columns).replace_schema_metadata({METADATA: json.dumps(metadata)})
        with atomic_folder(folder) as new:
            pq.write_table(table, new / _ROWS, use_dictionary=["doc", "text"])
            if self.method == "hnsw":
                self._prepare()[-1].save(new / _GRAPH)
            (new / _DIGESTS).write_text(json.dumps(_digests(new)))

    @classmethod
    def from_disk(cls, folder: str | Path) -> SearchIndex:
        """Load an index from a folder that `to_disk` or `embed` has written.

        A graph of usearch from a stranger can crash the process, because usearch does not check it.
        """
        folder = Path(folder)
        files = sorted(folder.glob("*.parquet"))
        if not files:
            raise FileNotFoundError(
                f"There is no index in {folder}. Make one with `spacy elmo search index`"
            )
        # usearch would crash, and pyarrow could read other vectors. `embed` writes no digests.
        if (folder / _ROWS).exists() and read_json_object(folder / _DIGESTS) != _digests(folder):
            raise ValueError(
                f"The index {folder} is damaged: its files do not have the digests in {_DIGESTS}. Copy it again, or"
                " make it again with `spacy elmo search index`"
            )
        about = json.loads(pq.read_schema(files[0]).metadata[METADATA])
        if about.get("unit") == "token":
            raise ValueError(
                f"{folder} has a vector for each token, but a search needs those of sentences. Compute them with `spacy"
                " elmo embed PIPELINE_OR_WEIGHTS IN OUT --unit span --layers average`"
            )
        index = cls(layers=about.pop("layers"), method=about.pop("method", "exact"), about=about)
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches():
                index.add_table(pa.Table.from_batches([batch]))
        if index.method == "hnsw":
            from usearch.index import Index

            index._prepared = *_whitening(index._matrix()), Index.restore(folder / _GRAPH)
        return index

    def _add(self, entries: list[tuple[str, int, int, str]], vectors: np.ndarray) -> None:
        if self._blocks:
            self._check_width(vectors.shape[1])
        self._entries += entries
        self._blocks.append(vectors.astype(np.float32))
        self._prepared = None

    def _prepare(self) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return the result of `_whitening`, and the whitened vectors of all entries, or for "hnsw" their graph."""
        if self._prepared is None:
            center, matrix = _whitening(self._matrix())
            rows = normalize((self._matrix() - center) @ matrix)
            self._prepared = center, matrix, rows if self.method == "exact" else _graph(rows)
        return self._prepared

    def _matrix(self) -> np.ndarray:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0]

    def _check_width(self, width: int) -> None:
        if width != (own := self._blocks[0].shape[1]):
            raise ValueError(
                f"The vectors of the index have {own} numbers, but those of the Doc have {width}. Use the same biLM for"
                " both"
            )


def _whitening(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a vector and a matrix: without the vector and times the matrix, the vectors of an index, (entries, width),
    have the mean 0, and the same variance in all directions. Otherwise, what all texts have in common determines most
    of a cosine (Su et al. 2021, arXiv:2103.15316)."""
    sample = vectors[:: -(-len(vectors) // _SAMPLE)]
    n, width = sample.shape
    # As if there were an entry with the vector 0: otherwise, nothing would be left of a single entry.
    center = sample.sum(0) / (n + 1)
    sample = (sample - center).astype("float64")
    covariance = sample.T @ sample / n
    # Few entries do not determine the covariance. The fewer there are, the nearer is the estimate to equal variances.
    equal = np.eye(width) * covariance.trace() / width
    covariance += (equal - covariance) * width / (n + width)
    return center, np.linalg.cholesky(np.linalg.inv(covariance)).astype("float32")


def _graph(rows: np.ndarray) -> Any:
    from usearch.index import Index

    graph = Index(ndim=rows.shape[1], metric="ip", dtype="f32")
    graph.add(np.arange(len(rows)), rows)
    return graph


def _digests(folder: Path) -> dict[str, str]:
    """Return the digests of the files of an index."""
    return {
        name: file_digest(folder / name) for name in (_ROWS, _GRAPH) if (folder / name).exists()
    }


def _as_span(tokens: Doc | Span | Token) -> Span:
    if isinstance(tokens, Span):
        return tokens
    if isinstance(tokens, Token):
        return tokens.doc[tokens.i : tokens.i + 1]
    return tokens[:]


def add_corpus(
    index: SearchIndex, nlp: Language, text: str, *, tokenized: bool = False
) -> Iterator[int]:
    """Add the spans of a corpus that the biLM reads as sequences, such as sentences, to an index. Yield their
    number in each batch; for `text` and `tokenized` see `read_documents`."""
    embedder = Embedder(nlp, layers=index.layers, unit="span")
    for batch in batches(read_documents(text, tokenized=tokenized), CHARACTERS_PER_BATCH, len):
        table = embedder(as_batch(batch))
        index.add_table(table)
        yield len(table)
    if not len(index):
        raise ValueError(f"The text {text!r} contains no words, so there is nothing to index")

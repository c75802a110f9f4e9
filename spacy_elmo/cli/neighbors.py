"""`python -m spacy elmo neighbors`: find similar occurrences of a word, or draw a map of all occurrences."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import CorpusArgument, LanguageOption, PipelineArgument, open_pipeline
from .output import check_out, msg, reading_bar, write_json

if TYPE_CHECKING:
    from ..lab.contexts import Neighbor, Occurrences, Plane


def neighbors_cli(
    source: PipelineArgument,
    text: CorpusArgument,
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="Word in any case; in text with senses, its lemma")
    ],
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "-q", help="Sentence that contains WORD. Can be repeated"),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of neighbors per query")] = 3,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write: page with a map (.html) or data (.json)"),
    ] = None,
    lang: LanguageOption = None,
) -> None:
    """Find similar occurrences of a word, or map all occurrences.

    For each --query, a table shows the occurrences of WORD in IN that have the most similar vectors, as in
    table 4 of Peters et al. (2018).

    --out draws a map with a point for each occurrence and a mark for each query. If the text has annotated
    senses (.jsonl with "tokens" and "sense"), the points are colored by sense.
    """
    if not query and out is None:
        raise ValueError(
            "Nothing to do. Use --query SENTENCE to find neighbors, --out FILE to draw a map, or both"
        )
    check_out(out, ".html", ".json")
    from ..lab.contexts import drawable, find_in_sentences, find_occurrences, nearest, project
    from ..lab.documents import corpus_files, read_documents

    nlp = open_pipeline(source, lang=lang)
    with reading_bar(corpus_files(text)):
        corpus = find_occurrences(nlp, read_documents(text, senses=True), word)
    queries = find_in_sentences(nlp, query or [], word, corpus)
    neighbors = nearest(queries, corpus, n)
    _show(corpus, queries, neighbors)
    if out is None:
        return
    planes = project(corpus, queries)
    if out.suffix == ".json":
        write_json(out, _record(corpus, queries, neighbors, planes))
        return
    from ..lab.explore.page import save_map, word_view

    view = word_view(corpus, queries, neighbors, drawable(planes))
    about = f"{Path(text).name}, vectors of {source}"
    save_map(out, view, title=f"Uses of \u201c{word}\u201d", source=about)
    msg.good(f"Saved: {out}")


def _show(corpus: Occurrences, queries: Occurrences, neighbors: list[list[list[Neighbor]]]) -> None:
    for query, views in zip(queries.items, neighbors, strict=True):
        msg.divider(query.excerpt())
        rows = [
            (view if rank == 0 else "", f"{near.cosine:.2f}", use.excerpt(), use.sense or "")
            for view, nearby in zip(corpus.views, views, strict=True)
            for rank, near in enumerate(nearby)
            for use in [near.occurrence]
        ]
        header = ("Vectors", "Cosine", "Nearest in the text", "Sense")
        msg.table(rows, header=header, aligns=("l", "r", "l", "l"), max_col=120, divider=False)
    senses = Counter(o.sense for o in corpus.items if o.sense is not None)
    annotated = f", annotated with {len(senses)} senses" if senses else ""
    msg.info(f"Occurrences in the text: {len(corpus.items):,}{annotated}")


def _record(
    corpus: Occurrences,
    queries: Occurrences,
    neighbors: list[list[list[Neighbor]]],
    planes: list[Plane],
) -> dict[str, Any]:
    return {
        "variance": {plane.view: plane.shares for plane in planes},
        "occurrences": [
            {**asdict(occurrence), "points": {p.view: p.points[number].tolist() for p in planes}}
            for number, occurrence in enumerate(corpus.items)
        ],
        "queries": [
            {
                **asdict(query),
                "points": {p.view: p.queries[number].tolist() for p in planes},
                "neighbors": {
                    view: [{**asdict(near.occurrence), "cosine": near.cosine} for near in nearby]
                    for view, nearby in zip(corpus.views, neighbors[number], strict=True)
                },
            }
            for number, query in enumerate(queries.items)
        ],
    }

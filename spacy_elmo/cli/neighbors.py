"""`python -m spacy elmo neighbors`: where a word is used as in a given sentence, and a map of its uses."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import srsly
import typer
from spacy.cli._util import import_code
from wasabi import msg

from ..files import atomic_file
from .corpus_arguments import CodeOption, CorpusArgument, SourceArgument, SourceLangOption
from .embed import Layers
from .errors import one_message
from .evaluate import GpuOption, TokenizedOption
from .figure_files import OutOption, check_figure_files

if TYPE_CHECKING:
    from ..analysis.contexts.neighbors import Neighbor
    from ..analysis.contexts.occurrence_map import Plane
    from ..analysis.contexts.occurrences import Occurrences

_WIDEST = 120


def neighbors_cli(
    source: SourceArgument,
    text: CorpusArgument,
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="In any case; of labelled text, the lemma")
    ],
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "-q", help="Sentence with the word; may be given again"),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Neighbours of each query")] = 3,
    layers: Annotated[
        Layers, typer.Option(help="Each layer by itself, their average, or the last one")
    ] = Layers.all,
    out: OutOption = None,
    tokenized: TokenizedOption = False,
    lang: SourceLangOption = None,
    gpu_id: GpuOption = -1,
    code: CodeOption = None,
) -> None:
    """Nearest neighbours in context, as table 4 of Peters et al. (2018), and a map of a word's occurrences.

    For each sentence given with --query, the occurrences of the word in the text that have the most similar vectors.
    --out draws all occurrences as points, coloured by sense where the text is labelled (.jsonl with "tokens" and
    "sense"), and those of the queries as their numbers.
    """
    with one_message():
        import_code(code)
        files = check_figure_files(out)
        if not query and not files:
            raise ValueError(
                "Nothing to show: give --query SENTENCE for neighbours, --out FILE for a map, or both"
            )
        if gpu_id >= 0:
            from spacy import require_gpu

            require_gpu(gpu_id)
        from ..analysis.contexts.neighbors import nearest
        from ..analysis.contexts.occurrences import find_in_sentences, find_occurrences
        from ..corpora.passages import passages
        from ..corpora.pipelines import load_pipeline

        nlp, remarks = load_pipeline(source, lang=lang, tokenized=tokenized)
        for remark in remarks:
            msg.warn(remark)
        corpus = find_occurrences(nlp, passages(text, tokenized=tokenized), word, layers.value)
        sentences = [sentence.split() if tokenized else sentence for sentence in query or []]
        queries = find_in_sentences(nlp, sentences, word, corpus, layers.value)
        neighbors = nearest(queries, corpus, n)
        for path in files:
            _save(path, corpus, queries, neighbors, word, f"{Path(text).name}, vectors of {source}")
    _show(corpus, queries, neighbors)
    for path in files:
        msg.good(f"Saved: {path}")


def _show(corpus: Occurrences, queries: Occurrences, neighbors: list[list[list[Neighbor]]]) -> None:
    for query, views in zip(queries.found, neighbors, strict=True):
        msg.divider(query.excerpt())
        rows = [
            (
                view if rank == 0 else "",
                f"{near.cosine:.2f}",
                near.occurrence.excerpt(),
                near.occurrence.sense or "",
            )
            for view, nearby in zip(corpus.views, views, strict=True)
            for rank, near in enumerate(nearby)
        ]
        header = ("Vectors", "Cosine", "Nearest in the text", "Sense")
        msg.table(rows, header=header, aligns=("l", "r", "l", "l"), max_col=_WIDEST)
    senses = Counter(o.sense for o in corpus.found if o.sense is not None)
    annotated = f", in {len(senses)} senses" if senses else ""
    msg.info(f"Occurrences: {len(corpus.found):,}{annotated}")


def _save(
    path: Path,
    corpus: Occurrences,
    queries: Occurrences,
    neighbors: list[list[list[Neighbor]]],
    word: str,
    source: str,
) -> None:
    from ..analysis.contexts.occurrence_map import planes

    drawn = planes(corpus, queries)
    if path.suffix == ".json":
        with atomic_file(path) as partial:
            srsly.write_json(partial, _record(corpus, queries, neighbors, drawn))
        return
    from ..analysis.contexts.map_chart import map_chart
    from ..analysis.figures import save_figure

    title = f"Occurrences of \u201c{word}\u201d"
    chart = map_chart(drawn, corpus.found, queries.found, title=title, source=source)
    save_figure(chart, path, title=title)


def _record(
    corpus: Occurrences,
    queries: Occurrences,
    neighbors: list[list[list[Neighbor]]],
    drawn: list[Plane],
) -> dict[str, Any]:
    return {
        "variance": {plane.view: plane.shares for plane in drawn},
        "occurrences": [
            {**asdict(occurrence), "points": {p.view: p.points[number].tolist() for p in drawn}}
            for number, occurrence in enumerate(corpus.found)
        ],
        "queries": [
            {
                **asdict(query),
                "points": {p.view: p.queries[number].tolist() for p in drawn},
                "neighbors": {
                    view: [{**asdict(near.occurrence), "cosine": near.cosine} for near in nearby]
                    for view, nearby in zip(corpus.views, neighbors[number], strict=True)
                },
            }
            for number, query in enumerate(queries.found)
        ],
    }

"""`python -m spacy elmo search`: index a corpus, and find similar sentences in the index."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import (
    CorpusArgument,
    ForceOption,
    GpuOption,
    LanguageOption,
    PipelineArgument,
    TokenizedOption,
    open_pipeline,
    standard_input,
)
from .output import msg, reading_bar

if TYPE_CHECKING:
    from ..lab.search import Hit

search_cli = typer.Typer(
    name="search",
    help="Find the corpus sentences that are most similar to a query.",
    no_args_is_help=True,
)
Method = Enum("Method", {"exact": "exact", "hnsw": "hnsw"}, type=str)


@search_cli.command("index")
def index_cli(
    source: PipelineArgument,
    text: CorpusArgument,
    out_dir: Annotated[
        Path, typer.Argument(metavar="OUT_DIR", help="Folder to create for the index")
    ],
    layer: Annotated[
        int | None, typer.Option(help="Layer to index. Default: the average of all layers")
    ] = None,
    method: Annotated[
        Method, typer.Option(help="hnsw: approximate search, for millions of sentences")
    ] = Method.exact,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    force: ForceOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Index the sentences of a corpus.

    In Python, spacy_elmo.SearchIndex.from_disk(OUT_DIR) loads the index.
    """
    if out_dir.is_file() or (out_dir.is_dir() and any(out_dir.iterdir()) and not force):
        raise FileExistsError(
            f"OUT_DIR {out_dir} is a file, or is not empty. Choose a new folder, or overwrite an index with --force"
        )
    from ..files import remove_partial
    from ..lab.documents import corpus_files
    from ..lab.pipelines import source_of
    from ..lab.search import SearchIndex, add_corpus

    remove_partial(out_dir.parent, out_dir.name)
    nlp = open_pipeline(source, lang=lang, tokenized=tokenized, gpu_id=gpu_id)
    index = SearchIndex(
        layers="average" if layer is None else layer,
        method=method.value,
        about=source_of(nlp, source, lang=lang, tokenized=tokenized),
    )
    with reading_bar(corpus_files(text)) as bar:
        for _ in add_corpus(index, nlp, text, tokenized=tokenized):
            # The bar decides when it is drawn, because it can be in a log file.
            bar.set_postfix_str(f"{len(index):,} sentences", refresh=False)
    index.to_disk(out_dir)
    msg.good(f"Index: {out_dir}, {len(index):,} sentences")


@search_cli.command("query")
def query_cli(
    index_dir: Annotated[
        Path,
        typer.Argument(metavar="INDEX", help="Folder that `search index` or `embed` has created"),
    ],
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help="Text, or - for standard input, one text per line"),
    ],
    hits: Annotated[
        int, typer.Option("--hits", "-n", min=1, help="Number of sentences to find")
    ] = 10,
    json: Annotated[
        bool, typer.Option("--json", help="Print the hits as JSON lines: one object per query")
    ] = False,
    pipeline: Annotated[
        str | None,
        typer.Option(help="Pipeline of the index, if it was moved, or if INDEX is from `embed`"),
    ] = None,
) -> None:
    """Find the sentences in an index that are most similar to a text.

    The similarity is the cosine of the text's vector and the sentence's vector.
    """
    from ..lab.documents import make_docs
    from ..lab.pipelines import elmo_and_later, load_again
    from ..lab.search import SearchIndex

    index = SearchIndex.from_disk(index_dir)
    nlp = load_again(index.about, pipeline)
    later = elmo_and_later(nlp)[1:]

    def search(text: str) -> None:
        words = text.split() if index.about.get("tokenized") else text
        (doc,) = make_docs(nlp, [words], later)
        _show(text, index.search(doc, hits), json)

    if query != "-":
        search(query)
        return
    for number, text in standard_input():
        try:
            if text:
                search(text)
        except ValueError as error:
            raise ValueError(f"Standard input, line {number}: {error}") from error


def _show(query: str, hits: Sequence[Hit], json: bool) -> None:
    import srsly

    if json:
        typer.echo(srsly.json_dumps({"query": query, "hits": [hit._asdict() for hit in hits]}))
        return
    rows = [(f"{hit.cosine:.3f}", hit.doc_id, " ".join(hit.text.split())) for hit in hits]
    msg.table(rows, header=("Cosine", "Document", query))

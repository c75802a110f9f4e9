"""`python -m spacy elmo search`: index a corpus, and find similar sentences in the index."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import srsly
import typer
from spacy.cli._util import import_code
from wasabi import msg

from ..files import remove_partial
from .arguments import (
    CodeOption,
    CorpusArgument,
    GpuOption,
    LanguageOption,
    PipelineArgument,
    QuietOption,
    TokenizedOption,
)
from .errors import report_errors
from .pipelines import load_pipeline, use_gpu
from .progress import reading_bar
from .standard_input import standard_input

if TYPE_CHECKING:
    from ..lab.search import Hit

search_cli = typer.Typer(
    name="search",
    help="Find the corpus sentences that are most similar to a query.",
    no_args_is_help=True,
)


class MethodChoice(str, Enum):
    """Choices of `--method`."""

    exact = "exact"
    hnsw = "hnsw"


@search_cli.command("index")
def index_cli(
    source: PipelineArgument,
    text: CorpusArgument,
    out_dir: Annotated[
        Path, typer.Argument(metavar="OUT_DIR", help="Folder to create for the index")
    ],
    layer: Annotated[
        int | None,
        typer.Option(
            help="Layer to index: 0 is context-free, the others are LSTM layers. Default: the average of all layers"
        ),
    ] = None,
    method: Annotated[
        MethodChoice,
        typer.Option(
            help="exact: compare a query with all sentences; hnsw: approximate search for millions of sentences"
        ),
    ] = MethodChoice.exact,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite the index in OUT_DIR")
    ] = False,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
    code: CodeOption = None,
) -> None:
    """Index the sentences of a corpus.

    In Python, spacy_elmo.SearchIndex.from_disk(OUT_DIR) loads the index.
    """
    with report_errors():
        import_code(code)
        use_gpu(gpu_id)
        if out_dir.is_file() or (out_dir.is_dir() and any(out_dir.iterdir()) and not force):
            raise FileExistsError(
                f"OUT_DIR {out_dir} is a file, or is not empty. Choose a new folder, or overwrite an index with --force"
            )
        remove_partial(out_dir.parent, out_dir.name)
        from ..lab.corpora.documents import corpus_files
        from ..lab.corpora.pipelines import source_of
        from ..lab.search import SearchIndex, add_corpus

        nlp = load_pipeline(source, lang=lang, tokenized=tokenized)
        index = SearchIndex(
            layers="average" if layer is None else layer,
            method=method.value,
            about=source_of(nlp, source, lang=lang, tokenized=tokenized),
        )
        with reading_bar(lambda: corpus_files(text), quiet=quiet) as bar:
            for _ in add_corpus(index, nlp, text, tokenized=tokenized):
                bar.set_postfix_str(f"{len(index):,} sentences")
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
        typer.Argument(
            metavar="QUERY",
            help="Text to search for, or - to read queries from standard input, one per line",
        ),
    ],
    hits: Annotated[
        int, typer.Option("--hits", "-n", min=1, help="Number of sentences to find")
    ] = 10,
    json: Annotated[
        bool, typer.Option("--json", help="Print the hits as JSON lines: one object per query")
    ] = False,
    pipeline: Annotated[
        str | None,
        typer.Option(
            help="Path of the pipeline or weights file that created the index, if it was moved, or if INDEX is from"
            " `embed`"
        ),
    ] = None,
    code: CodeOption = None,
) -> None:
    """Find the sentences in an index that are most similar to a text.

    The similarity is the cosine of the text's vector and the sentence's vector.
    """
    with report_errors():
        import_code(code)
        from ..lab.corpora.documents import make_docs
        from ..lab.corpora.pipelines import elmo_and_later, load_again
        from ..lab.search import SearchIndex

        index = SearchIndex.from_disk(index_dir)
        nlp = load_again(index.about, pipeline)
        later = elmo_and_later(nlp)[1:]

        def search(text: str) -> list[Hit]:
            words = text.split() if index.about.get("tokenized") else text
            (doc,) = make_docs(nlp, [words], later)
            return index.search(doc, hits)

        if query != "-":
            _show(query, search(query), json)
            return
        for number, text in standard_input():
            try:
                result = search(text) if text else None
            except ValueError as error:
                raise ValueError(f"Standard input, line {number}: {error}") from error
            if result is not None:
                _show(text, result, json)


def _show(query: str, hits: Sequence[Hit], json: bool) -> None:
    if json:
        typer.echo(srsly.json_dumps({"query": query, "hits": [hit._asdict() for hit in hits]}))
        return
    rows = [(f"{hit.cosine:.3f}", hit.doc_id, " ".join(hit.text.split())) for hit in hits]
    msg.table(rows, header=("Cosine", "Document", query), divider=True, max_col=100)

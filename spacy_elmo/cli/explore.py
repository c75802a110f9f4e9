"""`python -m spacy elmo explore`: a page in the browser that shows a biLM at work."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from wasabi import msg

from .arguments import LanguageOption, QuietOption, TokenizedOption, WeightsArgument
from .errors import report_errors
from .word_index import make_word_index


def explore_cli(
    source: WeightsArgument,
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="Folder made by `search index --unit word`; or text, see `search index`, for which one is made",
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one")] = 8017,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser")
    ] = False,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    quiet: QuietOption = False,
) -> None:
    """Open a page that shows a biLM at work.

    Type a sentence, and choose a word. The page shows the nearest uses of the word in the corpus by layer, a map of its
    uses, words of similar spelling, what the language model expects in its place, and the surprise of each word. The
    server is reachable from this machine alone; Ctrl-C ends it.
    """
    with report_errors():
        try:
            from ..explore.server import make_server
        except ImportError as error:
            raise ValueError(
                f"explore needs `pip install spacy-elmo[explore]` ({error})"
            ) from error
        from ..explore.explorer import Explorer

        signal.signal(signal.SIGTERM, _interrupt)  # so that the index of a text is removed
        with _index(source, corpus, lang=lang, tokenized=tokenized, quiet=quiet) as folder:
            explorer = Explorer.load(source, folder)
            with contextlib.closing(make_server(explorer, port)) as server:
                address = f"http://{server.effective_host}:{server.effective_port}/"
                msg.good(f"Explore: {address} (Ctrl-C ends it)")
                if not no_browser:
                    webbrowser.open(address)
                server.run()  # until a KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _index(
    source: str, corpus: str, *, lang: str | None, tokenized: bool, quiet: bool
) -> Iterator[Path]:
    """Yield the folder of the corpus's index; one that is made here is removed in the end."""
    from ..search.index_files import is_index

    if is_index(Path(corpus)):
        if lang is not None or tokenized:
            raise ValueError(
                f"{corpus} is an index: --lang and --tokenized were set when it was made"
            )
        yield Path(corpus)
        return
    with tempfile.TemporaryDirectory(prefix="spacy-elmo-") as folder:
        make_word_index(Path(folder), source, corpus, lang=lang, tokenized=tokenized, quiet=quiet)
        msg.info(
            f"To keep this index: python -m spacy elmo search index {source} {corpus} FOLDER --unit word"
        )
        yield Path(folder)

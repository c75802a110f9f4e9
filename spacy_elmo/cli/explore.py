"""`python -m spacy elmo explore`: open a web page that shows the vectors and predictions of a biLM."""

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
            help="Index that `search index --unit word` has created; or corpus to index first (file, folder or glob"
            " pattern)",
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server; 0: any free port")
    ] = 8017,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser")
    ] = False,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    quiet: QuietOption = False,
) -> None:
    """Open a web page that shows what a biLM computes for a word.

    Type a sentence on the page, and choose a word. For each layer, the page shows the most similar
    occurrences of the word in the corpus, and a 2-D map of all its occurrences. The page also shows words
    with a similar spelling, the words that the language model predicts in this context, and how surprising
    each word is. Only this machine can reach the server. Ctrl-C ends the server.
    """
    with report_errors():
        try:
            from ..lab.explore.server import listen, make_server
        except ImportError as error:
            raise ValueError(
                f'explore needs more packages: pip install "spacy-elmo[explore]" ({error})'
            ) from error
        from ..lab.explore.explorer import Explorer
        from ..weight_names import find_weights

        signal.signal(signal.SIGTERM, _interrupt)  # so a temporary index is removed
        find_weights(source)  # raises an error now, and not after a corpus is indexed
        with (
            contextlib.closing(listen(port)) as listening,
            _index(source, corpus, lang=lang, tokenized=tokenized, quiet=quiet) as folder,
        ):
            explorer = Explorer.load(source, folder)
            with contextlib.closing(make_server(explorer, listening)) as server:
                address = f"http://{server.effective_host}:{server.effective_port}/"
                msg.good(f"Open {address} in a browser. Press Ctrl-C to end the server")
                if not no_browser:
                    webbrowser.open(address)
                server.run()  # until a KeyboardInterrupt


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _index(
    source: str, corpus: str, *, lang: str | None, tokenized: bool, quiet: bool
) -> Iterator[Path]:
    """Yield the folder of a word index: `corpus` itself, if this is an index. Otherwise create a temporary
    index of the text `corpus`."""
    from ..lab.contexts.index_files import is_index

    if is_index(Path(corpus)):
        if lang is not None or tokenized:
            raise ValueError(
                f"{corpus} is an index, which has its own tokenizer. Use --lang and --tokenized only with a corpus"
            )
        yield Path(corpus)
        return
    with tempfile.TemporaryDirectory(prefix="spacy-elmo-") as folder:
        make_word_index(Path(folder), source, corpus, lang=lang, tokenized=tokenized, quiet=quiet)
        msg.info(
            "This index is temporary. To create an index that you can use again, run:"
            f" python -m spacy elmo search index {source} {corpus} FOLDER --unit word"
        )
        yield Path(folder)

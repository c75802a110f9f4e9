"""`python -m spacy elmo explore`: open a web page that shows the vectors and predictions of a biLM."""

from __future__ import annotations

import contextlib
import signal
import webbrowser
from typing import Annotated

import typer

from .arguments import PipelineArgument
from .output import msg, reading_bar


def explore_cli(
    source: PipelineArgument,
    corpus: Annotated[
        str,
        typer.Argument(metavar="CORPUS", help="Folder that `embed` has written, or a small text"),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the server; 0: any free port")
    ] = 8017,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser")] = False,
) -> None:
    """Open a web page that shows what a biLM computes for a word.

    Type a sentence on the page, and choose a word. For each layer, the page shows the most similar
    occurrences of the word in the corpus, and a 2-D map of all its occurrences. The page also shows words
    with a similar spelling, the words that the language model predicts in this context, and how surprising
    each word is; a pipeline predicts no words. Only this machine can reach the server. Ctrl-C ends the server.
    """
    from ..lab.documents import corpus_files
    from ..lab.explore.explorer import Explorer
    from ..lab.explore.server import listen, make_server
    from ..lab.explore.word_index import is_embedded

    # SIGTERM as Ctrl-C, so that temporary files are removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.closing(listen(port)) as listening:
        with reading_bar([] if is_embedded(corpus) else corpus_files(corpus)):
            explorer = Explorer.load(source, corpus)
        with contextlib.closing(make_server(explorer, listening)) as server:
            address = f"http://{server.effective_host}:{server.effective_port}/"
            msg.good(f"Open {address} in a browser. Press Ctrl-C to end the server")
            if not no_browser:
                webbrowser.open(address)
            server.run()  # until a KeyboardInterrupt

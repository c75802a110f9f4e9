"""`python -m spacy elmo annotate`: annotate text, as CoNLL-U."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import ForceOption, GpuOption, open_pipeline
from .output import msg, reading_bar


def annotate_cli(
    pipeline: Annotated[
        str, typer.Argument(metavar="PIPELINE", help="Installed pipeline, or its folder")
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="Plain text or CoNLL-U: file, folder or glob pattern. Files can be compressed as .gz, .xz or .zst",
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="CoNLL-U file; folder, if IN is no single file"),
    ],
    force: ForceOption = False,
    gpu_id: GpuOption = -1,
) -> None:
    """Annotate text, as CoNLL-U.

    In plain text, an empty line ends a paragraph. Of a .conllu file, the words, sentences and comments are kept, and
    everything else is predicted. If a run on a folder was interrupted, repeat the command: complete files are kept.
    """
    from ..lab.annotate import annotate, output_files

    nlp = open_pipeline(pipeline, gpu_id=gpu_id)
    files = output_files(text, out, force=force)
    with reading_bar(files):
        n_sentences = sum(annotate(nlp, file, path) for file, path in files.items())
    kept = "" if files else ". Complete files are kept; --force replaces them"
    msg.good(f"{out}: {n_sentences:,} sentences in {len(files):,} new files{kept}")

"""`python -m spacy elmo embed`: write the vectors of a corpus to disk."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .arguments import (
    CodeOption,
    CorpusArgument,
    DTypeChoice,
    GpuOption,
    LanguageOption,
    LayersChoice,
    PipelineArgument,
    QuietOption,
    TokenizedOption,
)
from .errors import report_errors
from .pipelines import load_pipeline, use_gpu
from .progress import reading_bar

if TYPE_CHECKING:
    from tqdm import tqdm

    from ..lab.embedding.embed_corpus import Engine


class FormatChoice(str, Enum):
    """Choices of `--format`."""

    safetensors = "safetensors"
    hdf5 = "hdf5"
    parquet = "parquet"


class PoolingChoice(str, Enum):
    """Choices of `--pooling`."""

    mean = "mean"
    max = "max"


class EngineChoice(str, Enum):
    """Choices of `--engine`."""

    here = "here"
    ray = "ray"


def embed_cli(
    source: PipelineArgument,
    text: CorpusArgument,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Folder to create; with --format hdf5 or parquet, file to write"
        ),
    ],
    file_format: Annotated[
        FormatChoice, typer.Option("--format", help="File format of the vectors")
    ] = FormatChoice.safetensors,
    layers: Annotated[
        LayersChoice,
        typer.Option(help="Write all layers, the average of all layers, or the top layer"),
    ] = LayersChoice.all,
    dtype: Annotated[
        DTypeChoice, typer.Option(help="Data type of the vectors")
    ] = DTypeChoice.float32,
    pooling: Annotated[
        PoolingChoice | None,
        typer.Option(
            help="Write one vector per item, the mean or the maximum of its token vectors. Default: one vector per"
            " token"
        ),
    ] = None,
    tokenized: TokenizedOption = False,
    lang: LanguageOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted run: keep the vectors in OUT, and add the missing vectors",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Replace the vectors in OUT")
    ] = False,
    gpu_id: GpuOption = -1,
    quiet: QuietOption = False,
    engine: Annotated[
        EngineChoice,
        typer.Option(
            help="here: compute in this process; ray: compute on a Ray cluster, with one process per core (with -g 0:"
            " one per GPU)"
        ),
    ] = EngineChoice.here,
    code: CodeOption = None,
) -> None:
    """Write the vectors of a corpus to disk.

    The items of the corpus (lines, .jsonl objects, Docs or .conllu sentences) are numbered from 0. In Python,
    spacy_elmo.open_vectors(OUT)[7] is the array of item 7, with the shape (layers, tokens, size of a vector).
    An hdf5 file has the layout that `allennlp elmo` writes: item 7 is the HDF5 dataset "7".
    """
    with report_errors():
        import_code(code)
        if engine == EngineChoice.here:
            use_gpu(gpu_id)
        compute = _engine(engine, gpu=gpu_id >= 0, code=code)
        from ..lab.corpora.items import corpus_files
        from ..lab.embedding.embed_corpus import embed_shards
        from ..lab.embedding.embedder import EmbedOptions

        nlp = load_pipeline(source, lang=lang, tokenized=tokenized)
        options = EmbedOptions(layers.value, dtype.value, pooling.value if pooling else None)
        with reading_bar(lambda: corpus_files(text), quiet=quiet) as bar:
            shards = embed_shards(
                nlp, text, out, options, tokenized=tokenized, format=file_format.value,
                engine=compute, resume=resume, force=force,
            )  # fmt: skip
            items, words = _compute(shards, bar)
    msg.info(f"Computed: {items:,} items with {words:,} tokens")
    msg.good(f"Vectors: {out}")


def _engine(name: EngineChoice, *, gpu: bool, code: Path | None) -> Engine:
    if name == EngineChoice.here:
        from ..lab.embedding.embed_corpus import embed_here

        return embed_here
    try:
        from ..lab.embedding.on_ray import embed_on_ray
    except ImportError as error:
        raise ValueError(
            f'--engine ray needs Ray: pip install "spacy-elmo[ray]" ({error})'
        ) from error
    return functools.partial(embed_on_ray, gpu=gpu, code=code)


def _compute(shards: Iterable[Mapping[str, Any]], bar: tqdm) -> tuple[int, int]:
    """Compute all output files (shards), and show the speed in a progress bar. Return the number of items and
    the number of tokens."""
    items = words = 0
    start = time.monotonic()
    for shard in shards:
        items += shard["items"]
        words += shard["rows"]
        rate = words / max(time.monotonic() - start, 1e-3)
        bar.set_postfix_str(f"{items:,} items, {rate:,.0f} tokens/s, {Path(shard['source']).name}")
    return items, words

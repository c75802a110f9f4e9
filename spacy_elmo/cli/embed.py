"""`python -m spacy elmo embed`: a corpus becomes vectors on disk."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from spacy.cli._util import import_code
from wasabi import msg

from .corpus_arguments import CodeOption, CorpusArgument, SourceArgument, SourceLangOption
from .errors import one_message
from .evaluate import GpuOption, TokenizedOption

if TYPE_CHECKING:
    from ..embed.run import Engine


class Format(str, Enum):
    """Of what is written."""

    safetensors = "safetensors"
    hdf5 = "hdf5"
    parquet = "parquet"


class Layers(str, Enum):
    """Which are kept."""

    all = "all"
    average = "average"
    top = "top"


class DType(str, Enum):
    """Of what is written."""

    float32 = "float32"
    float16 = "float16"


class Pooling(str, Enum):
    """From vectors of tokens to one of their sentence."""

    mean = "mean"
    max = "max"


class EngineName(str, Enum):
    """Where it is computed."""

    here = "here"
    ray = "ray"


def embed_cli(
    source: SourceArgument,
    text: CorpusArgument,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder to make; hdf5, parquet: file to write")
    ],
    file_format: Annotated[
        Format, typer.Option("--format", help="Format of what is written")
    ] = Format.safetensors,
    layers: Annotated[
        Layers, typer.Option(help="All layers, their average, or the last one")
    ] = Layers.all,
    dtype: Annotated[DType, typer.Option(help="Type of the numbers written")] = DType.float32,
    pooling: Annotated[
        Pooling | None, typer.Option(help="One vector per item, over its tokens")
    ] = None,
    tokenized: TokenizedOption = False,
    lang: SourceLangOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the vectors in OUT")] = False,
    force: Annotated[bool, typer.Option("--force", "-f", help="Delete the vectors in OUT")] = False,
    gpu_id: GpuOption = -1,
    engine: Annotated[
        EngineName,
        typer.Option(help="This process, or a Ray cluster with a process per core (or GPU, -g 0)"),
    ] = EngineName.here,
    code: CodeOption = None,
) -> None:
    """Write the vectors of a corpus to disk: a line, record, Doc or sentence of it is an item, and they are numbered.

    A folder is read by spacy_elmo.embed.vectors.open_vectors: open_vectors(OUT)[7] is
    (layers, n_tokens, width) of item 7. hdf5 is the layout of `allennlp elmo`, with a dataset "7". A run that
    was stopped goes on with --resume, and what it writes is the same.
    """
    with one_message():
        import_code(code)
        if gpu_id >= 0 and engine == EngineName.here:
            from spacy import require_gpu

            require_gpu(gpu_id)
        compute = _engine(engine, gpu=gpu_id >= 0, code=code)
        from ..corpora.pipelines import load_pipeline
        from ..embed.embedder import EmbedOptions
        from ..embed.run import embed

        nlp, remarks = load_pipeline(source, lang=lang, tokenized=tokenized)
        for remark in remarks:
            msg.warn(remark)
        wanted = EmbedOptions(layers.value, dtype.value, pooling.value if pooling else None)
        _show(
            embed(
                nlp, text, out, wanted, tokenized=tokenized, format=file_format.value,
                engine=compute, resume=resume, force=force,
            )
        )  # fmt: skip
    msg.good(f"Vectors: {out}")


def _engine(name: EngineName, *, gpu: bool, code: Path | None) -> Engine:
    if name == EngineName.here:
        from ..embed.run import embed_here

        return embed_here
    try:
        from ..embed.on_ray import embed_on_ray
    except ImportError as error:
        raise ValueError(f"--engine ray needs `pip install spacy-elmo[ray]` ({error})") from error
    return functools.partial(embed_on_ray, gpu=gpu, code=code)


def _show(shards: Iterable[Mapping[str, Any]]) -> None:
    """Progress, where there is a terminal, and what was computed."""
    from tqdm import tqdm

    items = words = 0
    with tqdm(unit=" tokens", unit_scale=True, disable=None) as bar:
        for shard in shards:
            items += shard["items"]
            words += shard["rows"]
            bar.set_postfix_str(f"{items:,} items, {Path(shard['source']).name}")
            bar.update(shard["rows"])
    msg.info(f"Computed: {items:,} items of {words:,} tokens")

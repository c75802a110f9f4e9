"""Embedding on a Ray cluster: an actor per core, or per GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ray
from confection import Config
from ray.exceptions import RayActorError, RayTaskError
from spacy.language import Language
from spacy.util import get_lang_class

from ..corpora.items import Shard
from .embedder import Embedder, EmbedOptions

# What is being computed and what waits, for each actor: no actor is idle while this process writes a file.
_AHEAD = 2
# A shard that has taken this many actors with it, one after the other, is not to be computed here.
_RETRIES = 3


def embed_on_ray(
    nlp: Language,
    wanted: EmbedOptions,
    shards: Iterable[Shard],
    *,
    gpu: bool = False,
    code: Path | None = None,
) -> Iterator[tuple[Shard, bytes]]:
    """The shards and the content of their files, as they are ready.

    The cluster is the one that `RAY_ADDRESS` names, or this process has joined; without either, one of the cores of
    this machine is started. Actors get the pipeline from here and give back what they compute, so machines share no
    folder. One that is lost starts again elsewhere, and its shards are computed again.

    Args:
        gpu: an actor per GPU, not per core.
        code: Python file to import in every actor; each machine has it at this path.

    Raises:
        ChildProcessError: a shard has cost several actors, or none could start.
        ValueError: the cluster has no such resources; as of `Embedder`.
    """
    # Ray reports how it is used to its makers, unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    resource = "GPU" if gpu else "CPU"
    size = int(ray.cluster_resources().get(resource, 0))
    if not size:
        raise ValueError(f"The Ray cluster has no {resource}; it has {ray.cluster_resources()}")
    actor: Any = ray.remote(_Actor).options(
        num_cpus=0 if gpu else 1,
        num_gpus=1 if gpu else 0,
        max_restarts=-1,
        max_task_retries=_RETRIES,
    )
    pipeline = ray.put((nlp.config.to_bytes(), nlp.to_bytes()))
    actors = [actor.remote(pipeline, wanted, gpu, code) for _ in range(size)]
    remaining = iter(shards)
    running: dict[Any, tuple[Shard, Any]] = {}
    try:
        idle = actors * _AHEAD
        while True:
            for worker in idle:
                if (shard := next(remaining, None)) is not None:
                    running[worker.embed.remote(shard)] = shard, worker
            if not running:
                return
            (ready, *_), _ = ray.wait([*running])
            shard, worker = running.pop(ready)
            yield shard, _result(ready, shard)
            idle = [worker]
    finally:
        for worker in actors:
            ray.kill(worker)


class _Actor:
    """A process with a pipeline of its own, in one thread."""

    def __init__(
        self, pipeline: tuple[bytes, bytes], wanted: EmbedOptions, gpu: bool, code: Path | None
    ) -> None:
        if code is not None:
            from spacy.util import import_file

            import_file("python_code", code)
        if gpu:
            from spacy import require_gpu

            require_gpu(0)  # of those that it sees, which is the one it was given
        config, data = pipeline
        parsed = Config().from_bytes(config, interpolate=False)
        nlp = get_lang_class(parsed["nlp"]["lang"]).from_config(parsed).from_bytes(data)
        self._embedder = Embedder(nlp, wanted)

    def embed(self, shard: Shard) -> bytes:
        """The content of a shard's file."""
        return self._embedder(shard)


def _result(reference: Any, shard: Shard) -> bytes:
    try:
        return ray.get(reference)
    except RayActorError as error:
        raise ChildProcessError(
            f"Shard {shard.number} (items from {shard.first} on, of {shard.source}): the actor died, and so did those"
            f" that tried again. For want of memory, perhaps: give Ray fewer cores than the machines have ({error})"
        ) from error
    except RayTaskError as error:
        raise error.cause from error

"""Computation of the vectors of a corpus on a Ray cluster, with one process per core or per GPU."""

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

# Shards that an actor computes or has in its queue. With two, no actor is idle while this process writes a file.
_SHARDS_PER_ACTOR = 2
# Number of times that a shard is computed again after its actor has died.
_RETRIES = 3


def embed_on_ray(
    nlp: Language,
    options: EmbedOptions,
    shards: Iterable[Shard],
    *,
    gpu: bool = False,
    code: Path | None = None,
) -> Iterator[tuple[Shard, bytes]]:
    """Compute the vectors of shards (groups of consecutive texts) on a Ray cluster.

    The function uses the cluster that this process has joined, or the cluster at the address in the
    environment variable `RAY_ADDRESS`. If there is no such cluster, Ray starts a cluster on this machine.
    Each actor (a process of Ray) receives the pipeline from this process, and returns the content of shard
    files. So the machines need no shared folder. If an actor dies, Ray restarts the actor, and computes the
    shards of this actor again.

    Args:
        gpu: use one actor per GPU instead of one per core.
        code: Python file that every actor imports. The file must have the same path on all machines.

    Yields:
        A shard, and the content of the file with its vectors, in the order in which the shards are ready.

    Raises:
        ChildProcessError: actors have died repeatedly while they computed the same shard, or no actor could
            start.
        ValueError: the cluster has no cores; or `gpu` is set, but the cluster has no GPUs.
    """
    # Ray sends usage statistics to its developers unless this is set.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    resource = "GPU" if gpu else "CPU"
    n_actors = int(ray.cluster_resources().get(resource, 0))
    if not n_actors:
        raise ValueError(
            f"The Ray cluster has no {resource}. Its resources are {ray.cluster_resources()}"
        )
    actor: Any = ray.remote(_Actor).options(
        num_cpus=0 if gpu else 1,
        num_gpus=1 if gpu else 0,
        max_restarts=-1,
        max_task_retries=_RETRIES,
    )
    pipeline = ray.put((nlp.config.to_bytes(), nlp.to_bytes()))
    actors = [actor.remote(pipeline, options, gpu, code) for _ in range(n_actors)]
    remaining = iter(shards)
    running: dict[Any, tuple[Shard, Any]] = {}
    try:
        idle = actors * _SHARDS_PER_ACTOR
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
    """Ray actor: a process that has its own copy of the pipeline, and computes one shard at a time."""

    def __init__(
        self, pipeline: tuple[bytes, bytes], options: EmbedOptions, gpu: bool, code: Path | None
    ) -> None:
        if code is not None:
            from spacy.util import import_file

            import_file("python_code", code)
        if gpu:
            from spacy import require_gpu

            require_gpu(0)  # the first visible GPU is the one that Ray has assigned to the actor
        config, data = pipeline
        parsed = Config().from_bytes(config, interpolate=False)
        nlp = get_lang_class(parsed["nlp"]["lang"]).from_config(parsed).from_bytes(data)
        self._embedder = Embedder(nlp, options)

    def embed(self, shard: Shard) -> bytes:
        """Compute the vectors of a shard, and return the content of the shard file."""
        return self._embedder(shard)


def _result(reference: Any, shard: Shard) -> bytes:
    try:
        return ray.get(reference)
    except RayActorError as error:
        raise ChildProcessError(
            f"Shard {shard.number} ({shard.source}, from item {shard.first} on) failed: its Ray actor died, also in"
            f" {_RETRIES} retries. If memory was short, let Ray use fewer cores per machine. Ray reports: {error}"
        ) from error
    except RayTaskError as error:
        raise error.cause from error

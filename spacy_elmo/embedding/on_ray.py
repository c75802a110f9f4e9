"""Embedding on a Ray cluster, with an actor per core or per GPU."""

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

# Shards per actor, computed or queued: no actor is idle while this process writes a file.
_SHARDS_PER_ACTOR = 2
# A shard during which this many actors have died, one after the other, is given up.
_RETRIES = 3


def embed_on_ray(
    nlp: Language,
    options: EmbedOptions,
    shards: Iterable[Shard],
    *,
    gpu: bool = False,
    code: Path | None = None,
) -> Iterator[tuple[Shard, bytes]]:
    """Yield the shards and the contents of their files, as they are ready.

    The cluster is the one that `RAY_ADDRESS` names or that this process has joined; without either, a cluster of the
    cores of this machine is started. Actors receive the pipeline from this process and return the contents, so the
    machines need no shared folder. A lost actor is started again, and its shards are computed again.

    Args:
        gpu: use an actor per GPU instead of per core.
        code: Python file that every actor imports; it must have this path on each machine.

    Raises:
        ChildProcessError: several actors have died during one shard, or none could start.
        ValueError: the cluster has no such resources; see `Embedder`.
    """
    # Ray sends usage statistics to its developers unless this is set.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    resource = "GPU" if gpu else "CPU"
    n_actors = int(ray.cluster_resources().get(resource, 0))
    if not n_actors:
        raise ValueError(f"The Ray cluster has no {resource}; it has {ray.cluster_resources()}")
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
    """Process with its own copy of the pipeline, in one thread."""

    def __init__(
        self, pipeline: tuple[bytes, bytes], options: EmbedOptions, gpu: bool, code: Path | None
    ) -> None:
        if code is not None:
            from spacy.util import import_file

            import_file("python_code", code)
        if gpu:
            from spacy import require_gpu

            require_gpu(0)  # the first visible GPU, which Ray has assigned to the actor
        config, data = pipeline
        parsed = Config().from_bytes(config, interpolate=False)
        nlp = get_lang_class(parsed["nlp"]["lang"]).from_config(parsed).from_bytes(data)
        self._embedder = Embedder(nlp, options)

    def embed(self, shard: Shard) -> bytes:
        """Compute the content of a shard's file."""
        return self._embedder(shard)


def _result(reference: Any, shard: Shard) -> bytes:
    try:
        return ray.get(reference)
    except RayActorError as error:
        raise ChildProcessError(
            f"Shard {shard.number} (items from {shard.first} on, of {shard.source}): the actor died, and so did the"
            f" actors of {_RETRIES} retries, possibly for lack of memory. Let Ray use fewer cores per machine ({error})"
        ) from error
    except RayTaskError as error:
        raise error.cause from error

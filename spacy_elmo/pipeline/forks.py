"""One torch thread in processes that are forked from this one, such as the workers of `nlp.pipe(n_process=2)`."""

from __future__ import annotations

import os

import torch

_guarded = False


def guard_forks() -> None:
    """Restrict torch to one thread in processes that are forked from now on. The first component that is made does so.

    A fork copies the memory of torch's thread pool but not its threads, so the first parallel operation in the child
    would wait for them forever.
    """
    global _guarded
    if not _guarded and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_use_one_thread)
        _guarded = True


def _use_one_thread() -> None:
    torch.set_num_threads(1)

"""Torch in the forked workers of `nlp.pipe(n_process=2)`."""

from __future__ import annotations

import os

import torch

_guarded = False


def guard_forks() -> None:
    """Let forked processes use one thread of torch each; called when a component is first built.

    A fork copies the memory of torch's pool of threads, but not the threads: in the child, the first parallel
    operation would wait for them for ever.
    """
    global _guarded
    if not _guarded and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_use_one_thread)
        _guarded = True


def _use_one_thread() -> None:
    torch.set_num_threads(1)

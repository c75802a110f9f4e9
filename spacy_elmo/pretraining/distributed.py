"""Distributed training: communication of several processes that train one model."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

T = TypeVar("T")

# Long, because the other processes wait while the first one prepares the text. torchrun notices processes that died.
_TIMEOUT = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """The group of processes that train one model together. By default there is only this process.

    All processes have the same weights and optimizers, and each computes the gradients of a part of the batch. One
    explicit all-reduce adds the gradients, because `DistributedDataParallel` does not support sparse ones, such as
    those of the few thousand rows of a sampled softmax.
    """

    rank: int = 0
    """Index of this process, from 0."""
    size: int = 1
    """Number of processes."""

    @property
    def first(self) -> bool:
        """True in the first process. Only the first process writes files and prints."""
        return self.rank == 0

    def sum(self, value: float) -> float:
        """Return the sum of the values of all processes, with the same bits in every process."""
        if self.size == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total)

    def sum_gradients(self, dense: Sequence[nn.Parameter], sparse: Sequence[nn.Parameter]) -> None:
        """Replace the gradient of each parameter by its sum over all processes. A missing gradient counts as zeros.
        The gradients of `sparse` contain only some rows of the parameter."""
        if self.size == 1:
            return
        rows = _rows_with_gradient(sparse)
        gradients = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in dense]
        gradients += [_gradient_of_rows(p, r) for p, r in zip(sparse, rows, strict=True)]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        sizes = [gradient.numel() for gradient in gradients]
        sums = [
            total.view_as(gradient)
            for total, gradient in zip(flat.split(sizes), gradients, strict=True)
        ]
        for parameter, gradient in zip(dense, sums[: len(dense)], strict=True):
            parameter.grad = gradient
        for parameter, indices, gradient in zip(sparse, rows, sums[len(dense) :], strict=True):
            parameter.grad = torch.sparse_coo_tensor(
                indices[None], gradient, parameter.shape, is_coalesced=True, check_invariants=False
            )

    def broadcast(self, value: T) -> T:
        """In every process, return the `value` of the first process."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def on_first(self, work: Callable[[], T]) -> T | None:
        """Call `work` in the first process while the other processes wait. Return its result there, and None in the
        other processes."""
        result, done = None, False
        try:
            if self.first:
                result = work()
                done = True
        finally:
            done = self.broadcast(done)
        if not done:
            raise SystemExit(1)
        return result


def _rows_with_gradient(sparse: Sequence[nn.Parameter]) -> list[Tensor]:
    """Return for each parameter the rows that have a gradient in a process, in ascending order."""
    if not sparse:
        return []
    marks = [torch.zeros(len(p), dtype=torch.uint8, device=p.device) for p in sparse]
    for mark, parameter in zip(marks, sparse, strict=True):
        if parameter.grad is not None:
            mark[parameter.grad.coalesce().indices()[0]] = 1
    flat = torch.cat(marks)
    dist.all_reduce(flat, dist.ReduceOp.MAX)
    return [mark.nonzero()[:, 0] for mark in flat.split([len(mark) for mark in marks])]


def _gradient_of_rows(parameter: nn.Parameter, indices: Tensor) -> Tensor:
    """Return the gradient of the rows `indices` (ascending) as a dense tensor."""
    rows = parameter.new_zeros((len(indices), *parameter.shape[1:]))
    if parameter.grad is not None:
        gradient = parameter.grad.coalesce()
        rows[torch.searchsorted(indices, gradient.indices()[0])] = gradient.values()
    return rows


def device(gpu_id: int) -> torch.device:
    """Return the CPU if `gpu_id` is -1, otherwise a GPU: for the first process on a machine GPU `gpu_id`, for the
    second the next one, and so on."""
    if gpu_id < 0:
        return torch.device("cpu")
    number = gpu_id + int(os.environ.get("LOCAL_RANK", 0))
    if number >= torch.cuda.device_count():
        raise ValueError(
            f"There is no GPU {number} (`--gpu-id`): torch finds {torch.cuda.device_count()} GPUs"
        )
    return torch.device(f"cuda:{number}")


@contextlib.contextmanager
def join(device: torch.device) -> Iterator[Processes]:
    """Create a context with the group of processes that `torchrun` has started, or only this process without it."""
    if not dist.is_torchelastic_launched():
        yield Processes()
        return
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    # Import this module before the process group exists. Its functions keep the group that exists at the import as a
    # default argument, and torch imports it later (in `use_deterministic_algorithms`). The group would then outlive
    # `destroy_process_group`, and one of its threads could abort the process when it frees a tensor while Python exits.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group(backend, timeout=_TIMEOUT)
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()

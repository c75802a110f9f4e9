"""Several processes that train one model: what they tell each other."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

T = TypeVar("T")

# The others wait while the first prepares the text. A process that died is noticed by torchrun, not by waiting.
_WAIT = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together; by default it is alone.

    All hold the same weights and optimizers, read different parts of each step's batch, and take the same step with
    the sum of all gradients. The sum is one explicit all-reduce and not `DistributedDataParallel`, which knows no
    sparse gradients: under the sampled softmax a step touches some thousand of the head's rows, and the others
    would travel as zeros. Only the first process writes files.
    """

    number: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.number == 0

    def sum(self, value: float) -> float:
        """The sum of every process's value, the same in all of them to the last bit."""
        if self.size == 1:
            return value
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total)
        return float(total)

    def sum_gradients(self, dense: Sequence[nn.Parameter], sparse: Sequence[nn.Parameter]) -> None:
        """Replace each gradient by its sum over all processes; one that is absent here counts as zeros.

        Args:
            sparse: the parameters whose gradients name rows.
        """
        if self.size == 1:
            return
        rows = _touched(sparse)
        parts = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in dense]
        parts += [_at(p, touched) for p, touched in zip(sparse, rows, strict=True)]
        flat = torch.cat([part.flatten() for part in parts])
        dist.all_reduce(flat)
        sums = [
            total.view_as(part)
            for total, part in zip(flat.split([p.numel() for p in parts]), parts, strict=True)
        ]
        for parameter, gradient in zip(dense, sums[: len(dense)], strict=True):
            parameter.grad = gradient
        for parameter, touched, gradient in zip(sparse, rows, sums[len(dense) :], strict=True):
            parameter.grad = torch.sparse_coo_tensor(
                touched[None], gradient, parameter.shape, is_coalesced=True, check_invariants=False
            )

    def broadcast(self, value: T) -> T:
        """The first process's value, in every process."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def on_first_rank(self, work: Callable[[], object]) -> None:
        """Let the first process do something while the others wait.

        Raises:
            SystemExit: in the others, if it failed; the first has said why.
        """
        done = False
        try:
            if self.first:
                work()
                done = True
        finally:
            done = self.broadcast(done)
        if not done:
            raise SystemExit(1)


def _touched(sparse: Sequence[nn.Parameter]) -> list[Tensor]:
    """The rows that each parameter's gradient names in any process, ascending."""
    if not sparse:
        return []
    marks = [torch.zeros(len(p), dtype=torch.uint8, device=p.device) for p in sparse]
    for mark, parameter in zip(marks, sparse, strict=True):
        if parameter.grad is not None:
            mark[parameter.grad.coalesce().indices()[0]] = 1
    flat = torch.cat(marks)
    dist.all_reduce(flat, dist.ReduceOp.MAX)
    return [mark.nonzero()[:, 0] for mark in flat.split([len(mark) for mark in marks])]


def _at(parameter: nn.Parameter, touched: Tensor) -> Tensor:
    """(len(touched), ...) the gradient of these rows; zeros where it does not name one."""
    rows = parameter.new_zeros((len(touched), *parameter.shape[1:]))
    if parameter.grad is not None:
        gradient = parameter.grad.coalesce()
        rows[torch.searchsorted(touched, gradient.indices()[0])] = gradient.values()
    return rows


def device(gpu_id: int) -> torch.device:
    """The CPU for -1, else a GPU: of several processes on a machine, the first takes `gpu_id`, the second the next.

    Raises:
        ValueError: torch sees no such GPU.
    """
    if gpu_id < 0:
        return torch.device("cpu")
    number = gpu_id + int(os.environ.get("LOCAL_RANK", 0))
    if number >= torch.cuda.device_count():
        raise ValueError(f"--gpu-id {number}: torch sees {torch.cuda.device_count()} GPUs")
    return torch.device(f"cuda:{number}")


@contextlib.contextmanager
def join(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that `torchrun` started; without it, this one is alone."""
    if not dist.is_torchelastic_launched():
        yield Ranks()
        return
    backend = "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=_WAIT)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()

"""One training run in several processes, which divide every batch.

`torchrun` starts the processes, and each of them uses its own GPU if there are GPUs.
Each process computes the logits of its share of a batch and receives the logits of the
other shares, so that every process computes the loss of the whole batch, even if the
loss couples samples. The gradients of the shares are added up. Batches, steps and
weights equal those of a single process up to the rounding of sums, but dropout draws
different masks. Batch norm needs the statistics of the whole batch, which torch gathers
only on GPUs, so without GPUs a network with batch norm is refused.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from softmax_temperature.runner.distributed import PROCESSES, join_group


class Processes:
    """`count` processes that train together, of which this one is number `rank`.

    Only process 0 writes files. A single process trains as usual.
    """

    def __init__(self, count: int, rank: int) -> None:
        self.count = count
        self.rank = rank

    def train_together(self, network: nn.Module, batch_size: int) -> nn.Module:
        """Return the network to call in training.

        This network's gradients are sums over all processes, and its batch norms are
        synchronised. Raises ValueError if the batch cannot be divided evenly, or for a
        batch norm that is frozen or not on a GPU.
        """
        if self.count == 1:
            return network
        if batch_size % self.count:
            raise ValueError(
                f"batch_size must be a multiple of the {self.count} processes, "
                f"got {batch_size}"
            )
        norms = [
            module
            for module in network.modules()
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)
        ]
        trained = f"to be trained by {self.count} processes"
        for norm in norms:
            if "weight" in dict(norm.named_buffers(recurse=False)):
                raise ValueError(
                    "network must have no frozen batch norm (as in correlated pairs) "
                    f"{trained}"
                )
        if norms and not next(network.parameters()).is_cuda:
            raise ValueError(f"network must have no batch norm {trained} without GPUs")
        shared = DistributedDataParallel(
            nn.SyncBatchNorm.convert_sync_batchnorm(network)
        )
        # torch's own hook averages the gradients; this one sums them. It is a lambda,
        # because torch rejects a function whose annotations differ from those that
        # torch expects.
        shared.register_comm_hook(None, lambda _, bucket: _sum(bucket))
        return shared

    def share(self, batch: Tensor) -> Tensor:
        """This process's part of `batch`."""
        return batch.tensor_split(self.count)[self.rank]

    def all_logits(self, share: Tensor) -> Tensor:
        """Gather the logits (n, ...) of the whole batch from all processes' shares.

        Gradients flow back only through this process's share.
        """
        if self.count == 1:
            return share
        parts = self._gathered(share.detach())
        parts[self.rank] = share
        return torch.cat(parts)

    def over_all(
        self, rows: Tensor, compute: Callable[[Tensor], tuple[Tensor, ...]]
    ) -> tuple[Tensor, ...]:
        """Apply `compute`, which works row by row, to `rows` (n, ...) in all processes.

        Each process computes a part of the results (n, ...), and receives the other
        parts.
        """
        if self.count == 1:
            return compute(rows)
        # All parts must have the same size, so the last parts repeat rows from the
        # start; the repeated rows are removed from the result.
        size = -(-len(rows) // self.count)
        first = self.rank * size
        places = torch.arange(first, first + size, device=rows.device) % len(rows)
        parts = [self._gathered(result) for result in compute(rows[places])]
        return tuple(torch.cat(part)[: len(rows)] for part in parts)

    def _gathered(self, part: Tensor) -> list[Tensor]:
        empty = torch.empty_like(part, memory_format=torch.contiguous_format)
        parts = [torch.empty_like(empty) for _ in range(self.count)]
        distributed.all_gather(parts, part.contiguous())
        return parts


@cache
def processes() -> Processes:
    """The processes that `torchrun` started with this one, or this one alone."""
    if PROCESSES == 1:
        return Processes(1, 0)
    join_group()
    return Processes(PROCESSES, distributed.get_rank())


def _sum(bucket: Any) -> torch.futures.Future[Tensor]:
    work = distributed.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])

"""One training by several processes, one per GPU, started by `torchrun`: they divide
every batch among them.

Each computes the logits of its share of a batch and receives those of the others, so
that all have the loss of the whole batch, whatever couples its samples; the gradients
of the shares are added up. Batches, steps and weights are those of one process, to the
rounding of sums; dropout draws other masks. Batch norm needs the statistics of the
whole batch, which torch gathers on GPUs alone: without GPUs a network with batch norm
is refused.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from softmax_temperature.runner.distributed import PROCESSES, join_group


class Processes:
    """`count` processes that train together, of which this is number `rank`; one alone
    changes nothing. 0 writes.
    """

    def __init__(self, count: int, rank: int) -> None:
        self.count, self.rank = count, rank

    def train_together(self, network: nn.Module, batch_size: int) -> nn.Module:
        """The network to call when training: its gradients become sums over all
        processes; batch norms are replaced.

        Raises ValueError if the batch cannot be divided evenly, or for a batch norm
        that is frozen or not on a GPU.
        """
        if self.count == 1:
            return network
        if batch_size % self.count:
            raise ValueError(
                f"batch_size must be a multiple of the {self.count} processes, got {batch_size}"
            )
        norms = [
            each
            for each in network.modules()
            if isinstance(each, nn.BatchNorm1d | nn.BatchNorm2d)
        ]
        trained = f"to be trained by {self.count} processes"
        if any("weight" in dict(each.named_buffers(recurse=False)) for each in norms):
            raise ValueError(
                f"network must have no frozen batch norm, as correlated pairs have, {trained}"
            )
        if norms and not next(network.parameters()).is_cuda:
            raise ValueError(f"network must have no batch norm {trained} without GPUs")
        shared = DistributedDataParallel(
            nn.SyncBatchNorm.convert_sync_batchnorm(network)
        )
        # Torch's own takes the mean. A lambda, because torch compares annotations with
        # types, and here they are text.
        shared.register_comm_hook(None, lambda _, bucket: _sum(bucket))
        return shared

    def share(self, batch: Tensor) -> Tensor:
        """This process's part of a batch."""
        return batch.tensor_split(self.count)[self.rank]

    def all_logits(self, own: Tensor) -> Tensor:
        """The logits (n, ...) of the whole batch from those of the share; these alone
        carry gradients.
        """
        if self.count == 1:
            return own
        parts = self._gathered(own.detach())
        parts[self.rank] = own
        return torch.cat(parts)

    def over_all(
        self, rows: Tensor, compute: Callable[[Tensor], tuple[Tensor, ...]]
    ) -> tuple[Tensor, ...]:
        """The results (n, ...) of a row-wise function of rows (n, ...), each process
        computing some; on the CPU.
        """
        if self.count == 1:
            return compute(rows)
        each = -(-len(rows) // self.count)
        # All parts have one size; what is beyond the end is left out again.
        mine = torch.arange(
            self.rank * each, (self.rank + 1) * each, device=rows.device
        ) % len(rows)
        return tuple(
            torch.cat(self._gathered(result))[: len(rows)]
            for result in compute(rows[mine])
        )

    def _gathered(self, own: Tensor) -> list[Tensor]:
        parts = [
            torch.empty_like(own, memory_format=torch.contiguous_format)
            for _ in range(self.count)
        ]
        distributed.all_gather(parts, own.contiguous())
        return parts


@cache
def processes() -> Processes:
    """The processes that `torchrun` started together with this one, which joins them;
    else this one alone.
    """
    if PROCESSES == 1:
        return Processes(1, 0)
    join_group()
    return Processes(PROCESSES, distributed.get_rank())


def _sum(bucket: Any) -> torch.futures.Future[Tensor]:
    work = distributed.all_reduce(bucket.buffer(), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])

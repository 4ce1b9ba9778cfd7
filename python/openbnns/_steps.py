"""The steps of fit, in one process or over a group, and what an epoch adds up."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from ._errors import Error
from .data import Loader
from .distributed import Group, share
from .nn.module import Module
from .nn.training import value_and_grad
from .optim import Optimizer, clip_grad_norm

Record = dict[str, Any]


class Steps:
    """One process. `rows` has, for each shard of this rank, the loss and the metrics times the samples so far."""

    rank, first, shards, all_shards = 0, 0, 1, 1  # first: this rank's first shard

    def __init__(self, model: Module, loss: Callable[..., Any], optimizer: Optimizer,
                 functions: Mapping[str, Callable[[np.ndarray, np.ndarray], float]], clip_norm: float | None) -> None:
        self.model, self.optimizer, self.functions, self.clip_norm = model, optimizer, functions, clip_norm
        self.names = ["loss", *functions]
        self.run = value_and_grad(model, loss)
        self.stopped = False

    def begin(self, saved: Record | None) -> None:
        """Begins an epoch, or goes on with what save() gave, on any number of ranks."""
        self.rows, self.count = np.zeros((self.shards, len(self.names))), 0
        if saved is not None:
            self.count = saved["count"]
            for k, name in enumerate(self.names):
                rows = saved.get("shards", {}).get(name, [])
                if len(rows) != self.all_shards:
                    rows = [saved["sums"].get(name, 0.0)] + [0.0] * (self.all_shards - 1)
                self.rows[:, k] = rows[self.first:self.first + self.shards]

    def step(self, batch: tuple[Any, ...], interrupt: Any) -> float:
        """One step with a batch; its loss. Afterwards `stopped` says whether the training was interrupted."""
        value = self._measured(batch, 0)
        if self.clip_norm is not None:
            clip_grad_norm(self.optimizer.parameters, self.clip_norm)
        self.optimizer.step()
        self.count += len(batch[-1])
        self.stopped = interrupt.seen
        return value

    def _measured(self, batch: tuple[Any, ...], shard: int) -> float:
        value, n = self.run.run(*batch), len(batch[-1])
        self.rows[shard, 0] += value * n
        if self.run.prediction is not None:
            for k, function in enumerate(self.functions.values()):
                self.rows[shard, k + 1] += function(self.run.prediction, batch[-1]) * n
        return value

    def all_rows(self) -> np.ndarray:
        return self.rows

    def means(self) -> dict[str, float]:
        return {name: float(v) / max(1, self.count) for name, v in zip(self.names, self.all_rows().sum(axis=0))}

    def save(self) -> Record:
        rows = self.all_rows()
        return {"count": self.count, "sums": dict(zip(self.names, rows.sum(axis=0).tolist())),
                "shards": dict(zip(self.names, rows.T.tolist()))}

    def share(self, value: Any) -> Any:
        """What rank 0 has."""
        return value

    def any(self, flag: bool) -> bool:
        """Whether a rank says so."""
        return flag


class GroupSteps(Steps):
    """Many ranks: each runs its shards of a batch. Whatever a shard computes follows from its number alone."""

    def __init__(self, group: Group, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.group, self.rank, self.shards = group, group.rank, group.shards
        self.first, self.all_shards = group.rank * group.shards, group.size * group.shards
        self.mark = np.zeros(1, np.float32)  # whether a rank was interrupted
        self.buffers = [b for _, b in self.model.named_buffers()]
        self.statistics = [b for b in self.buffers if b.dtype == np.float32]  # counts move equally in every shard

    def check(self, loader: Loader, epochs: int) -> None:
        """Refuses, before the first step, batches that the shards do not divide, and ranks that differ."""
        rest = loader.length % loader.batch_size
        self.group.items(loader.batch_size, 0)
        if rest and not loader.drop_last and rest % self.all_shards:
            raise Error(f"fit: the last batch has {rest} samples, expected a multiple of {self.all_shards} = shards of all ranks: "
                        "give a Loader with drop_last=True")
        mine = [loader.length, int(loader.batch_size), int(loader.seed), int(epochs)]
        if self.share(mine) != mine:
            raise Error(f"fit: rank {self.rank} has other samples, batch_size, seed or epochs, {mine}, expected those of rank 0")

    def share_state(self) -> None:
        """All ranks begin with the numbers of rank 0."""
        optimizer = self.optimizer
        self.group.broadcast([p.array for p in self.model.parameters()] + self.buffers + optimizer.accumulators)
        optimizer.count, optimizer.lr, counters = self.share([optimizer.count, float(optimizer.lr), self.model.counters()])
        self.model.set_counters(counters)

    def step(self, batch: tuple[Any, ...], interrupt: Any) -> float:
        before, counters = [b.copy() for b in self.buffers], self.model.counters()
        gradients = [p.gradient.array for p in self.optimizer.parameters if p.requires_grad]
        value = 0.0
        for s in range(self.shards):
            for buffer, start in zip(self.buffers, before):
                np.copyto(buffer, start)
            if counters:
                self.model.set_counters({k: _of_shard(k, v, self.first + s) for k, v in counters.items()})
            value += self._measured(_part(batch, self.group.items(len(batch[-1]), s)), s) / self.shards
            self.mark[0] = interrupt.seen
            self.group.reduce_start(s, gradients)
            self.group.reduce_start(s, self.statistics)
            self.group.reduce_start(s, [self.mark], "max")
        if counters:
            drawn = self.model.counters()
            self.model.set_counters({k: v if k.endswith("_seed") else drawn[k] for k, v in counters.items()})
        self.group.reduce_wait()
        if self.clip_norm is not None:
            clip_grad_norm(self.optimizer.parameters, self.clip_norm)
        self.optimizer.step()
        self.count += len(batch[-1])
        self.stopped = bool(self.mark[0])
        return value

    def all_rows(self) -> np.ndarray:
        rows = np.zeros((self.all_shards, len(self.names)))
        for rank in range(self.group.size):
            part = rows[rank * self.shards:(rank + 1) * self.shards]
            if rank == self.rank:
                part[:] = self.rows
            self.group.broadcast([part.view(np.uint8)], rank)  # the library knows no float64
        return rows

    def share(self, value: Any) -> Any:
        return share(self.group, value)

    def any(self, flag: bool) -> bool:
        self.mark[0] = flag
        self.group.all_reduce([self.mark], "max")
        return bool(self.mark[0])


def _of_shard(name: str, value: int, shard: int) -> int:
    """A counter of a random layer in a shard: each has a seed of its own, the first that of a single process."""
    return (value + shard * 0x9E3779B1) % 2**31 if name.endswith("_seed") else value


def _part(value: Any, items: slice) -> Any:
    return tuple(_part(v, items) for v in value) if isinstance(value, tuple) else value[items]

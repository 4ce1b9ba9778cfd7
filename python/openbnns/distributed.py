"""One training over many processes: mpirun -n 4 python program.py ends with the same weights, bit for bit, as one process.

    from openbnns.distributed import Group
    with Group() as group:                                  # all ranks that mpirun started, or this process alone
        group.broadcast([p.data for p in model.parameters()])
        for x, y in loader:
            for s in range(group.shards):
                part = group.items(len(y), s)               # a slice: these items of the batch are this shard's
                step(x[part], y[part])                      # nn.value_and_grad
                group.reduce_start(s, [p.grad for p in model.parameters()])
            group.step(optimizer)                           # waits for the mean over all shards, and steps

fit(..., group=group) does this. Every rank makes the same calls; docs/distributed.md says what a shard is. Without mpirun a
group has one rank, also where there is no MPI. An error on one rank leaves the group without waiting for the others.
"""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import Any, Iterable

import numpy as np

from . import _core
from ._alone import MAX, MEAN, SUM, Alone
from ._errors import Error

__all__ = ["Group"]

_REDUCTIONS = {"sum": SUM, "mean": MEAN, "max": MAX}
_MODES = {"deterministic": 0, "fast": 1}
_WIRES = ("float32", "float16", "bfloat16")


def _launched() -> bool:
    return any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"))


def _chosen(name: str, value: Any, known: Iterable[str]) -> Any:
    if value not in known:
        raise Error(f"Group: {name} is {value!r}, expected one of {', '.join(known)}")
    return value


class Group:
    """The ranks that train together.

    mode      "deterministic": the same bits for any number of ranks; "fast": MPI orders the sums, one shard for each rank
    wire      what travels: "float32", or "bfloat16" or "float16" in half the bytes
    shards    of each batch on all ranks together, a power of two; 0: 8
    timeout   seconds until a rank that does not come is an error; 0: 30
    """

    def __init__(self, mode: str = "deterministic", wire: str = "float32", shards: int = 0, timeout: float = 0.0) -> None:
        number = _MODES[_chosen("mode", mode, _MODES)]
        _chosen("wire", wire, _WIRES)
        if not isinstance(shards, (int, np.integer)) or shards < 0:
            raise Error(f"Group: shards is {shards!r}, expected a power of two, or 0")
        reason = _core.load_mpi()
        if reason and _launched():
            raise Error(f"Group: libbnns_mpi cannot be loaded in this process of an mpirun ({reason}). Install an MPI with its headers "
                        "(Debian: libopenmpi-dev openmpi-bin), then this package again with `pip install .`")
        self._handle: _core.Group | Alone = (Alone(number == 1, wire, int(shards)) if reason else
                                             _core.Group(number, wire, int(shards), float(timeout)))
        self._given: set[int] = set()  # addresses of what was started

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return self._handle.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._handle.size

    @property
    def shards(self) -> int:
        """The number of shards that this rank runs in every step."""
        return self._handle.shards

    def items(self, batch: int, shard: int) -> slice:
        """Which of the `batch` items of all ranks belong to a shard of this rank, counted from 0."""
        first, count = self._handle.items(batch, shard)
        return slice(first, first + count)

    def broadcast(self, arrays: Iterable[Any], root: int = 0) -> None:
        """Copies arrays of one rank to all others."""
        self._handle.broadcast(_described(arrays), root)

    def all_reduce(self, arrays: Iterable[Any], reduction: str = "sum") -> None:
        """"sum", "mean" or "max" over the ranks, one array of each: for what belongs to a rank, such as times and counts."""
        self._handle.all_reduce(_described(arrays), _REDUCTIONS[_chosen("reduction", reduction, _REDUCTIONS)])

    def reduce_start(self, shard: int, arrays: Iterable[Any], reduction: str = "mean") -> None:
        """Gives what one shard computed to the reduction over all shards, and returns. The arrays are copied; every shard names
        the same ones, in the same order."""
        described = _described(arrays)
        self._handle.reduce_start(shard, described, _REDUCTIONS[_chosen("reduction", reduction, _REDUCTIONS)])
        self._given.update(a.address for a in described)

    def reduce_wait(self) -> None:
        """Waits for all reductions that were started, and writes their results over the arrays."""
        self._handle.reduce_wait()
        self._given.clear()

    def step(self, optimizer: Any, *arrays: Any) -> None:
        """reduce_wait(), then the step of an optimizer of openbnns.optim, or of the overlay's with its arrays."""
        trained = [p.gradient.array for p in getattr(optimizer, "parameters", ()) if p.requires_grad]
        for i, gradient in enumerate(_described(arrays[1]) if len(arrays) > 1 else trained):
            if gradient.address not in self._given:
                raise Error(f"Group: gradients[{i}] was not given to reduce_start since the last wait")
        self.reduce_wait()
        optimizer.step(*arrays)

    def finalize(self) -> None:
        """Ends the group; every rank calls it."""
        self._handle.finalize()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.finalize()

    def __repr__(self) -> str:
        return f"Group(rank {self.rank} of {self.size}, {self.shards} shards)"


def _described(arrays: Iterable[Any]) -> list[_core.Array]:
    return [a if isinstance(a, _core.Array) else _core.Array(a) for a in arrays]


def share(group: Group, value: Any) -> Any:
    """A JSON value of rank 0, on every rank."""
    text = json.dumps(value).encode() if group.rank == 0 else b""
    length = np.array([len(text)], np.int64)
    group.broadcast([length])
    memory = np.frombuffer(text, np.uint8).copy() if group.rank == 0 else np.zeros(int(length[0]), np.uint8)
    group.broadcast([memory])
    return json.loads(memory.tobytes())

"""A group of one rank without libbnns_mpi: the same tree of shards in NumPy, so that the bits are those of many ranks."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _core
from ._errors import Error

SUM, MEAN, MAX = 0, 1, 2
_SMALLEST = float(np.finfo(np.float32).tiny)


def _flush(x: np.ndarray, below: float = _SMALLEST) -> np.ndarray:
    """Subnormal numbers as zeros, which they are in the library's floating-point mode."""
    return np.where(np.abs(x) < np.float32(below), np.copysign(np.float32(0), x), x)


def _rounded(x: np.ndarray, wire: str) -> np.ndarray:
    """f32 numbers as they are after traveling in another type."""
    if wire == "float16":
        with np.errstate(over="ignore"):
            return x.astype(np.float16).astype(np.float32)
    if wire == "bfloat16":
        bits = np.ascontiguousarray(x).view(np.uint32)
        even = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(x), x, even.view(np.float32))
    return x


def _combined(a: np.ndarray, b: np.ndarray, reduction: int) -> np.ndarray:
    a, b = _flush(a), _flush(b)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where((a > b) | np.isnan(a), a, b) if reduction == MAX else _flush(a + b)


def _memory(array: _core.Array, i: int) -> np.ndarray:
    """The memory behind an array, as NumPy sees it."""
    if array.read_only:
        raise Error(f"Group: arrays[{i}] is read-only, expected an array that can be written")
    owner: Any = array.owner
    if hasattr(owner, "detach") and str(owner.dtype) != "torch.bfloat16":
        owner = owner.detach().numpy()
    if not isinstance(owner, np.ndarray):
        raise Error(f"Group: arrays[{i}] is {type(owner).__name__}, expected an array of NumPy where libbnns_mpi is not installed")
    if array.dtype not in ("float32", "float16", "bfloat16"):
        raise Error(f"Group: arrays[{i}] is of dtype {array.dtype}, expected float32, float16 or bfloat16")
    return owner


class Alone:
    """What _core.Group is on one rank. Messages are the library's."""

    rank, size = 0, 1

    def __init__(self, fast: bool, wire: str, shards: int) -> None:
        if fast and shards not in (0, 1):
            raise Error(f"Group: parameters->shards is {shards}, expected 0: in fast mode each of the 1 ranks has one")
        if shards & (shards - 1):
            raise Error(f"Group: parameters->shards is {shards}, expected a power of two")
        self.wire, self.shards = wire, 1 if fast else shards or 8
        self._ended = False
        self._levels: list[list[tuple[np.ndarray, int]]] = []  # of each shard so far: memory and reduction of its arrays
        self._nodes: list[dict[int, np.ndarray]] = []          # of each array: sums of the tree that wait for their neighbor

    def items(self, batch: int, shard: int) -> tuple[int, int]:
        self._live()
        self._check(shard)
        if batch % self.shards:
            raise Error(f"Group: batch is {batch}, expected a multiple of {self.shards} = shards of all ranks")
        count = batch // self.shards
        return shard * count, count

    def _check(self, shard: int) -> None:
        if not 0 <= shard < self.shards:
            raise Error(f"Group: shard is {shard}, expected less than {self.shards} = shards of this rank")

    def broadcast(self, arrays: Sequence[_core.Array], root: int) -> None:
        self._live()
        if root != 0:
            raise Error(f"Group: root is {root}, expected less than 1 = ranks")

    def all_reduce(self, arrays: Sequence[_core.Array], reduction: int) -> None:
        self._live()
        for memory in [_memory(a, i) for i, a in enumerate(arrays)]:
            _write(memory, _rounded(memory.astype(np.float32), self.wire), 1)

    def reduce_start(self, shard: int, arrays: Sequence[_core.Array], reduction: int) -> None:
        self._live()
        self._check(shard)
        given = [(_memory(a, i), reduction) for i, a in enumerate(arrays)]
        if shard == len(self._levels) and (shard == 0 or len(self._levels[-1]) == len(self._levels[0])):
            self._levels.append([])
        if shard != len(self._levels) - 1:
            raise Error(f"Group: shard is {shard}, but shard {len(self._levels) - 1} has given {len(self._levels[-1])} of "
                        f"{len(self._levels[0])} arrays: shards come one after the other")
        for i, (memory, how) in enumerate(given):
            at = len(self._levels[shard])
            if shard and (at >= len(self._levels[0]) or self._levels[0][at][1] != how or not _same(self._levels[0][at][0], memory)):
                raise Error(f"Group: arrays[{i}] of shard {shard} is not what shard 0 gave in this place")
            self._levels[shard].append((memory, how))
            if shard == 0:
                self._nodes.append({})
            nodes, level = self._nodes[at], 0
            node = _rounded(memory.astype(np.float32), self.wire)
            while level in nodes:
                node = _rounded(_combined(nodes.pop(level), node, how), self.wire)
                level += 1
            nodes[level] = node

    def reduce_wait(self) -> None:
        self._live()
        if not self._nodes:
            return
        if len(self._levels) != self.shards or len(self._levels[-1]) != len(self._nodes):
            raise Error(f"Group: shard {len(self._levels) - 1} has given {len(self._levels[-1])} of {len(self._nodes)} arrays; every one "
                        f"of the {self.shards} shards of this rank gives them all")
        for (memory, how), nodes in zip(self._levels[0], self._nodes):
            _write(memory, nodes.popitem()[1], self.shards if how == MEAN else 1)
        self._levels, self._nodes = [], []

    def finalize(self) -> None:
        self._live()
        self._ended = True

    def _live(self) -> None:
        if self._ended:
            raise Error("Group: the group has ended")


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.__array_interface__["data"] == b.__array_interface__["data"]


def _write(memory: np.ndarray, value: np.ndarray, divisor: int) -> None:
    with np.errstate(over="ignore"):
        np.copyto(memory, (_flush(value, _SMALLEST * divisor) / np.float32(divisor)).astype(memory.dtype))

"""Overhead of a call, and training steps beside PyTorch eager: python python/bench/steps.py [--quick]. One thread each; the least of many.

The C call of the first rows takes about 30 ns (`make bench`, overhead): what is above it is Python's.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

import numpy as np

import openbnns as ob
from openbnns import nn, optim

QUICK = "--quick" in sys.argv


def least(call: Callable[[], Any], seconds: float = 1.0) -> float:
    """The least time of a call, in microseconds."""
    call()
    times, end = [_once(call, 1)], time.perf_counter() + (0.2 if QUICK else seconds)
    inner = max(1, int(2e-4 / max(1e-7, _once(call, 1))))
    while time.perf_counter() < end:
        times.append(_once(call, inner))
    return min(times) * 1e6


def _once(call: Callable[[], Any], n: int) -> float:
    start = time.perf_counter()
    for _ in range(n):
        call()
    return (time.perf_counter() - start) / n


def overhead(torch: Any) -> None:
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    layer = ob.ActivationLayer(function=ob.ActivationFunction("relu"), input=(64,), output=(64,))
    described = ob.array(x), ob.array(y)
    ours, fast = least(lambda: layer.apply(1, x, y)), least(lambda: layer.apply(1, *described))
    rows = [("ReLU of 64, NumPy arrays", ours), ("ReLU of 64, described arrays", fast)]
    if torch is not None:
        t = torch.zeros(64)
        out = torch.zeros(64)
        rows.append(("PyTorch: relu of 64, out=", least(lambda: torch.clamp_min(t, 0, out=out))))
        rows.append(("PyTorch: relu of 64", least(lambda: torch.relu(t))))
    for name, value in rows:
        print(f"{name:40} {value:8.2f} us")


def lenet(lib: Any, _: Any) -> Any:
    return lib.Sequential(lib.Conv2d(1, 6, 5, padding=2), lib.ReLU(), lib.MaxPool2d(2), lib.Conv2d(6, 16, 5), lib.ReLU(),
                          lib.MaxPool2d(2), lib.Flatten(), lib.Linear(400, 120), lib.ReLU(), lib.Linear(120, 84), lib.ReLU(),
                          lib.Linear(84, 10))


def mlp(lib: Any, _: Any) -> Any:
    return lib.Sequential(lib.Flatten(), lib.Linear(784, 128), lib.ReLU(), lib.Linear(128, 10))


def residual(lib: Any, res: Any) -> Any:
    """Eight convolutions in three blocks."""
    def block(c: int) -> Any:
        return res(lib.Sequential(lib.Conv2d(c, c, 3, padding=1), lib.BatchNorm2d(c), lib.ReLU(), lib.Conv2d(c, c, 3, padding=1),
                                  lib.BatchNorm2d(c)), None, lib.ReLU())
    return lib.Sequential(lib.Conv2d(1, 16, 3, padding=1), lib.BatchNorm2d(16), lib.ReLU(), block(16),
                          lib.Conv2d(16, 32, 3, 2, 1), lib.BatchNorm2d(32), lib.ReLU(), block(32), block(32), lib.Flatten(),
                          lib.Linear(32 * 14 * 14, 10))


def steps(torch: Any) -> None:
    class Residual(torch.nn.Module if torch is not None else object):  # type: ignore[misc]
        def __init__(self, block: Any, shortcut: Any, activation: Any) -> None:
            super().__init__()
            self.block, self.activation = block, activation

        def forward(self, x: Any) -> Any:
            return self.activation(self.block(x) + x)

    for name, make, batch in (("LeNet, batch 32", lenet, 32), ("MLP 784-128-10, batch 1", mlp, 1), ("residual, batch 32", residual, 32)):
        x = np.random.default_rng(0).random((batch, 1, 28, 28), np.float32)
        y = np.arange(batch) % 10
        model = make(nn, nn.Residual)
        step, adam = nn.value_and_grad(model, nn.losses.cross_entropy), optim.Adam(model)

        def ours() -> None:
            step.run(x, y)
            adam.step()

        if torch is None:
            print(f"{name:40} {least(ours, 2):8.1f} us")
            continue
        other = make(torch.nn, Residual)
        theirs_adam = torch.optim.Adam(other.parameters())
        tx, ty = torch.tensor(x), torch.tensor(y)

        def theirs() -> None:
            theirs_adam.zero_grad()
            torch.nn.functional.cross_entropy(other(tx), ty).backward()
            theirs_adam.step()

        mine = peer = float("inf")
        for _ in range(1 if QUICK else 10):  # in turns: what else runs on the machine slows both
            mine, peer = min(mine, least(ours, 0.2)), min(peer, least(theirs, 0.2))
        print(f"{name:40} {mine:8.1f} us, PyTorch {peer:8.1f} us, {peer / mine:.2f} times as fast")


if __name__ == "__main__":
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        torch = None
        print("PyTorch is not installed: our times alone")
    ob.set_num_threads(1)
    overhead(torch)
    steps(torch)

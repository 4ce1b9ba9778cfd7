"""Overhead of a call, and training steps beside PyTorch eager and the same step in C: python python/bench/steps.py [--quick]

One thread each; the least of many, taken in turns. Times are the processor's: what else runs on the machine counts little.

The C call of the first rows takes about 30 ns (`make bench`, overhead): what is above it is Python's.
"""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile
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
    start = time.process_time()
    for _ in range(n):
        call()
    return (time.process_time() - start) / n


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
    return lib.Sequential(lib.Conv2d(1, 20, 5), lib.MaxPool2d(2), lib.Conv2d(20, 50, 5), lib.MaxPool2d(2), lib.Flatten(),
                          lib.Linear(800, 500), lib.ReLU(), lib.Linear(500, 10))


def mlp(lib: Any, _: Any) -> Any:
    return lib.Sequential(lib.Linear(784, 128), lib.ReLU(), lib.Linear(128, 10))


def residual(lib: Any, block: Any) -> Any:
    """One convolution, three blocks of two, one Linear."""
    def pair(i: int, o: int, k: int, stride: int, pad: int) -> list[Any]:
        return [lib.Conv2d(i, o, k, stride, pad, bias=False), lib.BatchNorm2d(o)]

    layers, before = [*pair(3, 16, 3, 1, 1), lib.ReLU()], 16
    for c in (16, 32, 64):
        s = 1 if c == before else 2
        skip = lib.Sequential(*pair(before, c, 1, s, 0)) if s == 2 else None
        layers.append(block(lib.Sequential(*pair(before, c, 3, s, 1), lib.ReLU(), *pair(c, c, 3, 1, 1)), skip, lib.ReLU()))
        before = c
    return lib.Sequential(*layers, lib.AdaptiveAvgPool2d(1), lib.Flatten(), lib.Linear(64, 10))


def compiled_c(folder: str) -> Any:
    """steps.cc as a library; None where there is no compiler."""
    compiler = shutil.which("c++")
    if compiler is None:
        return None
    package, root = pathlib.Path(ob.__file__).parent, pathlib.Path(__file__).resolve().parents[2]
    made = pathlib.Path(folder, "steps.so")
    subprocess.run([compiler, "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{root}", f"-I{root}/include", str(pathlib.Path(__file__).with_suffix(".cc")),
                    str(package / "libbnns.so.0"), f"-Wl,-rpath,{package}", "-o", str(made)], check=True)
    library = ctypes.CDLL(str(made))
    library.step_open.restype, library.step_run.restype = ctypes.c_void_p, ctypes.c_float
    library.step_open.argtypes = [ctypes.c_int, ctypes.c_size_t]
    library.step_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library


def torch_step(torch: Any, net: Any, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """With the quickest of PyTorch's three forms of Adam."""
    tx, ty = torch.tensor(x), torch.tensor(y)

    def make(**how: bool) -> Callable[[], Any]:
        adam = torch.optim.Adam(net.parameters(), **how)

        def step() -> None:
            adam.zero_grad()
            torch.nn.functional.cross_entropy(net(tx), ty).backward()
            adam.step()
        return step

    forms = [make(fused=True), make(foreach=True), make()]
    return min(forms, key=lambda call: least(call, 0.1))


def steps(torch: Any, c: Any) -> None:
    class Residual(torch.nn.Module if torch is not None else object):  # type: ignore[misc]
        def __init__(self, block: Any, shortcut: Any, activation: Any) -> None:
            super().__init__()
            self.block, self.shortcut, self.activation = block, shortcut, activation

        def forward(self, x: Any) -> Any:
            return self.activation(self.block(x) + (x if self.shortcut is None else self.shortcut(x)))

    for number, name, make, shape in ((1, "LeNet, batch 32", lenet, (32, 1, 28, 28)), (0, "MLP 784-128-10, batch 1", mlp, (1, 784)),
                                      (2, "residual network, batch 32", residual, (32, 3, 32, 32))):
        batch = shape[0]
        x = np.random.default_rng(0).random(shape, np.float32)
        y = np.arange(batch) % 10
        model = make(nn, nn.Residual)
        step, adam = nn.value_and_grad(model, nn.losses.cross_entropy), optim.Adam(model)

        def ours() -> None:
            step.run(x, y)
            adam.step()

        calls: dict[str, Callable[[], Any]] = {"openbnns.nn": ours}
        if torch is not None:
            calls["PyTorch"] = torch_step(torch, make(torch.nn, Residual), x, y)
        if c is not None:
            handle, labels = c.step_open(number, batch), np.eye(10, dtype=np.float32)[y]
            calls["C"] = lambda: c.step_run(handle, x.ctypes.data, labels.ctypes.data)
        times = dict.fromkeys(calls, float("inf"))
        for _ in range(2 if QUICK else 10):  # in turns: what else runs on the machine slows all
            for who, call in calls.items():
                times[who] = min(times[who], least(call, 0.3))
        line = f"{name:30} {times['openbnns.nn']:8.1f} us"
        if torch is not None:
            line += f", PyTorch {times['PyTorch']:8.1f} us: {times['PyTorch'] / times['openbnns.nn']:.2f} times as fast"
        if c is not None:
            line += f", C {times['C']:8.1f} us: {times['openbnns.nn'] / times['C'] * 100 - 100:+.1f} %, {times['openbnns.nn'] - times['C']:+.1f} us"
        print(line, flush=True)


if __name__ == "__main__":
    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        torch = None
        print("PyTorch is not installed: our times alone")
    ob.set_num_threads(1)
    overhead(torch)
    with tempfile.TemporaryDirectory() as folder:
        steps(torch, compiled_c(folder))

"""What test_distributed.py starts on several ranks: distributed_worker.py PART [ARGUMENTS]. Each rank writes lines of its own."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from typing import Any

import numpy as np

from openbnns import Error, SGDMomentumOptimizer, distributed, fit, nn, optim
from openbnns.data import Loader
from openbnns.nn import losses

SAMPLES, BATCH, EPOCHS = 96, 32, 4


def make() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25),
                         nn.Linear(4 * 3 * 3, 5))


def blobs() -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(3)
    y = r.integers(0, 5, SAMPLES)
    x = r.standard_normal((SAMPLES, 1, 8, 8)).astype(np.float32) * 0.5
    x[np.arange(SAMPLES), 0, y, :] += 2
    return x, y


def say(group: distributed.Group, text: Any) -> None:
    os.write(1, f"rank {group.rank}: {text}\n".encode())  # one write: lines of ranks do not mix


def train(file: str, epochs: str, *more: str) -> None:
    """fit on one group; every rank's digest of weights, moments, statistics and records. "stop": the last rank is interrupted
    in its second epoch. "callback": its callback ends the training. "clip", "bfloat16": as they say."""
    with distributed.Group(wire="bfloat16" if "bfloat16" in more else "float32") as group:
        nn.seed(5 + group.rank)  # the ranks begin with the weights and the dropout of rank 0
        model = make()
        seen = [0]

        def loss(prediction: Any, target: Any) -> Any:
            seen[0] += 1
            if "stop" in more and group.rank == group.size - 1 and seen[0] == 4 * group.shards + 1:
                os.kill(os.getpid(), signal.SIGINT)
            return losses.cross_entropy(prediction, target)

        adam = optim.Adam(model, lr=1e-2)
        history = fit(model, Loader(blobs(), BATCH, shuffle=True, seed=7), int(epochs), optimizer=adam, group=group, loss=loss,
                      schedule=optim.cosine_schedule(adam, EPOCHS), validation=blobs(), checkpoint=file, resume=True,
                      clip_norm=0.5 if "clip" in more else None,
                      callbacks=[lambda model, record: "callback" not in more or group.rank != group.size - 1])
        digest = hashlib.sha256()
        for state in (model.state_dict(), adam.state_dict()):
            for name in sorted(state):
                digest.update(state[name].tobytes())
        for record in history:
            digest.update(repr([(k, v) for k, v in record.items() if k != "seconds"]).encode())
        say(group, f"digest {digest.hexdigest()} loss {history[-1]['loss']:.4f} interrupted {history[-1].get('interrupted', False)}")


def calls() -> None:
    """Broadcast, sums over ranks and shards, and the step, with numbers that are known."""
    with distributed.Group(shards=4) as group:
        ranks, w, whole = group.size, np.full((2, 3), group.rank, np.float32), np.arange(5) * (group.rank + 1)
        group.broadcast([w, whole], root=ranks - 1)
        assert (w == ranks - 1).all() and (whole == np.arange(5) * ranks).all()
        for reduction, expected in (("sum", ranks * (ranks + 1) / 2), ("mean", (ranks + 1) / 2), ("max", ranks)):
            value = np.full(3, group.rank + 1, np.float32)
            group.all_reduce([value], reduction)
            assert (value == expected).all(), (reduction, value)
        parameter = nn.module.Parameter(np.zeros(2, np.float32))
        sgd = optim.SGD([parameter], lr=0.5)
        for s in range(group.shards):
            part = group.items(8, s)
            assert part == slice(2 * (group.rank * group.shards + s), 2 * (group.rank * group.shards + s) + 2)
            parameter.gradient.data[:] = np.arange(8)[part]
            group.reduce_start(s, [parameter.gradient.data])
        group.step(sgd)
        assert (parameter.data == [-1.5, -2.0]).all(), parameter.data
        w, dw = np.zeros(3, np.float32), np.empty(3, np.float32)
        for s in range(group.shards):
            dw[:] = group.items(4, s).start + 1
            group.reduce_start(s, [dw], "max")
        group.step(SGDMomentumOptimizer(learning_rate=1.0), [w], [dw])
        assert (w == -4).all() and (dw == 4).all(), (w, dw)
        say(group, "ok")


def fast() -> None:
    with distributed.Group(mode="fast", wire="float16") as group:
        value = np.full(4, group.rank, np.float32)
        group.reduce_start(0, [value], "sum")
        group.reduce_wait()
        say(group, "ok" if group.shards == 1 and (value == sum(range(group.size))).all() else value)


def refused(what: str) -> None:
    """Calls that end in openbnns.Error on every rank; what it says."""
    try:
        group = distributed.Group(shards=2 if what == "shards" else 0, timeout=2)
        if what == "batch":
            group.items(36, 0)
        elif what == "last":
            fit(make(), (np.zeros((36, 1, 8, 8), np.float32), np.zeros(36, np.int64)), 1, batch_size=32, group=group)
        elif what == "epochs":
            fit(make(), blobs(), 1 + group.rank, group=group)
        elif what == "sizes":
            group.all_reduce([np.zeros(3 + (group.rank == 1), np.float32)])
        elif what in ("dead", "raises"):
            with group:
                if group.rank == 1 and what == "dead":
                    os._exit(3)
                if group.rank == 1:
                    raise ArithmeticError("the program of rank 1")
                began = time.monotonic()
                try:
                    group.all_reduce([np.zeros(3, np.float32)])
                finally:
                    if time.monotonic() - began > 20:  # the group's timeout is 2 s, the default 30 s
                        say(group, "too late")
    except Error as error:
        os.write(1, f"refused: {error}\n".encode())
        sys.exit(1)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

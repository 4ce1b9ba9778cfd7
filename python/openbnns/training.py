"""fit: the training loop with metrics, callbacks, early stopping, checkpoints, and a resume that ends in the same bits."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, Callable, Iterable, Sequence

import numpy as np

from . import io
from ._errors import Error
from ._steps import GroupSteps, Steps
from .data import Loader
from .distributed import Group
from .nn import losses
from .nn.module import Module
from .nn.tape import as_array
from .optim import Adam, Optimizer, Schedule

Record = dict[str, Any]


def accuracy(prediction: np.ndarray, target: np.ndarray) -> float:
    """The share of rows whose largest number is at the target: classes (N,), or probabilities (N, classes)."""
    target = as_array(target)
    if target.shape == prediction.shape and target.ndim > 1:
        target = np.argmax(target, axis=-1)
    if target.shape != prediction.shape[:-1] or target.dtype.kind not in "biu":
        raise Error(f"accuracy: target has shape {target.shape} and dtype {target.dtype}, expected classes "
                    f"{prediction.shape[:-1]}; metrics=() measures none")
    return float(np.mean(np.argmax(prediction, axis=-1) == target)) if len(target) else 0.0


_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {"accuracy": accuracy}


def evaluate(model: Module, data: Any, loss: Callable[..., Any] = losses.cross_entropy,
             metrics: Sequence[Any] | None = None, batch_size: int = 256) -> Record:
    """Loss and metrics of a model in eval() over (inputs, targets) or a Loader; the model's mode is put back.

    metrics   "accuracy", or functions of (prediction, target); by default accuracy where the targets are classes
    """
    loader = data if isinstance(data, Loader) else Loader(data, batch_size, prefetch=0)
    functions = _functions(metrics, loader)
    modes = [(m, m.training) for m in model.modules()]
    sums, count = dict.fromkeys(["loss", *functions], 0.0), 0
    model.eval()
    try:
        for x, y in loader.epoch(0):
            out = model(*x) if isinstance(x, tuple) else model(x)
            n = len(y)
            sums["loss"] += float(loss(out, y)) * n
            for name, function in functions.items():
                sums[name] += function(out, y) * n
            count += n
    finally:
        for module, mode in modes:
            module.training = mode
    return {name: value / max(1, count) for name, value in sums.items()}


def predict(model: Module, x: np.ndarray, batch_size: int = 256) -> np.ndarray:
    """The model's outputs in eval(), batch by batch."""
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        return np.concatenate([model(x[i:i + batch_size]) for i in range(0, max(1, len(x)), batch_size)])
    finally:
        for module, mode in modes:
            module.training = mode


def _functions(metrics: Sequence[Any] | None, loader: Loader) -> dict[str, Callable[[np.ndarray, np.ndarray], float]]:
    if metrics is None and len(loader):
        one = loader.arrays[-1][0] if loader.arrays is not None else np.asarray(loader.items[0][-1])
        metrics = ("accuracy",) if np.ndim(one) == 0 and one.dtype.kind in "biu" else ()
    found = {}
    for metric in metrics or ():
        if isinstance(metric, str):
            if metric not in _METRICS:
                raise Error(f"fit: metrics has {metric!r}, expected {sorted(_METRICS)} or functions")
            found[metric] = _METRICS[metric]
        else:
            found[metric.__name__] = metric
    return found


class _Interrupt:
    """Ctrl-C sets a mark instead of breaking a step; a second one breaks. Only in the main thread, which receives it."""

    def __enter__(self) -> "_Interrupt":
        self.seen = False
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._mark)
        return self

    def _mark(self, *_: object) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True

    def __exit__(self, *_: object) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)


class _Progress:
    """tqdm where it is installed and stderr is a terminal; else one line for each epoch."""

    def __init__(self, wanted: bool, total: int, title: str) -> None:
        self.bar: Any = None
        self.wanted, self.title = wanted, title
        if wanted and sys.stderr.isatty():
            try:
                from tqdm import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]

                self.bar = tqdm(total=total, desc=title, leave=False)
            except ImportError:
                pass

    def step(self, loss: float) -> None:
        if self.bar is not None:
            self.bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            self.bar.update()

    def close(self, record: Record) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.wanted:
            numbers = [f"{k} {v:.4f}" for k, v in record.items() if isinstance(v, float) and k not in ("seconds", "lr")]
            print(f"{self.title}: {', '.join(numbers)}, {record['seconds']:.1f} s", file=sys.stderr, flush=True)


def save_checkpoint(path: Any, model: Module, optimizer: Optimizer, position: Record) -> None:
    """Everything that a resumed run needs, in one safetensors file."""
    arrays = {f"model.{k}": v for k, v in model.state_dict().items()}
    arrays.update((f"optimizer.{k}", v) for k, v in optimizer.state_dict().items())
    position = {**position, "counters": model.counters()}
    io.save_safetensors(path, arrays, {"openbnns.fit": json.dumps(position)})


def load_checkpoint(path: Any, model: Module, optimizer: Optimizer | None = None) -> Record:
    """Puts model and optimizer back, and returns the position that was saved."""
    arrays = io.load_safetensors(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        _, metadata = io.parse_header(file.read(length), os.path.getsize(path) - 8 - length)
    if "openbnns.fit" not in metadata:
        raise Error(f"load_checkpoint: {os.fspath(path)} is without a position, expected a checkpoint of fit")
    position: Record = json.loads(metadata["openbnns.fit"])
    model.load_state_dict({k[6:]: v for k, v in arrays.items() if k.startswith("model.")})
    if optimizer is not None:
        optimizer.load_state_dict({k[10:]: v for k, v in arrays.items() if k.startswith("optimizer.")})
    model.set_counters(position["counters"])
    return position


def fit(model: Module, data: Any, epochs: int, *, loss: Callable[..., Any] = losses.cross_entropy,
        optimizer: Optimizer | None = None, batch_size: int = 32, validation: Any = None, metrics: Sequence[Any] | None = None,
        schedule: Schedule | None = None, clip_norm: float | None = None, callbacks: Iterable[Callable[..., Any]] = (),
        patience: int | None = None, checkpoint: Any = None, resume: bool = False, seed: int = 0,
        progress: bool = True, group: Group | None = None) -> list[Record]:
    """Trains a model and returns a record for each epoch: loss, metrics, val_ of both, lr, seconds.

    data           (inputs, targets), shuffled by `seed`, or a Loader
    metrics        "accuracy", or functions of (prediction, target); by default accuracy where the targets are classes
    schedule       stepped behind each epoch
    callbacks      called as callback(model, record) behind each epoch; one that returns False ends the training
    patience       ends it when val_loss (loss without validation) has not become less for that many epochs
    checkpoint     a .safetensors file, written behind each epoch and when Ctrl-C stops the training
    resume         go on from that file, if it is there: ends in the same bits as a run that was not interrupted
    group          a distributed.Group: each rank runs its shards of a batch, and ends with the same bits for any number of
                   ranks. Every rank calls fit with the same data; rank 0 prints, and reads and writes the checkpoint

    Ctrl-C stops behind the step that runs; the last record then has "interrupted".
    """
    loader = data if isinstance(data, Loader) else Loader(data, batch_size, shuffle=True, seed=seed)
    if not isinstance(epochs, (int, np.integer)) or epochs < 0:
        raise Error(f"fit: epochs is {epochs!r}, expected a whole number of 0 or more")
    if loader.arrays is not None and len(loader.arrays) < 2:
        raise Error("fit: data has 1 array, expected inputs and targets")
    if len(loader) == 0:
        raise Error(f"fit: data has {loader.length} samples, expected enough for one batch of {loader.batch_size}")
    optimizer = optimizer if optimizer is not None else Adam(model.parameters())
    functions = _functions(metrics, loader)
    parts = (model, loss, optimizer, functions, clip_norm)
    steps = Steps(*parts) if group is None else GroupSteps(group, *parts)
    if isinstance(steps, GroupSteps):
        steps.check(loader, epochs)
    position: Record | None = None
    if resume:
        if checkpoint is None:
            raise Error("fit: checkpoint is None, expected a file to resume from")
        if steps.rank == 0 and os.path.exists(checkpoint):
            position = load_checkpoint(checkpoint, model, optimizer)
        position = steps.share(position)
    history: list[Record] = []
    start, first, partial = 0, 0, None
    if position is not None:
        start, first, partial, history = position["epoch"], position["batch"], position["sums"], position["history"]
        if schedule is not None and position["schedule"] is not None:
            schedule.load_state_dict(position["schedule"])
    if isinstance(steps, GroupSteps):
        steps.share_state()

    def keep(epoch: int, batch: int, sums: Any) -> None:
        if checkpoint is not None and steps.rank == 0:
            save_checkpoint(checkpoint, model, optimizer, {
                "epoch": epoch, "batch": batch, "sums": sums, "history": history,
                "schedule": schedule.state_dict() if schedule is not None else None})

    model.train()
    with _Interrupt() as interrupt:
        for epoch in range(start, epochs):
            begun = time.perf_counter()
            steps.begin(partial)
            line = _Progress(progress and steps.rank == 0, len(loader), f"epoch {epoch + 1}/{epochs}")
            batches, done = loader.epoch(epoch, first), first
            first, partial = 0, None
            for batch in batches:
                line.step(steps.step(batch, interrupt))
                done += 1
                if steps.stopped:
                    break
            if hasattr(batches, "close"):
                batches.close()
            record: Record = {"epoch": epoch, **steps.means(), "lr": optimizer.lr}
            if steps.stopped and done < len(loader):
                keep(epoch, done, steps.save())
                record["interrupted"] = True
            elif validation is not None:
                record.update(("val_" + k, v) for k, v in evaluate(model, validation, loss, metrics).items())
            record["seconds"] = time.perf_counter() - begun
            history.append(record)
            line.close(record)
            if record.get("interrupted"):
                return history
            if schedule is not None:
                schedule.step()
            keep(epoch + 1, 0, None)
            results = [callback(model, record) for callback in callbacks]
            if steps.any(any(result is False for result in results) or _stale(history, patience) or interrupt.seen):
                break
    return history


def _stale(history: list[Record], patience: int | None) -> bool:
    if patience is None:
        return False
    values = [float(r["val_loss"] if "val_loss" in r else r["loss"]) for r in history]
    best = int(np.argmin(values))
    return len(values) - 1 - best >= patience

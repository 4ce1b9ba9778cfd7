"""Losses. Each takes a prediction and a target and returns their loss: one number, the mean over the batch, or the sum.

Inside value_and_grad the gradient of the prediction comes from the same call of the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._errors import Error
from ..layers import LossLayer
from ..types import LossFunction, LossReduction
from . import tape
from .tape import Gradient, Pass, Plan, Plans, Tensor, as_array, as_input

_plans = Plans()
_plans.LIMIT = 64
_REDUCTIONS = {"mean": LossReduction.mean, "sum": LossReduction.sum}


class _LossPlan(Plan):
    def __init__(self, name: str, x: Tensor, n: int, function: LossFunction, reduction: LossReduction, number: float) -> None:
        if str(x.dtype) not in ("float32", "float16", "bfloat16"):
            raise Error(f"{name}: prediction is of dtype {x.dtype}, expected float32, float16 or bfloat16")
        self.n = n
        spec = _core.Array((max(1, x.size // max(1, n)),), str(x.dtype))
        self.filter = LossLayer(input=spec, loss_function=function, loss_reduction=reduction, number=number)
        self.out = Tensor(np.zeros(1, x.dtype))
        self.gradient = Gradient(np.empty(x.shape, x.dtype))
        self.labels = np.zeros(x.shape, x.dtype)
        self.labels_array = _core.Array(self.labels)
        self.rows = np.arange(n)

    def one_hot(self, target: np.ndarray) -> Any:
        self.labels.fill(0)
        self.labels[self.rows, target] = 1
        return self.labels_array

    def run(self, x: Tensor, labels: Any) -> Tensor:
        self.x = x
        x.uses += 1
        self.filter.apply(self.n, x.array, labels, self.out.array, None, self.gradient.array if x.needs else None)
        return self.out.fresh(x.needs)

    def backward(self) -> None:
        assert self.out.gradient is not None
        x, factor = self.x, self.out.gradient.data.item()
        if not x.needs:
            return
        if factor == 1.0 and not x.dirty and x.alias is None:
            x.gradient, x.dirty = self.gradient, True  # it is there already
        else:
            x.add_gradient(self.gradient.data if factor == 1.0 else self.gradient.data * np.asarray(factor, x.dtype))


def _loss(name: str, function: LossFunction, x: Any, target: Any, reduction: str, number: float = 0.0,
          classes: bool = False) -> Any:
    if tape.current() is None:
        with Pass(record=False):
            return _loss(name, function, x, target, reduction, number, classes).item()
    x = as_input(x)
    if reduction not in _REDUCTIONS:
        raise Error(f"{name}: reduction is {reduction!r}, expected 'mean' or 'sum'")
    n = x.shape[0] if x.ndim else 1
    if x.size == 0:
        raise Error(f"{name}: prediction has shape {x.shape}, expected at least one number")
    t = target.data if isinstance(target, Tensor) else as_array(target)
    if classes and t.dtype.kind == "b" and t.ndim == 1:
        t = t.astype(np.int64)
    plan = _plans.get((function, reduction, number, x.shape, x.dtype),
                      lambda: _LossPlan(name, x, n, function, _REDUCTIONS[reduction], number))
    assert isinstance(plan, _LossPlan)
    if classes and t.dtype.kind in "iu":
        if x.ndim != 2 or t.shape != (n,):
            raise Error(f"{name}: prediction has shape {x.shape} with target {t.shape}, expected (N, classes) with (N,)")
        try:
            if t.min() < 0:
                raise IndexError
            labels = plan.one_hot(t)
        except IndexError:
            raise Error(f"{name}: target has classes from {t.min()} to {t.max()}, expected 0 to {x.shape[1] - 1}") from None
        return plan.run(x, labels)
    if t.shape != x.shape and classes and t.ndim < x.ndim:
        raise Error(f"{name}: target has shape {t.shape} and dtype {t.dtype}, expected integers (N,), or probabilities {x.shape}")
    if t.shape != x.shape:
        raise Error(f"{name}: target has shape {t.shape}, expected {x.shape}")
    return plan.run(x, np.ascontiguousarray(t, x.dtype))


def cross_entropy(logits: Any, target: Any, reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """-log softmax(logits)[target], logits (N, classes); target (N,) of classes, or (N, classes) of probabilities."""
    return _loss("cross_entropy", LossFunction.softmax_cross_entropy, logits, target, reduction, label_smoothing, True)


def binary_cross_entropy_with_logits(logits: Any, target: Any, reduction: str = "mean") -> Any:
    """-t log s - (1 - t) log(1 - s) with s = sigmoid(logits), the mean over all elements."""
    return _loss("binary_cross_entropy_with_logits", LossFunction.sigmoid_cross_entropy, logits, target, reduction)


def binary_cross_entropy(probability: Any, target: Any, reduction: str = "mean") -> Any:
    """-t log(p + 1e-7) - (1 - t) log(1 - p + 1e-7), the mean over all elements."""
    return _loss("binary_cross_entropy", LossFunction.log, probability, target, reduction)


def mse(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """(x - t)^2, the mean over all elements."""
    return _loss("mse", LossFunction.mean_square_error, prediction, target, reduction)


def l1(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """|x - t|, the mean over all elements."""
    return _loss("l1", LossFunction.mean_absolute_error, prediction, target, reduction)


def huber(prediction: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2), e = x - t; the mean over all elements."""
    return _loss("huber", LossFunction.huber, prediction, target, reduction, delta)


def hinge(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """max(0, 1 - (2 t - 1) x) for targets 0 and 1, the mean over all elements."""
    t = target.data if isinstance(target, Tensor) else as_array(target)
    if t.size and t.min() < 0:
        raise Error(f"hinge: target has numbers from {t.min()} on, expected 0 and 1")
    return _loss("hinge", LossFunction.hinge, prediction, target, reduction)


def cosine_similarity(prediction: Any, target: Any, reduction: str = "mean") -> Any:
    """1 - x . t for each sample; both must be unit vectors (the gradient is that of 1 - x . t / |x| at |x| = 1)."""
    return _loss("cosine_similarity", LossFunction.cosine_distance, prediction, target, reduction)

"""Operations of Tensors that are no layers: arithmetic, shapes, indexing."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .. import _core
from .._core import Activation
from .._errors import Error
from ..layers import ActivationLayer, BinaryArithmeticLayer, PermuteLayer
from ..types import ActivationFunction, ArithmeticFunction, identity
from .tape import Gradient, Plan, Plans, Tensor, as_input

_plans = Plans()
_plans.LIMIT = 256


class _Binary(Plan):
    def __init__(self, function: ArithmeticFunction, a: Tensor, activation: Activation) -> None:
        n, sample = a.data.shape[0] if a.data.ndim else 1, max(1, a.data.size // max(1, a.data.shape[0] if a.data.ndim else 1))
        self.n = n
        spec = _core.Array((sample,), str(a.data.dtype))
        self.filter = BinaryArithmeticLayer(input_a=spec, input_b=spec, output=spec, function=function, activation=activation)
        self.out = Tensor(np.empty_like(a.data))

    def run(self, a: Tensor, b: Tensor) -> Tensor:
        self.a, self.b = a, b
        a.uses += 1
        b.uses += 1
        self.filter.apply_many(self.n, [a.array, b.array], self.out.array)
        return self.out.fresh(a.needs or b.needs)

    def backward(self) -> None:
        a, b = self.a, self.b
        if a.data.__array_interface__["data"] == b.data.__array_interface__["data"]:
            both = a.target()  # one memory, as of two views of a tensor: the library writes the sum, which one of them takes
            self.filter.apply_many_backward(self.n, [a.array, b.array], self.out.array, self.out.grad, [both, both])
            return
        spare = None if a.needs and b.needs else Gradient(np.empty_like(a.data)).array
        self.filter.apply_many_backward(self.n, [a.array, b.array], self.out.array, self.out.grad,
                                        [a.target() if a.needs else spare, b.target() if b.needs else spare])


def _binary(function: ArithmeticFunction, a: Tensor, b: Any, activation: Activation = identity) -> Tensor:
    other = as_input(b) if not isinstance(b, (int, float)) else as_input(np.full(a.shape, b, a.dtype))
    if other.shape != a.shape or other.dtype != a.dtype:
        raise Error(f"{function.name}: other has shape {other.shape} and dtype {other.dtype}, expected {a.shape} and {a.dtype}")
    plan = _plans.get((function, a.shape, a.dtype, activation), lambda: _Binary(function, a, activation))
    return plan.run(a, other)


def add(a: Tensor, b: Any) -> Tensor:
    if isinstance(b, (int, float)):
        return a if b == 0 else _affine(a, 1.0, float(b))
    return _binary(ArithmeticFunction.add, a, b)


def add_activated(a: Tensor, b: Tensor, activation: Activation) -> Tensor:
    """activation(a + b) in one call."""
    return _binary(ArithmeticFunction.add, a, b, activation)


def subtract(a: Tensor, b: Any) -> Tensor:
    if isinstance(b, (int, float)):
        return _affine(a, 1.0, -float(b))
    return _binary(ArithmeticFunction.subtract, a, b)


def multiply(a: Tensor, b: Any) -> Tensor:
    return scale(a, float(b)) if isinstance(b, (int, float)) else _binary(ArithmeticFunction.multiply, a, b)


def divide(a: Tensor, b: Any) -> Tensor:
    return scale(a, 1.0 / b) if isinstance(b, (int, float)) else _binary(ArithmeticFunction.divide, a, b)


class _Affine(Plan):
    def __init__(self, x: Tensor, alpha: float, beta: float) -> None:
        self.n = 1 if x.size else 0
        spec = _core.Array((max(1, x.size),), str(x.dtype))
        self.filter = ActivationLayer(function=ActivationFunction("linear_with_bias", alpha, beta), input=spec, output=spec)
        self.out = Tensor(np.empty_like(x.data))

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        self.filter.apply(self.n, x.array, self.out.array)
        return self.out.fresh(x.needs)

    def backward(self) -> None:
        self.filter.apply_backward(self.n, self.x.array, self.out.array, self.out.grad, self.x.target())


def _affine(x: Tensor, alpha: float, beta: float) -> Tensor:
    return _plans.get(("affine", alpha, beta, x.shape, x.dtype), lambda: _Affine(x, alpha, beta)).run(x)


def scale(x: Tensor, alpha: float) -> Tensor:
    return _affine(x, alpha, 0.0)


class _Reshape(Plan):
    def run(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        view = x.data.reshape(shape)
        if getattr(self, "of", None) is not x.data:  # the same memory as in the last pass needs no new description
            self.of = x.data
            self.out = Tensor(view)
            self.out.alias = x
        self.x = x
        self.out.alias = x
        x.uses += 1
        return self.out.fresh(x.needs)

    def backward(self) -> None:
        if self.x.uses == 1:
            self.x.dirty = True  # the gradient is there: one memory
        else:
            assert self.out.gradient is not None
            self.x.add_gradient(self.out.gradient.data.reshape(self.x.data.shape))


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    return _plans.get(("reshape", x.shape, tuple(shape), x.dtype), _Reshape).run(x, tuple(shape))


class _Transpose(Plan):
    def __init__(self, x: Tensor, axes: Sequence[int]) -> None:
        to = tuple(x.shape[a] for a in axes)
        dtype = str(x.dtype)
        self.filter = PermuteLayer(input=_core.Array(x.shape, dtype), output=_core.Array(to, dtype), permutation=axes)
        self.out = Tensor(np.empty(to, x.dtype))

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        self.filter.apply(1, x.array, self.out.array)
        return self.out.fresh(x.needs)

    def backward(self) -> None:
        if self.x.needs:
            self.filter.apply_backward(1, self.out.grad, self.x.target())


def transpose(x: Tensor, axes: Sequence[int]) -> Tensor:
    axes = tuple(a % x.ndim for a in axes)
    return _plans.get(("transpose", x.shape, axes, x.dtype), lambda: _Transpose(x, axes)).run(x)


class _Numpy(Plan):
    """What is done by NumPy: a function, and how its gradient is added to that of x."""

    def run(self, x: Tensor, forward: Any, backward: Any) -> Tensor:
        value = np.ascontiguousarray(forward(x.data))
        if value.base is not None or np.shares_memory(value, x.data):
            value = value.copy()
        self.out = Tensor(value, x.needs)
        self.x, self.back = x, backward
        x.uses += 1
        return self.out

    def backward(self) -> None:
        assert self.out.gradient is not None
        self.back(self.x, self.out.gradient.data)


def index(x: Tensor, where: Any) -> Tensor:
    def back(t: Tensor, dy: np.ndarray) -> None:
        whole = np.zeros_like(t.data)
        np.add.at(whole, where, dy)
        t.add_gradient(whole)

    return _plans.get("numpy", _Numpy).run(x, lambda a: a[where], back)


def mean(x: Tensor, axis: Any = None) -> Tensor:
    def back(t: Tensor, dy: np.ndarray) -> None:
        shaped = dy if axis is None else np.expand_dims(dy, axis)
        t.add_gradient(np.broadcast_to(shaped, t.shape) * np.asarray(dy.size / t.size, t.dtype))

    return _plans.get("numpy", _Numpy).run(x, lambda a: np.asarray(a.mean(axis=axis, dtype=a.dtype)), back)


def total(x: Tensor, axis: Any = None) -> Tensor:
    def back(t: Tensor, dy: np.ndarray) -> None:
        t.add_gradient(np.broadcast_to(dy if axis is None else np.expand_dims(dy, axis), t.shape))

    return _plans.get("numpy", _Numpy).run(x, lambda a: np.asarray(a.sum(axis=axis, dtype=a.dtype)), back)


class _Concatenate(Plan):
    def run(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        self.parts, self.axis = list(parts), axis
        for p in parts:
            p.uses += 1
        self.out = Tensor(np.concatenate([p.data for p in parts], axis), any(p.needs for p in parts))
        return self.out

    def backward(self) -> None:
        assert self.out.gradient is not None
        ends = np.cumsum([p.shape[self.axis] for p in self.parts])[:-1]
        for part, dy in zip(self.parts, np.split(self.out.gradient.data, ends, self.axis)):
            part.add_gradient(dy)


def concatenate(parts: Sequence[Any], axis: int = 1) -> Tensor:
    """Joins Tensors along an axis."""
    return _plans.get("concatenate", _Concatenate).run([as_input(p) for p in parts], axis)

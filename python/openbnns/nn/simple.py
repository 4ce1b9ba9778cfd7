"""Layers without weights: activations, pooling, dropout, shapes; and modules made of modules."""

from __future__ import annotations

import math
from typing import Any, Iterator

import numpy as np

from .. import _core
from .._errors import Error
from ..layers import ActivationLayer, DropoutLayer, PoolingLayer
from .._core import Activation
from ..types import ActivationFunction, Pair, PoolingFunction, identity, pair
from . import operations, tape
from .layers import Conv2d, Linear, check_float
from .module import Module, UnaryPlan, generator, positive
from .normalization import BatchNorm2d
from .tape import Tensor


class _Activation(Module):
    """A function of each element."""

    def __init__(self, function: Activation) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> UnaryPlan:
        spec = _core.Array((max(1, x.size),), check_float(x, type(self).__name__))
        filter = ActivationLayer(function=self.function, input=spec, output=spec)
        return _Elementwise(1 if x.size else 0, np.empty_like(x.data)).use(filter)


class _Elementwise(UnaryPlan):
    def backward(self) -> None:
        if self.x.needs:
            super().backward()


class ReLU(_Activation):
    """max(x, 0)"""

    def __init__(self) -> None:
        super().__init__(ActivationFunction("relu"))


class ReLU6(_Activation):
    """min(max(x, 0), 6)"""

    def __init__(self) -> None:
        super().__init__(ActivationFunction("relu6"))


class Sigmoid(_Activation):
    """1 / (1 + exp(-x))"""

    def __init__(self) -> None:
        super().__init__(ActivationFunction("sigmoid"))


class Tanh(_Activation):
    """tanh(x)"""

    def __init__(self) -> None:
        super().__init__(ActivationFunction("tanh"))


class SiLU(_Activation):
    """x sigmoid(x)"""

    def __init__(self) -> None:
        super().__init__(ActivationFunction("silu"))


class LeakyReLU(_Activation):
    """x where x is 0 or more, else negative_slope x."""

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__(ActivationFunction("leaky_relu", negative_slope))


class GELU(_Activation):
    """x Phi(x); approximate="tanh": 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise Error(f"GELU: approximate is {approximate!r}, expected 'none' or 'tanh'")
        super().__init__(ActivationFunction("gelu") if approximate == "none"
                         else ActivationFunction("gelu_approximation", math.sqrt(2 / math.pi), 0.044715))


class Softmax(Module):
    """exp(x) / sum exp(x) along an axis."""

    _function = "softmax"

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> UnaryPlan:
        shape, name = x.data.shape, type(self).__name__
        if not -len(shape) <= self.dim < len(shape):
            raise Error(f"{name}: dim is {self.dim}, expected an axis of {shape}")
        axis = self.dim % len(shape)
        outer, extent = math.prod(shape[:axis]), shape[axis]
        inner = math.prod(shape[axis + 1:])
        spec = _core.Array((extent, inner) if inner > 1 else (extent,), check_float(x, name))
        filter = ActivationLayer(function=ActivationFunction(self._function), input=spec, output=spec, axes=0)
        return _Elementwise(outer, np.empty_like(x.data)).use(filter)


class LogSoftmax(Softmax):
    """x - log sum exp(x) along an axis."""

    _function = "log_softmax"


class _Pool2d(Module):
    _function = PoolingFunction.max

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size, "kernel_size")
        self.stride = pair(stride, "stride") if stride is not None else self.kernel_size
        self.padding = pair(padding, "padding")
        positive(type(self).__name__, kernel_size=min(self.kernel_size), stride=min(self.stride))
        if any(2 * p > k for p, k in zip(self.padding, self.kernel_size)):
            raise Error(f"{type(self).__name__}: padding is {self.padding}, expected at most half of {self.kernel_size}")

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _window(self, shape: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        return self.kernel_size, self.stride, self.padding

    def _make(self, x: Tensor) -> "_PoolPlan":
        shape, name = x.data.shape, type(self).__name__
        dtype = check_float(x, name)
        if len(shape) != 4:
            raise Error(f"{name}: input has shape {shape}, expected (N, C, H, W)")
        kernel, stride, padding = self._window(shape)
        size = [(shape[2 + a] + 2 * padding[a] - kernel[a]) // stride[a] + 1 for a in (0, 1)]
        if min(size) < 1:
            raise Error(f"{name}: input has shape {shape}, expected an image of the window's size {kernel} or more")
        out = (shape[1], size[0], size[1])
        filter = PoolingLayer(type=self._function, input=_core.Array(shape[1:], dtype), output=_core.Array(out, dtype),
                              kernel_size=kernel, stride=stride, padding=padding)
        plan = _PoolPlan(shape[0], np.empty((shape[0],) + out, x.dtype))
        plan.indices = None
        if self._function is PoolingFunction.max:
            plan.indices = _core.Array(np.empty((shape[0],) + out, np.uint32))
        plan.use(filter)
        return plan

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _PoolPlan(UnaryPlan):
    indices: Any

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        running = tape.current()
        record = running is not None and running.record
        self.apply(self.n, x.array, self.out.array, self.indices if record else None)
        return self.out.fresh(x.needs)

    def backward(self) -> None:
        if self.x.needs:
            self.filter.apply_backward(self.n, self.x.array, self.out.array, self.out.grad, self.x.target(), None, self.indices)


class MaxPool2d(_Pool2d):
    """The maximum of each window; padding never wins."""


class AvgPool2d(_Pool2d):
    """The mean of each window; count_include_pad counts padding as zeros."""

    _function = PoolingFunction.average_count_include_padding

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, count_include_pad: bool = True) -> None:
        super().__init__(kernel_size, stride, padding)
        if not count_include_pad:
            self._function = PoolingFunction.average_count_exclude_padding


class AdaptiveAvgPool2d(_Pool2d):
    """The mean of equal parts of an image: 1, or numbers that divide its height and width."""

    _function = PoolingFunction.average_count_include_padding

    def __init__(self, output_size: Pair) -> None:
        super().__init__(1)
        self.output_size = pair(output_size, "output_size")

    def _window(self, shape: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        if shape[2] % self.output_size[0] or shape[3] % self.output_size[1]:
            raise Error(f"AdaptiveAvgPool2d: input has shape {shape}, expected multiples of {self.output_size}")
        kernel = (shape[2] // self.output_size[0], shape[3] // self.output_size[1])
        return kernel, kernel, (0, 0)


class Dropout(Module):
    """Zeroes elements with probability p in training and scales the others by 1 / (1 - p); nothing in eval()."""

    _counter_names = ("_seed", "_drawn")

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise Error(f"Dropout: p is {p}, expected [0, 1)")
        self.p = p
        self._seed, self._drawn = int(generator().integers(1 << 31)), 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        plan = self._plans.get((x.data.shape, x.data.dtype), lambda: _Elementwise(1 if x.size else 0, np.empty_like(x.data)))
        # A filter for each call: its mask follows from the number of the call alone, so that a resumed run draws the same.
        spec = _core.Array((max(1, x.size),), check_float(x, "Dropout"))
        plan.use(DropoutLayer(input=spec, output=spec, rate=self.p, seed=self.draw()))  # type: ignore[attr-defined]
        return plan.run(x)

    def draw(self) -> int:
        self._drawn += 1
        mixed = (self._seed * 0x9E3779B97F4A7C15 + self._drawn * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        return ((mixed ^ mixed >> 29) * 0x94D049BB133111EB >> 16) % 0xFFFFFFFF + 1

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Flatten(Module):
    """Joins axes from start_dim on: (N, C, H, W) becomes (N, C H W)."""

    def __init__(self, start_dim: int = 1) -> None:
        super().__init__()
        self.start_dim = start_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[:self.start_dim] + (math.prod(x.shape[self.start_dim:]),))


class Identity(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


_FUSED = {ReLU, Sigmoid, Tanh, ReLU6}


def _fused(module: Module | None) -> Activation | None:
    """The function of an activation that the layer before takes into its call; None of other modules."""
    return module.function if isinstance(module, _Activation) and type(module) in _FUSED else None


class Sequential(Module):
    """Modules one after the other, named "0", "1", ... A Conv2d or Linear and the activation behind it are one call of the library,
    and so are in training a Conv2d, the BatchNorm2d behind it, and an activation."""

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        self._list: list[Module] = []
        for module in modules:
            self.append(module)

    def children(self) -> Iterator[tuple[str, Module]]:
        for i, module in enumerate(self._list):
            yield str(i), module

    def append(self, module: Module) -> "Sequential":
        if not isinstance(module, Module):
            what = f"the class {module.__name__}" if isinstance(module, type) else f"{type(module).__name__}"
            raise Error(f"Sequential: module {len(self._list)} is {what}, expected an object of a Module (a list goes in as *list)")
        self._list.append(module)
        return self

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, index: Any) -> Any:
        """A module, or for a slice a Sequential of the same modules."""
        return Sequential(*self._list[index]) if isinstance(index, slice) else self._list[index]

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list)

    def forward(self, x: Any) -> Any:
        modules, i = self._list, 0
        while i < len(modules):
            module, i = modules[i], i + 1
            if type(module) in (Conv2d, Linear) and i < len(modules) and isinstance(x, Tensor):
                behind = modules[i]
                function = _fused(behind)
                if function is not None:
                    module._activation, i = function, i + 1
                    try:
                        x = module.forward(x)
                    finally:
                        module._activation = identity
                    continue
                if type(module) is Conv2d and type(behind) is BatchNorm2d and behind.takes(x):
                    function = _fused(modules[i + 1]) if i + 1 < len(modules) else None
                    x = behind.behind(module, identity if function is None else function, x)
                    i += 1 if function is None else 2
                    continue
            x = module.forward(x)
        return x


class Residual(Module):
    """x + block(x), with an optional shortcut for x and an optional activation behind: ResNet's block."""

    def __init__(self, block: Module, shortcut: Module | None = None, activation: Module | None = None) -> None:
        super().__init__()
        self.block, self.shortcut, self.activation = block, shortcut, activation

    def forward(self, x: Tensor) -> Tensor:
        y = self.block.forward(x)
        x = x if self.shortcut is None else self.shortcut.forward(x)
        function = _fused(self.activation)
        if function is not None:
            return operations.add_activated(y, x, function)
        y = y + x
        result: Tensor = y if self.activation is None else self.activation.forward(y)
        return result

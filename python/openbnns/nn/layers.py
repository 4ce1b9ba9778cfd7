"""Layers with weights: Linear, Conv2d, ConvTranspose2d, Embedding. Weights have PyTorch's names and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._errors import Error
from ..layers import ConvolutionLayer, EmbeddingLayer, FullyConnectedLayer, TransposedConvolutionLayer
from ..types import Pair, identity, pair, use_client_pointer
from .module import Module, Parameter, UnaryPlan, fan_bound, generator, positive, uniform
from .tape import Tensor


def check_float(x: Tensor, layer: str) -> str:
    """float32, float16 or bfloat16; the library computes in float32 whatever they are."""
    name = str(x.data.dtype)
    if name not in ("float32", "float16", "bfloat16"):
        raise Error(f"{layer}: input is of dtype {name}, expected float32, float16 or bfloat16: use .astype(\"float32\")")
    return name


class Linear(Module):
    """y = x W^T + b over the last axis. weight (out_features, in_features), bias (out_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        positive("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        bound = fan_bound(in_features)
        self.weight = uniform((out_features, in_features), bound)
        self.bias = uniform((out_features,), bound) if bias else None
        self._activation = identity

    def forward(self, x: Tensor) -> Tensor:
        shape = x.data.shape
        return self._plans.get((shape, x.data.dtype, self._activation), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> UnaryPlan:
        shape, dtype = x.data.shape, check_float(x, "Linear")
        if len(shape) < 1 or shape[-1] != self.in_features:
            raise Error(f"Linear: input has shape {shape}, expected (..., {self.in_features})")
        n = x.size // self.in_features if x.size else 0
        filter = FullyConnectedLayer(input=_core.Array((self.in_features,), dtype), output=_core.Array((self.out_features,), dtype),
                                     weights=self.weight.array, bias=self.bias.array if self.bias is not None else None,
                                     activation=self._activation, filter_parameters=use_client_pointer)
        return UnaryPlan(n, np.empty(shape[:-1] + (self.out_features,), x.dtype), self.weight, self.bias).use(filter)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Conv2d(Module):
    """A convolution of images (N, C, H, W). weight (out, in / groups, kh, kw), bias (out).

    H_out = (H + 2 padding - dilation (k - 1) - 1) // stride + 1. padding may be "same" where stride is 1.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1,
                 padding: Pair | str = 0, dilation: Pair = 1, groups: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = pair(kernel_size, "kernel_size"), pair(stride, "stride")
        self.dilation = pair(dilation, "dilation")
        positive("Conv2d", in_channels=in_channels, out_channels=out_channels, groups=groups, kernel_size=min(self.kernel_size),
                 stride=min(self.stride), dilation=min(self.dilation))
        if in_channels % groups or out_channels % groups:
            raise Error(f"Conv2d: groups is {groups}, expected a divisor of {in_channels} and {out_channels}")
        if isinstance(padding, str):
            if padding == "valid":
                self.pad = (0, 0, 0, 0)
            elif padding == "same" and self.stride == (1, 1):
                total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
                up, left = total[0] // 2, total[1] // 2
                self.pad = (left, total[1] - left, up, total[0] - up)
            else:
                raise Error(f"Conv2d: padding is {padding!r} with stride {self.stride}, expected numbers, 'valid', or 'same' with stride 1")
        else:
            py, px = pair(padding, "padding")
            self.pad = (px, px, py, py)
        fan = in_channels // groups * self.kernel_size[0] * self.kernel_size[1]
        self.weight = uniform((out_channels, in_channels // groups) + self.kernel_size, fan_bound(fan))
        self.bias = uniform((out_channels,), fan_bound(fan)) if bias else None
        self._activation = identity

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype, self._activation), lambda: self._make(x)).run(x)

    def _size(self, size: int, axis: int) -> int:
        before, after = (self.pad[2], self.pad[3]) if axis == 0 else (self.pad[0], self.pad[1])
        return (size + before + after - self.dilation[axis] * (self.kernel_size[axis] - 1) - 1) // self.stride[axis] + 1

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """(C, H, W) of the output for an input of (N, C, H, W)."""
        if len(shape) != 4 or shape[1] != self.in_channels:
            raise Error(f"Conv2d: input has shape {shape}, expected (N, {self.in_channels}, H, W)")
        out = (self.out_channels, self._size(shape[2], 0), self._size(shape[3], 1))
        if out[1] < 1 or out[2] < 1:
            raise Error(f"Conv2d: input has shape {shape}, expected an image of the kernel's size {self.kernel_size} or more")
        return out

    def _make(self, x: Tensor) -> UnaryPlan:
        shape, dtype = x.data.shape, check_float(x, "Conv2d")
        out = self.output_shape(shape)
        filter = ConvolutionLayer(input=_core.Array(shape[1:], dtype), output=_core.Array(out, dtype), weights=self.weight.array,
                                  bias=self.bias.array if self.bias is not None else None, stride=self.stride,
                                  dilation=self.dilation, padding=self.pad, groups=self.groups, activation=self._activation,
                                  filter_parameters=use_client_pointer)
        return UnaryPlan(shape[0], np.empty((shape[0],) + out, x.dtype), self.weight, self.bias).use(filter)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"


class _TransposedPlan(UnaryPlan):
    """A transposed convolution, one filter for each group: slices of channels, at their places in memory.

    PyTorch has weights of (in, out / groups, kh, kw), the library takes (out, in, kh, kw): they are copied for each pass.
    """

    def arrange(self, groups: int) -> np.ndarray:
        assert self.weights is not None
        i, o, kh, kw = self.weights.shape
        self.split = (groups, i // groups, o, kh, kw)
        self.copy = np.empty((groups, o, i // groups, kh, kw), np.float32)
        self.delta = np.empty_like(self.copy)
        return self.copy

    def use(self, filters: Any) -> "_TransposedPlan":
        self.filters = filters
        return self

    def _part(self, a: np.ndarray, g: int) -> Any:
        step = a.shape[1] // len(self.filters)
        return _core.Array(a[:, g * step:(g + 1) * step])

    def run(self, x: Tensor) -> Tensor:
        assert self.weights is not None
        self.x = x
        x.uses += 1
        np.copyto(self.copy, self.weights.data.reshape(self.split).transpose(0, 2, 1, 3, 4))
        for g, filter in enumerate(self.filters):
            filter.apply(self.n, self._part(x.data, g), self._part(self.out.data, g))
        trained = self.weights.requires_grad or (self.bias is not None and self.bias.requires_grad)
        return self.out.fresh(x.needs or trained)

    def backward(self) -> None:
        assert self.weights is not None and self.out.gradient is not None
        x, groups, wanted = self.x, len(self.filters), self.weights.requires_grad

        def targets(owner: Any, part: Any) -> list[Any]:
            target = None if owner is None else owner.target()
            if target is None:
                return [None] * groups
            memory = owner.gradient
            parts = [part(memory.data, g) for g in range(groups)]
            return [p.accumulating() for p in parts] if target is memory.adding else parts

        dx = targets(x, self._part)
        db = targets(self.bias, lambda a, g: _core.Array(a.reshape(groups, -1)[g]))
        for g, filter in enumerate(self.filters):
            filter.apply_backward(self.n, self._part(x.data, g), self._part(self.out.data, g),
                                  self._part(self.out.gradient.data, g), dx[g], self.delta[g] if wanted else None, db[g])
        if wanted:
            self.weights.add_gradient(self.delta.transpose(0, 2, 1, 3, 4).reshape(self.weights.shape))


class ConvTranspose2d(Module):
    """The transpose of Conv2d. weight (in, out / groups, kh, kw); H_out = (H - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1, padding: Pair = 0,
                 output_padding: Pair = 0, groups: int = 1, bias: bool = True, dilation: Pair = 1) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding = pair(kernel_size), pair(stride), pair(padding)
        self.output_padding, self.dilation = pair(output_padding), pair(dilation)
        positive("ConvTranspose2d", in_channels=in_channels, out_channels=out_channels, groups=groups,
                 kernel_size=min(self.kernel_size), stride=min(self.stride), dilation=min(self.dilation))
        if in_channels % groups or out_channels % groups:
            raise Error(f"ConvTranspose2d: groups is {groups}, expected a divisor of {in_channels} and {out_channels}")
        fan = out_channels // groups * self.kernel_size[0] * self.kernel_size[1]
        self.weight = uniform((in_channels, out_channels // groups) + self.kernel_size, fan_bound(fan))
        self.bias = uniform((out_channels,), fan_bound(fan)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> UnaryPlan:
        shape, dtype = x.data.shape, check_float(x, "ConvTranspose2d")
        if len(shape) != 4 or shape[1] != self.in_channels:
            raise Error(f"ConvTranspose2d: input has shape {shape}, expected (N, {self.in_channels}, H, W)")
        size = [(shape[2 + a] - 1) * self.stride[a] - 2 * self.padding[a] + self.dilation[a] * (self.kernel_size[a] - 1)
                + self.output_padding[a] + 1 for a in (0, 1)]
        if min(size) < 1:
            raise Error(f"ConvTranspose2d: input has shape {shape}, expected one whose output is not empty")
        groups, py, px = self.groups, *self.padding
        out = (self.out_channels // groups, size[0], size[1])
        inputs = (self.in_channels // groups,) + shape[2:]
        bias = self.bias.data.reshape(groups, -1) if self.bias is not None else [None] * groups
        y = np.empty((shape[0], self.out_channels) + out[1:], x.dtype)
        plan = _TransposedPlan(shape[0], y, self.weight, self.bias)
        weights = plan.arrange(groups)
        filters = [TransposedConvolutionLayer(
            input=_core.Array(inputs, dtype), output=_core.Array(out, dtype), weights=weights[g], bias=bias[g],
            stride=self.stride, dilation=self.dilation,
            padding=(px, max(0, px - self.output_padding[1]), py, max(0, py - self.output_padding[0])),
            filter_parameters=use_client_pointer) for g in range(groups)]
        return plan.use(filters)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"


class _Lookup(UnaryPlan):
    def backward(self) -> None:
        assert self.weights is not None
        if self.weights.requires_grad:
            self.filter.apply_backward(self.n, self.x.array, self.out.array, self.out.grad, None, self.weights.target())


class Embedding(Module):
    """Rows of a table by integers: x of any shape becomes x.shape + (embedding_dim,). weight (num_embeddings, embedding_dim)."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        super().__init__()
        positive("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx % num_embeddings if padding_idx is not None else None
        data = generator().standard_normal((num_embeddings, embedding_dim)).astype(np.float32)
        if self.padding_idx is not None:
            data[self.padding_idx] = 0
        self.weight = Parameter(data)

    def forward(self, x: Any) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> UnaryPlan:
        if x.data.dtype.kind not in "iu":
            raise Error(f"Embedding: input is of dtype {x.data.dtype}, expected integers")
        dim, n = self.embedding_dim, x.size
        filter = EmbeddingLayer(input=_core.Array((n,), str(x.data.dtype)), output=_core.Array((n, dim)),
                                dictionary=self.weight.data, padding_index=self.padding_idx,
                                filter_parameters=use_client_pointer)
        return _Lookup(1, np.empty(x.data.shape + (dim,), np.float32), self.weight).use(filter)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"

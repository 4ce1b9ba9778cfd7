"""Normalization: BatchNorm2d, LayerNorm, GroupNorm, InstanceNorm2d, with PyTorch's running statistics."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import numpy as np

from .. import _core
from .._errors import Error
from ..fused import FusedParametersLayer, fused_convolution, fused_normalization
from ..layers import NormalizationLayer
from ..types import NormalizationKind, use_client_pointer
from . import tape
from .layers import Conv2d, check_float
from .module import Module, Parameter
from .tape import Plan, Tensor


class _NormPlan(Plan):
    """A call of a normalization filter; `after` is run behind a training pass."""

    def __init__(self, n: int, out: np.ndarray, filter: Any, weight: Parameter | None, bias: Parameter | None,
                 training: bool, after: Any = None) -> None:
        self.n, self.filter, self.weight, self.bias, self.training, self.after = n, filter, weight, bias, training, after
        self.out = Tensor(out)

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        running = tape.current()
        training = self.training or (self.after is None and running is not None and running.record)
        self.filter.apply(self.n, x.array, self.out.array, training)
        if self.after is not None:
            self.after()
        trained = any(p is not None and p.requires_grad for p in (self.weight, self.bias))
        return self.out.fresh(x.needs or trained)

    def backward(self) -> None:
        weight, bias = self.weight, self.bias
        self.filter.apply_backward(self.n, self.out.array, self.out.grad, self.x.target(),
                                   None if bias is None else bias.target(), None if weight is None else weight.target())


class _FrozenPlan(Plan):
    """Batch normalization with running statistics: y = x scale + shift. The library has no gradient of it; NumPy does it."""

    def __init__(self, n: int, out: np.ndarray, filter: Any, owner: Any) -> None:
        self.n, self.filter, self.owner = n, filter, owner
        self.out = Tensor(out)

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        self.filter.apply(self.n, x.array, self.out.array, False)
        trained = any(p is not None and p.requires_grad for p in (self.owner.weight, self.owner.bias))
        return self.out.fresh(x.needs or trained)

    def backward(self) -> None:
        assert self.out.gradient is not None
        o, dy = self.owner, self.out.gradient.data
        inverse = 1 / np.sqrt(o.running_var + o.eps)
        shape = (1, -1) + (1,) * (dy.ndim - 2)
        axes = (0,) + tuple(range(2, dy.ndim))
        scale = inverse if o.weight is None else inverse * o.weight.data
        if o.weight is not None and o.weight.requires_grad:
            hat = (self.x.data - o.running_mean.reshape(shape)) * inverse.reshape(shape)
            o.weight.add_gradient((dy * hat).sum(axes, dtype=np.float64).astype(np.float32))
        if o.bias is not None and o.bias.requires_grad:
            o.bias.add_gradient(dy.sum(axes, dtype=np.float64).astype(np.float32))
        if self.x.needs:
            self.x.add_gradient((dy * scale.reshape(shape)).astype(dy.dtype))


class _FusedPlan(Plan):
    """A convolution, the batch normalization behind it in training, and an activation: one filter of the library."""

    def __init__(self, n: int, out: np.ndarray, filter: Any, conv: Conv2d, norm: "BatchNorm2d", after: Callable[[], None]) -> None:
        self.n, self.filter, self.norm, self.after = n, filter, norm, after
        self.parameters = (conv.weight, conv.bias, norm.bias, norm.weight)
        self.out = Tensor(out)

    def run(self, x: Tensor) -> Tensor:
        self.x = x
        x.uses += 1
        self.filter.apply_all(self.n, [x.array], self.out.array, True)
        self.after()
        return self.out.fresh(x.needs or any(p is not None and p.requires_grad for p in self.parameters))

    def backward(self) -> None:
        x, out = self.x, self.out
        self.filter.apply_all_backward(self.n, [x.array], out.array, out.grad, [x.target()],
                                       [None if p is None else p.target() for p in self.parameters])


class _Norm(Module):
    weight: Parameter | None
    bias: Parameter | None

    def _affine(self, size: tuple[int, ...], affine: bool) -> None:
        self.weight = Parameter(np.ones(size, np.float32)) if affine else None
        self.bias = Parameter(np.zeros(size, np.float32)) if affine else None

    def _filter(self, kind: NormalizationKind, sample: tuple[int, ...], dtype: str, **options: Any) -> NormalizationLayer:
        spec = _core.Array(sample, dtype)
        return NormalizationLayer(type=kind, input=spec, output=spec, epsilon=self.eps,  # type: ignore[attr-defined]
                                  beta=self.bias.array if self.bias is not None else None,
                                  gamma=self.weight.array if self.weight is not None else None,
                                  filter_parameters=use_client_pointer, **options)


def _image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(C, H, W) of the shape of a batch with any number of axes behind the channels."""
    return shape[1], math.prod(shape[2:-1]) if len(shape) > 3 else 1, shape[-1] if len(shape) > 2 else 1


class BatchNorm2d(_Norm):
    """y = weight (x - mean) / sqrt(variance + eps) + bias for each channel of (N, C, H, W).

    Training uses the batch's statistics and moves running_mean and running_var by `momentum` (the unbiased variance, as
    PyTorch does); eval() uses these.
    """

    _buffer_names = ("running_mean", "running_var", "num_batches_tracked")

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
                 track_running_stats: bool = True) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self._affine((num_features,), affine)
        self.running_mean = np.zeros(num_features, np.float32) if track_running_stats else None
        self.running_var = np.ones(num_features, np.float32) if track_running_stats else None
        self.num_batches_tracked = np.zeros((), np.int64) if track_running_stats else None

    def forward(self, x: Tensor) -> Tensor:
        training = self.training or self.running_mean is None
        return self._plans.get((x.data.shape, x.data.dtype, training), lambda: self._make(x, training)).run(x)

    def _make(self, x: Tensor, training: bool) -> Plan:
        shape, dtype = x.data.shape, check_float(x, "BatchNorm2d")
        if len(shape) != 4 or shape[1] != self.num_features:
            raise Error(f"BatchNorm2d: input has shape {shape}, expected (N, {self.num_features}, H, W)")
        kind, y = NormalizationKind.batch, np.empty_like(x.data)
        if not training:
            filter = self._filter(kind, shape[1:], dtype, moving_mean=self.running_mean, moving_variance=self.running_var)
            return _FrozenPlan(shape[0], y, filter, self)
        if self.running_mean is None:
            return _NormPlan(shape[0], y, self._filter(kind, shape[1:], dtype), self.weight, self.bias, True)
        mean, variance, after = self._statistics(shape)
        filter = self._filter(kind, shape[1:], dtype, moving_mean=mean, moving_variance=variance, momentum=0.0)
        return _NormPlan(shape[0], y, filter, self.weight, self.bias, True, after)

    def _statistics(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, Callable[[], None]]:
        """Memory for the statistics of a batch, and what moves the running ones behind a training pass.

        With momentum 0 the library leaves the batch's own statistics; the running ones move here, with PyTorch's variance.
        """
        values = shape[0] * shape[2] * shape[3]
        if values < 2:
            raise Error(f"BatchNorm2d: input has shape {shape}, expected more than one value for each channel in training")
        mean, variance = np.zeros(self.num_features, np.float32), np.zeros(self.num_features, np.float32)
        running_mean, running_var, count = self.running_mean, self.running_var, self.num_batches_tracked
        keep, take = np.float32(1 - self.momentum), np.float32(self.momentum)
        unbiased = np.float32(self.momentum * values / (values - 1))
        assert running_mean is not None and running_var is not None and count is not None

        def after() -> None:
            running = tape.current()
            if running is None or not running.record:
                return
            np.multiply(running_mean, keep, out=running_mean)
            np.multiply(running_var, keep, out=running_var)
            running_mean.__iadd__(mean * take)
            running_var.__iadd__(variance * unbiased)
            count.__iadd__(1)

        return mean, variance, after

    def takes(self, x: Tensor) -> bool:
        """Whether a convolution of x and this layer can be one filter: in training, with weights and running statistics."""
        return (self.training and self.running_mean is not None and self.weight is not None and x.data.dtype == np.float32
                and x.data.ndim == 4 and x.data.size > 0)

    def behind(self, conv: Conv2d, activation: Any, x: Tensor) -> Tensor:
        """activation(self(conv(x))) in one call."""
        key = (x.data.shape, id(self), self._plans.version, activation)
        return conv._plans.get(key, lambda: self._fuse(conv, activation, x)).run(x)

    def _fuse(self, conv: Conv2d, activation: Any, x: Tensor) -> Plan:
        shape = x.data.shape
        out = conv.output_shape(shape)
        if out[0] != self.num_features:
            raise Error(f"BatchNorm2d: input has shape {(shape[0],) + out}, expected (N, {self.num_features}, H, W)")
        assert self.weight is not None and self.bias is not None
        mean, variance, after = self._statistics((shape[0],) + out)
        stages = [fused_convolution(conv.weight.array, None if conv.bias is None else conv.bias.array, conv.stride, conv.dilation,
                                    conv.pad, conv.groups),
                  fused_normalization(NormalizationKind.batch, self.bias.array, self.weight.array, mean, variance, 0.0, self.eps,
                                      activation)]
        filter = FusedParametersLayer(inputs=_core.Array(shape[1:]), output=_core.Array(out), fused_layer_parameters=stages,
                                      filter_parameters=use_client_pointer)
        return _FusedPlan(shape[0], np.empty((shape[0],) + out, np.float32), filter, conv, self, after)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class LayerNorm(_Norm):
    """The same over the last axes, `normalized_shape`, of each row. weight and bias have that shape."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self._affine(self.normalized_shape, elementwise_affine)

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> Plan:
        shape, dtype, own = x.data.shape, check_float(x, "LayerNorm"), self.normalized_shape
        if shape[-len(own):] != own:
            raise Error(f"LayerNorm: input has shape {shape}, expected (..., {', '.join(map(str, own))})")
        width = math.prod(own)
        filter = self._filter(NormalizationKind.layer, (1, 1, width), dtype, axis=0)
        return _NormPlan(x.size // width, np.empty_like(x.data), filter, self.weight, self.bias, False)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(_Norm):
    """The same over groups of channels of (N, C, ...), for each sample. weight and bias (C)."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise Error(f"GroupNorm: num_groups is {num_groups}, expected a divisor of {num_channels}")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self._affine((num_channels,), affine)

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> Plan:
        shape, dtype = x.data.shape, check_float(x, "GroupNorm")
        if len(shape) < 2 or shape[1] != self.num_channels:
            raise Error(f"GroupNorm: input has shape {shape}, expected (N, {self.num_channels}, ...)")
        filter = self._filter(NormalizationKind.group, _image(shape), dtype, group_count=self.num_groups)
        return _NormPlan(shape[0], np.empty_like(x.data), filter, self.weight, self.bias, False)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class InstanceNorm2d(_Norm):
    """The same over H and W, for each sample and channel of (N, C, H, W). Without weight and bias unless affine."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        self.num_features, self.eps = num_features, eps
        self._affine((num_features,), affine)

    def forward(self, x: Tensor) -> Tensor:
        return self._plans.get((x.data.shape, x.data.dtype), lambda: self._make(x)).run(x)

    def _make(self, x: Tensor) -> Plan:
        shape, dtype = x.data.shape, check_float(x, "InstanceNorm2d")
        if len(shape) != 4 or shape[1] != self.num_features:
            raise Error(f"InstanceNorm2d: input has shape {shape}, expected (N, {self.num_features}, H, W)")
        filter = self._filter(NormalizationKind.instance, shape[1:], dtype)
        return _NormPlan(shape[0], np.empty_like(x.data), filter, self.weight, self.bias, False)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}"

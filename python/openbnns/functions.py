"""Functions without a layer, on whole arrays. Axes are NumPy's; outputs are arrays of yours, written in place."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from . import _core
from ._core import Activation
from .types import ArrayLike, ReductionFunction, RelationalOperator, ShuffleType, axis_mask

Axes = Sequence[int] | int | None


def _rank(x: ArrayLike) -> int:
    return len(x.shape) if hasattr(x, "shape") else np.ndim(x)


def _axis(axis: int, x: ArrayLike) -> int:
    rank = _rank(x)
    if not -rank <= axis < rank:
        raise ValueError(f"axis is {axis}, expected -{rank} to {rank - 1}")
    return axis % rank


def apply_activation(activation: Activation, input: ArrayLike, output: ArrayLike, axes: Axes = None) -> None:
    """output = activation(input); softmax and its kind along `axes`."""
    _core.apply_activation(activation, input, output, axis_mask(axes, _rank(input)))


def apply_reduction(function: ReductionFunction, input: ArrayLike, output: ArrayLike, weights: ArrayLike = None,
                    epsilon: float = 0.0) -> None:
    """Reduces the axes whose extent in output is 1."""
    _core.apply_reduction(int(function), input, output, weights, epsilon)


def apply_top_k(k: int, input: ArrayLike, best_values: ArrayLike, best_indices: ArrayLike = None, axis: int = -1) -> None:
    """The k largest along an axis, and where they are."""
    _core.apply_top_k(k, _axis(axis, input), input, best_values, best_indices)


def apply_in_top_k(k: int, input: ArrayLike, test_indices: ArrayLike, output: ArrayLike, axis: int = -1) -> None:
    """Whether indices are among the k largest along an axis (bool)."""
    _core.apply_in_top_k(k, _axis(axis, input), input, test_indices, output)


def apply_matrix_multiplication(input_a: ArrayLike, input_b: ArrayLike, output: ArrayLike, alpha: float = 1.0,
                                a_transposed: bool = False, b_transposed: bool = False) -> None:
    """output = alpha op(A) op(B), with broadcasting of leading axes."""
    _core.apply_matrix_multiplication(input_a, a_transposed, input_b, b_transposed, output, alpha)


def matrix_multiplication_workspace_size(input_a: ArrayLike, input_b: ArrayLike, output: ArrayLike, alpha: float = 1.0,
                                         a_transposed: bool = False, b_transposed: bool = False) -> int | None:
    """Bytes that such a product allocates; None where it is refused."""
    return _core.matrix_multiplication_workspace_size(input_a, a_transposed, input_b, b_transposed, output, alpha)


def clip(lower: float, upper: float, input: ArrayLike, output: ArrayLike) -> None:
    """min(max(x, lower), upper)"""
    _core.clip(lower, upper, input, output)


def clip_by_norm(threshold: float, input: ArrayLike, output: ArrayLike, axes: Axes = None) -> None:
    """x times min(1, threshold / its L2 norm over axes)."""
    _core.clip_by_norm(threshold, input, output, axis_mask(axes, _rank(input)))


def clip_by_global_norm(threshold: float, inputs: Sequence[ArrayLike], outputs: Sequence[ArrayLike],
                        global_norm: float = 0.0) -> None:
    """The same for several arrays and their common norm, computed where it is 0."""
    _core.clip_by_global_norm(threshold, list(inputs), list(outputs), global_norm)


def compute_norm(input: ArrayLike, output: ArrayLike, axes: Axes = None) -> None:
    """The L2 norm over axes."""
    _core.compute_norm(input, output, axis_mask(axes, _rank(input)))


def compute_norm_backward(input: ArrayLike, output: ArrayLike, output_gradient: ArrayLike,
                          generating_input_gradient: ArrayLike, axes: Axes = None) -> None:
    """Its gradient: dx = dy x / norm."""
    _core.compute_norm_backward(input, output, output_gradient, generating_input_gradient, axis_mask(axes, _rank(input)))


def compare(first: ArrayLike, second: ArrayLike, relation: RelationalOperator, output: ArrayLike) -> None:
    """output (bool) = first relation second."""
    _core.compare(first, second, int(relation), output)


def copy(source: ArrayLike, to: ArrayLike) -> None:
    """Copies between strides and data types."""
    _core.copy(source, to)


def copy_band_part(source: ArrayLike, to: ArrayLike, lower_band_count: int | None = None,
                   upper_band_count: int | None = None) -> None:
    """The diagonal and so many bands below and above it, 0 elsewhere; None: all."""
    _core.copy_band_part(source, to, -1 if lower_band_count is None else lower_band_count,
                         -1 if upper_band_count is None else upper_band_count)


def transpose(input: ArrayLike, output: ArrayLike, first_axis: int, second_axis: int) -> None:
    """Swaps two axes."""
    _core.transpose(input, output, _axis(first_axis, input), _axis(second_axis, input))


def tile(input: ArrayLike, output: ArrayLike) -> None:
    """Repeats the input to fill the output."""
    _core.tile(input, output)


def tile_backward(output_gradient: ArrayLike, generating_input_gradient: ArrayLike) -> None:
    """Sums the copies."""
    _core.tile_backward(output_gradient, generating_input_gradient)


def shuffle(type: ShuffleType, input: ArrayLike, output: ArrayLike) -> None:
    """Pixel shuffle and its inverse, space to depth and its inverse, of (C, H, W) or (N, C, H, W)."""
    _core.shuffle(int(type), input, output)


def gather(input: ArrayLike, indices: ArrayLike, output: ArrayLike, axis: int = 0) -> None:
    """output[..., i, ...] = input[..., indices[i], ...] along an axis."""
    _core.gather(input, indices, output, _axis(axis, input))


def gather_nd(input: ArrayLike, indices: ArrayLike, output: ArrayLike) -> None:
    """The last axis of indices is a position in the input."""
    _core.gather_nd(input, indices, output)


def scatter(input: ArrayLike, indices: ArrayLike, output: ArrayLike, axis: int = 0,
            reduction_function: ReductionFunction = ReductionFunction.none) -> None:
    """output[..., indices[i], ...] = input[..., i, ...] along an axis, or += with ReductionFunction.sum."""
    _core.scatter(input, indices, output, _axis(axis, output), int(reduction_function))


def scatter_nd(input: ArrayLike, indices: ArrayLike, output: ArrayLike,
               reduction_function: ReductionFunction = ReductionFunction.none) -> None:
    """The same with positions in the last axis of indices."""
    _core.scatter_nd(input, indices, output, int(reduction_function))


def quantize(input: ArrayLike, output: ArrayLike, axis: int | None = None, scale: ArrayLike = None, bias: ArrayLike = None) -> None:
    """output = scale input + bias, rounded; one scale and bias, or one for each index of an axis."""
    _core.quantize(0, input, output, axis_mask(axis, _rank(input)), scale, bias)


def dequantize(input: ArrayLike, output: ArrayLike, axis: int | None = None, scale: ArrayLike = None,
               bias: ArrayLike = None) -> None:
    """output = (input - bias) / scale."""
    _core.quantize(1, input, output, axis_mask(axis, _rank(input)), scale, bias)

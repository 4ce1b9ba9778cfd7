"""Layers of the library as classes: the C++ overlay in Python's spelling.

A layer is made with arrays or shapes of one sample (`(channels, height, width)` for images) and is applied to batches:

    layer = ConvolutionLayer(input=(1, 28, 28), weights=w, output=(8, 26, 26), bias=b, filter_parameters=use_client_pointer)
    layer.apply(n, x, y)                                   # x is (n, 1, 28, 28)
    layer.apply_backward(n, input=x, output=y, output_gradient=dy, generating_input_gradient=dx,
                         generating_weights_gradient=dw, generating_bias_gradient=db)

Without `use_client_pointer` weights are copied when the layer is made, and an optimizer's steps have no effect. Gradients may
be left out; `Array(dw).accumulating()` adds to one. Every array is compared with the layer before anything runs.
"""

from __future__ import annotations

import struct
from typing import Sequence

from . import _core
from ._core import Activation, FilterParameters
from .types import (ArithmeticFunction, ArrayLike, BoxCoordinateMode, DescriptorType, InterpolationMethod, LinearSamplingMode,
                    LossFunction, LossReduction, NormalizationKind, PaddingMode, Pair, PoolingFunction, ReductionFunction,
                    Spec, axis_mask, default_parameters, identity, pair)


def _pads(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """(left, right, up, down) of one number, of (y, x), or of the four."""
    if isinstance(padding, int):
        return padding, padding, padding, padding
    if len(padding) == 2:
        return padding[1], padding[1], padding[0], padding[0]
    if len(padding) != 4:
        raise ValueError(f"padding has {len(padding)} numbers, expected 1, 2 (y, x) or 4 (left, right, up, down)")
    return padding[0], padding[1], padding[2], padding[3]


def _xy(value: Pair, what: str) -> tuple[int, int]:
    y, x = pair(value, what)
    return x, y


class ConvolutionLayer(_core.UnaryFilter):
    """output = activation(weights * input + bias); images (C, H, W), weights (O, I / groups, kh, kw).

    stride, dilation: one number or (y, x); padding: one number, (y, x), or (left, right, up, down).
    """

    _transposed = False

    def __init__(self, *, input: Spec, weights: Spec, output: Spec, bias: Spec = None, stride: Pair = 1, dilation: Pair = 1,
                 padding: int | Sequence[int] = 0, groups: int = 1, activation: Activation = identity,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_convolution(self, input, weights, output, bias, _xy(stride, "stride"), _xy(dilation, "dilation"),
                               _pads(padding), groups, activation, filter_parameters, self._transposed)


class TransposedConvolutionLayer(ConvolutionLayer):
    """The transpose of a convolution: each input element adds the kernel, times itself, to the output."""

    _transposed = True


class FullyConnectedLayer(_core.UnaryFilter):
    """output = activation(weights input + bias); weights (outputs, inputs)."""

    def __init__(self, *, input: Spec, output: Spec, weights: Spec, bias: Spec = None, activation: Activation = identity,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_fully_connected(self, input, output, weights, bias, activation, filter_parameters)


class PoolingLayer(_core.PoolingFilter):
    """Maximum, mean or L2 norm of windows. `indices` of the calls: positions of maxima, one for each output."""

    def __init__(self, *, type: PoolingFunction, input: Spec, output: Spec, kernel_size: Pair, stride: Pair = 1,
                 dilation: Pair = 1, padding: int | Sequence[int] = 0, bias: Spec = None, activation: Activation = identity,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_pooling(self, int(type), input, output, bias, activation, _xy(kernel_size, "kernel_size"),
                           _xy(stride, "stride"), _xy(dilation, "dilation"), _pads(padding), filter_parameters)


class ActivationLayer(_core.UnaryFilter):
    """A function of each element, or softmax and its kind along `axes` of a sample (none: the last in memory)."""

    def __init__(self, *, function: Activation, input: Spec, output: Spec, axes: Sequence[int] | int | None = None,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        rank = len(_core.Array(input).shape) if isinstance(input, (tuple, list, int)) else len(input.shape)
        _core.make_activation(self, function, input, output, axis_mask(axes, rank), filter_parameters)


class NormalizationLayer(_core.NormalizationFilter):
    """y = activation(gamma (x - mean) / sqrt(variance + epsilon) + beta); batch, instance, layer or group statistics."""

    def __init__(self, *, type: NormalizationKind, input: Spec, output: Spec, beta: Spec = None, gamma: Spec = None,
                 moving_mean: Spec = None, moving_variance: Spec = None, momentum: float = 0.0, epsilon: float = 1e-5,
                 activation: Activation = identity, group_count: int = 0, axis: int = 0,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_normalization(self, int(type), input, output, beta, gamma, moving_mean, moving_variance, momentum, epsilon,
                                 activation, group_count, axis, filter_parameters)


class DropoutLayer(_core.UnaryFilter):
    """y = x / (1 - rate) where kept, 0 where dropped; each call decides anew. seed 0: one of the operating system's."""

    def __init__(self, *, input: Spec, output: Spec, rate: float, seed: int = 0, control: int = 0,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_dropout(self, input, output, rate, seed, control, filter_parameters)


class PaddingLayer(_core.UnaryFilter):
    """Elements before and after each axis: size is ((before, after), ...)."""

    def __init__(self, *, input: Spec, output: Spec, size: Sequence[Sequence[int]], mode: PaddingMode = PaddingMode.constant,
                 value: float = 0.0, filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        _core.make_padding(self, input, output, [(s[0], s[1]) for s in size], int(mode), bits, filter_parameters)


class PermuteLayer(_core.PermuteFilter):
    """Output axis k is input axis permutation[k]."""

    def __init__(self, *, input: Spec, output: Spec, permutation: Sequence[int],
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_permute(self, input, output, list(permutation), filter_parameters)


class ReductionLayer(_core.UnaryFilter):
    """Axes whose output extent is 1 are reduced."""

    def __init__(self, *, function: ReductionFunction, input: Spec, output: Spec, weights: Spec = None, epsilon: float = 0.0,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_reduction(self, int(function), input, output, weights, epsilon, filter_parameters)


class ResizeLayer(_core.UnaryFilter):
    """Resizing by whole factors: nearest or linear."""

    def __init__(self, *, method: InterpolationMethod, input: Spec, output: Spec, align_corners: bool = False,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_resize(self, int(method), input, output, align_corners, filter_parameters)


class GramLayer(_core.UnaryFilter):
    """output (C, C) = alpha X X^T for X the channels of an image as rows."""

    def __init__(self, *, input: Spec, output: Spec, alpha: float = 1.0,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_gram(self, input, output, alpha, filter_parameters)


class EmbeddingLayer(_core.UnaryFilter):
    """output[..., i, :] = dictionary[input[..., i], :]; the dictionary's gradient is generating_weights_gradient."""

    def __init__(self, *, input: Spec, output: Spec, dictionary: Spec, padding_index: int | None = None,
                 maximum_norm: float = 0.0, norm_type: float = 2.0, scales_gradient_by_frequency: bool = False,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        arrays = []
        for value in (output, dictionary):  # items lie side by side: last-major layouts
            made = value if isinstance(value, _core.Array) else _core.Array(value)
            rank = len(made.shape)
            if made.layout == 0 and rank > 1:
                source = value.owner if isinstance(value, _core.Array) and value.owner is not None else value
                if isinstance(source, _core.Array):
                    made = _core.Array(source.shape, source.dtype, (rank << 16) | 0x8000)
                else:
                    made = _core.Array(source, None, (rank << 16) | 0x8000)
            arrays.append(made)
        ids = input if isinstance(input, _core.Array) or hasattr(input, "dtype") else _core.Array(input, "int64")
        rank = len(ids.shape)
        if rank > 1 and not (isinstance(ids, _core.Array) and ids.layout):
            source = ids.owner if isinstance(ids, _core.Array) else ids
            ids = _core.Array(ids.shape if source is None else source, ids.dtype if source is None else None,
                              (rank << 16) | 0x8000)
        none = (1 << 64) - 1
        _core.make_embedding(self, ids, arrays[0], arrays[1], none if padding_index is None else padding_index, maximum_norm,
                             norm_type, scales_gradient_by_frequency, filter_parameters)


class LossLayer(_core.LossFilter):
    """A loss of a batch, and the gradient of the prediction in the same call. number: label smoothing, or Huber's delta."""

    def __init__(self, *, input: Spec, loss_function: LossFunction, output: Spec = None,
                 loss_reduction: LossReduction = LossReduction.mean, number: float = 0.0,
                 yolo: _core.YoloParameters | None = None,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_loss(self, int(loss_function), input, output, int(loss_reduction), number,
                        yolo if yolo is not None else _core.YoloParameters(), filter_parameters)


class BroadcastMatrixMultiplyLayer(_core.BinaryFilter):
    """output = alpha op(A) op(B). An operand that is weights is taken when the layer is made: then use apply_one."""

    def __init__(self, *, input_a: Spec, output: Spec, input_b: Spec = None, a_transposed: bool = False,
                 b_transposed: bool = False, a_is_weights: bool = False, b_is_weights: bool = False, alpha: float = 1.0,
                 accumulates_to_output: bool = False, is_quadratic: bool = False,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_matrix_product(self, input_a, input_b, output, a_transposed, b_transposed, a_is_weights, b_is_weights,
                                  alpha, accumulates_to_output, is_quadratic, filter_parameters)


class TensorContractionLayer(_core.BinaryFilter):
    """A contraction in index notation: "a_ij, b_jk -> out_ik"."""

    def __init__(self, *, operation: str, input_a: Spec, output: Spec, input_b: Spec = None, alpha: float = 1.0,
                 accumulates_to_output: bool = False, filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_contraction(self, operation, input_a, input_b, output, alpha, accumulates_to_output, filter_parameters)


class _ArithmeticLayer(_core.ArithmeticFilter):
    _names: tuple[str, ...] = ()

    def _make(self, inputs: Sequence[Spec], roles: Sequence[int], output: Spec, output_role: int,
              function: ArithmeticFunction, activation: Activation, parameters: FilterParameters) -> None:
        super().__init__()
        _core.make_arithmetic(self, int(function), list(inputs), [int(r) for r in roles], output, int(output_role), activation,
                              parameters)


class UnaryArithmeticLayer(_ArithmeticLayer):
    """output = function(input), element by element."""

    def __init__(self, *, input: Spec, output: Spec, function: ArithmeticFunction,
                 input_descriptor_type: DescriptorType = DescriptorType.sample,
                 output_descriptor_type: DescriptorType = DescriptorType.sample, activation: Activation = identity,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        self._make([input], [input_descriptor_type], output, output_descriptor_type, function, activation, filter_parameters)

    def apply(self, batch_size: int, input: ArrayLike, output: ArrayLike) -> None:
        self.apply_many(batch_size, [input], output)

    def apply_backward(self, batch_size: int, input: ArrayLike = None, output: ArrayLike = None,
                       output_gradient: ArrayLike = None, generating_input_gradient: ArrayLike = None) -> None:
        self.apply_many_backward(batch_size, [input], output, output_gradient, [generating_input_gradient])


class BinaryArithmeticLayer(_ArithmeticLayer):
    """output = function(a, b); an operand with an axis of extent 1 is broadcast."""

    def __init__(self, *, input_a: Spec, input_b: Spec, output: Spec, function: ArithmeticFunction,
                 input_a_descriptor_type: DescriptorType = DescriptorType.sample,
                 input_b_descriptor_type: DescriptorType = DescriptorType.sample,
                 output_descriptor_type: DescriptorType = DescriptorType.sample, activation: Activation = identity,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        self._make([input_a, input_b], [input_a_descriptor_type, input_b_descriptor_type], output, output_descriptor_type,
                   function, activation, filter_parameters)

    def apply(self, batch_size: int, input_a: ArrayLike, input_b: ArrayLike, output: ArrayLike) -> None:
        self.apply_many(batch_size, [input_a, input_b], output)

    def apply_backward(self, batch_size: int, input_a: ArrayLike = None, input_b: ArrayLike = None, output: ArrayLike = None,
                       output_gradient: ArrayLike = None, generating_input_a_gradient: ArrayLike = None,
                       generating_input_b_gradient: ArrayLike = None) -> None:
        self.apply_many_backward(batch_size, [input_a, input_b], output, output_gradient,
                                 [generating_input_a_gradient, generating_input_b_gradient])


class TernaryArithmeticLayer(_ArithmeticLayer):
    """output = function(a, b, c): multiply_add or select."""

    def __init__(self, *, input_a: Spec, input_b: Spec, input_c: Spec, output: Spec, function: ArithmeticFunction,
                 input_descriptor_types: Sequence[DescriptorType] = (DescriptorType.sample,) * 3,
                 output_descriptor_type: DescriptorType = DescriptorType.sample, activation: Activation = identity,
                 filter_parameters: FilterParameters = default_parameters) -> None:
        self._make([input_a, input_b, input_c], list(input_descriptor_types), output, output_descriptor_type, function,
                   activation, filter_parameters)

    def apply(self, batch_size: int, input_a: ArrayLike, input_b: ArrayLike, input_c: ArrayLike, output: ArrayLike) -> None:
        self.apply_many(batch_size, [input_a, input_b, input_c], output)


class CropResizeLayer:
    """Crops boxes of an image (H, W or N, C, H, W) and resizes each by linear interpolation."""

    def __init__(self, *, coordinates_are_normalized: bool, spatial_scale: float, extrapolation_value: float = 0.0,
                 sampling_mode: LinearSamplingMode = LinearSamplingMode.default,
                 box_coordinate_mode: BoxCoordinateMode = BoxCoordinateMode.corners_height_first) -> None:
        self._numbers = (coordinates_are_normalized, spatial_scale, extrapolation_value, int(sampling_mode),
                         int(box_coordinate_mode))

    def apply(self, input: ArrayLike, region_of_interest: ArrayLike, output: ArrayLike) -> None:
        _core.crop_resize(*self._numbers, input, region_of_interest, output, False)

    def apply_backward(self, output_gradient: ArrayLike, region_of_interest: ArrayLike,
                       generating_input_gradient: ArrayLike) -> None:
        _core.crop_resize(*self._numbers, output_gradient, region_of_interest, generating_input_gradient, True)

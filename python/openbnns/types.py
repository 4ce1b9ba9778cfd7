"""Small values that layers take: enums, activation functions, options. Numbers are those of the C interface."""

from __future__ import annotations

import copyreg
import enum
from typing import Any, Sequence, Union

import numpy as np

from . import _core
from ._core import Activation, Array, FilterParameters
from ._errors import Error

#: Reads weights, bias, beta and gamma where the caller keeps them, so that an optimizer's steps take effect.
use_client_pointer = FilterParameters(use_client_pointer=True)
default_parameters = FilterParameters()

copyreg.pickle(Activation, lambda a: (Activation, (a.function, a.alpha, a.beta)))  # models are copied and pickled

#: What calls take: NumPy, PyTorch (CPU), DLPack, buffers, or an Array made from one.
ArrayLike = Any
#: What a layer is made with: an array, or a shape alone such as (3, 32, 32).
Spec = Any
Pair = Union[int, Sequence[int]]


class DataLayout(enum.IntEnum):
    """Orders of axes, for arrays whose meaning is not plain from where they are used."""

    vector = 0x10000
    matrix_row_major = 0x20000
    matrix_column_major = 0x20001
    image_chw = 0x30000
    tensor_3d_sne = 0x30001
    tensor_3d_nse = 0x30002
    convolution_weights_oihw = 0x40000
    convolution_weights_oihrwr = 0x40001
    convolution_weights_iohrwr = 0x40002
    tensor_2d_last_major = 0x28000
    tensor_2d_first_major = 0x28001
    tensor_3d_last_major = 0x38000
    tensor_3d_first_major = 0x38001
    tensor_4d_last_major = 0x48000
    tensor_4d_first_major = 0x48001


class ArithmeticFunction(enum.IntEnum):
    add = 0
    subtract = 1
    multiply = 2
    divide = 3
    square_root = 4
    reciprocal_square_root = 5
    ceil = 6
    floor = 7
    round = 8
    sin = 9
    cos = 10
    tan = 11
    asin = 12
    acos = 13
    atan = 14
    sinh = 15
    cosh = 16
    tanh = 17
    asinh = 18
    acosh = 19
    atanh = 20
    pow = 21
    exp = 22
    exp2 = 23
    log = 24
    log2 = 25
    multiply_no_nan = 26
    divide_no_nan = 27
    multiply_add = 28
    minimum = 29
    maximum = 30
    select = 31
    abs = 32
    sign = 33
    negate = 34
    reciprocal = 35
    square = 36
    floor_divide = 37
    trunc_divide = 38
    trunc_remainder = 39
    erf = 40


class DescriptorType(enum.IntEnum):
    """How an operand of arithmetic takes part."""

    constant = 0
    sample = 1
    parameter = 2


class PoolingFunction(enum.IntEnum):
    max = 0
    average_count_include_padding = 1
    average_count_exclude_padding = 2
    un_max = 3
    l2_norm = 4


class NormalizationKind(enum.IntEnum):
    batch = 2
    instance = 3
    layer = 4
    group = 5


class LossFunction(enum.IntEnum):
    softmax_cross_entropy = 1
    sigmoid_cross_entropy = 2
    mean_square_error = 3
    huber = 4
    yolo = 5
    log = 6
    cosine_distance = 7
    hinge = 8
    mean_absolute_error = 9
    categorical_cross_entropy = 10


class LossReduction(enum.IntEnum):
    none = 0
    sum = 1
    weighted_mean = 2
    mean = 3
    non_zero_weight_mean = 4


class ReductionFunction(enum.IntEnum):
    max = 0
    min = 1
    arg_max = 2
    arg_min = 3
    mean = 4
    mean_non_zero = 5
    sum = 6
    sum_square = 7
    sum_log = 8
    l1_norm = 9
    logical_or = 10
    logical_and = 11
    l2_norm = 12
    log_sum_exp = 13
    product = 14
    none = 15
    log_of_sum = 16


class RelationalOperator(enum.IntEnum):
    equal = 0
    less = 1
    less_equal = 2
    greater = 3
    greater_equal = 4
    not_equal = 5
    and_ = 6
    or_ = 7
    not_ = 8
    nand = 9
    nor = 10
    xor_ = 11


class PaddingMode(enum.IntEnum):
    constant = 0
    reflect = 1
    symmetric = 2


class InterpolationMethod(enum.IntEnum):
    nearest = 0
    linear = 1


class ShuffleType(enum.IntEnum):
    pixel_shuffle_nchw = 0
    pixel_unshuffle_nchw = 1
    depth_to_space_nchw = 2
    space_to_depth_nchw = 3


class LinearSamplingMode(enum.IntEnum):
    default = 0
    align_corners = 1
    unalign_corners = 2
    strict_align_corners = 3
    offset_corners = 4


class BoxCoordinateMode(enum.IntEnum):
    corners_height_first = 0
    corners_width_first = 1
    center_size_height_first = 2
    center_size_width_first = 3


class ActivationFunction:
    """Activation functions by name: ActivationFunction.relu(), ActivationFunction.leaky_relu(0.1)."""

    _plain = {
        "identity": 0, "relu": 1, "sigmoid": 3, "tanh": 4, "abs": 6, "softmax": 11, "softsign": 17, "log_softmax": 21,
        "log_sigmoid": 22, "selu": 23, "tanh_shrink": 27, "hard_swish": 30, "silu": 31, "relu6": 32, "erf": 33, "gelu": 34,
        "gelu_approximation_sigmoid": 35, "gelu_approximation_2": 30,
    }
    _alpha = {"leaky_relu": 2, "linear": 7, "elu": 18, "celu": 24, "hard_shrink": 25, "soft_shrink": 26,
              "prelu_per_channel": 29}
    _alpha_beta = {
        "scaled_tanh": 5, "clamp": 8, "gelu_approximation": 12, "gumbel": 13, "gumbel_max": 14, "hard_sigmoid": 15,
        "softplus": 16, "clamped_leaky_relu": 19, "linear_with_bias": 20, "threshold": 28,
    }

    def __new__(cls, name: str, alpha: float = 0.0, beta: float = 0.0) -> Activation:  # type: ignore[misc]
        for table in (cls._plain, cls._alpha, cls._alpha_beta):
            if name in table:
                return Activation(table[name], alpha, beta)
        raise ValueError(f"no activation function {name!r}")


def _factories() -> None:
    def plain(code: int) -> Any:
        return staticmethod(lambda: Activation(code))

    def alpha(code: int) -> Any:
        return staticmethod(lambda alpha: Activation(code, alpha))

    def both(code: int) -> Any:
        return staticmethod(lambda alpha, beta: Activation(code, alpha, beta))

    for table, make in ((ActivationFunction._plain, plain), (ActivationFunction._alpha, alpha),
                        (ActivationFunction._alpha_beta, both)):
        for name, code in table.items():
            setattr(ActivationFunction, name, make(code))


_factories()
identity = Activation()


def pair(value: Pair, what: str = "value") -> tuple[int, int]:
    """(y, x) of a number for both or a sequence of two, in PyTorch's order (height, width)."""
    items = (value, value) if isinstance(value, (int, np.integer)) else tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(items) != 2 or not all(isinstance(v, (int, np.integer)) for v in items):
        raise Error(f"{what} is {value!r}, expected a whole number or two")
    return int(items[0]), int(items[1])


def array(source: ArrayLike, layout: DataLayout | int = 0) -> Array:
    """The array with a layout of your choice, without a copy. Without one it has the layout that its place asks for."""
    return _core.Array(source, layout=int(layout))


def shape(sizes: Sequence[int] | int, dtype: Any = "float32", layout: DataLayout | int = 0) -> Array:
    """A shape without memory, of a data type, for what a layer is made with."""
    return _core.Array(sizes, dtype=dtype, layout=int(layout))


def axis_mask(axes: Sequence[int] | int | None, rank: int) -> int:
    """Axis numbers, negative ones from the end, as bits."""
    if axes is None:
        return 0
    mask = 0
    for axis in (axes,) if isinstance(axes, int) else axes:
        if not -rank <= axis < rank:
            raise ValueError(f"axis is {axis}, expected -{rank} to {rank - 1}")
        mask |= 1 << (axis % rank)
    return mask

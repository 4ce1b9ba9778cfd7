"""Fused layers, attention and LSTM of the library, and optimizers with explicit lists of arrays."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

from . import _core
from ._core import Activation, FilterParameters
from .layers import _pads, _xy
from .types import ArithmeticFunction, ArrayLike, DescriptorType, NormalizationKind, Pair, Spec, default_parameters, identity


def fused_convolution(weights: Spec, bias: Spec = None, stride: Pair = 1, dilation: Pair = 1,
                      padding: int | Sequence[int] = 0, groups: int = 1, transposed: bool = False) -> dict[str, Any]:
    """A first stage. Its parameter gradients: weights, bias."""
    return {"kind": "transposed_convolution" if transposed else "convolution", "weights": weights, "bias": bias,
            "stride": list(_xy(stride, "stride")), "dilation": list(_xy(dilation, "dilation")), "padding": list(_pads(padding)),
            "groups": groups}


def fused_fully_connected(weights: Spec, bias: Spec = None) -> dict[str, Any]:
    """A first stage. Its parameter gradients: weights, bias."""
    return {"kind": "fully_connected", "weights": weights, "bias": bias}


def fused_normalization(type: NormalizationKind, beta: Spec = None, gamma: Spec = None, moving_mean: Spec = None,
                        moving_variance: Spec = None, momentum: float = 0.0, epsilon: float = 1e-5,
                        activation: Activation = identity, group_count: int = 0, axis: int = 0) -> dict[str, Any]:
    """A second stage. Its parameter gradients: beta, gamma."""
    return {"kind": "normalization", "type": int(type), "beta": beta, "gamma": gamma, "moving_mean": moving_mean,
            "moving_variance": moving_variance, "momentum": momentum, "epsilon": epsilon, "activation": activation,
            "group_count": group_count, "axis": axis}


def fused_quantization(scale: Spec = None, bias: Spec = None, axis_mask: int = 0, dequantize: bool = False) -> dict[str, Any]:
    """A second stage behind a convolution or a fully connected one, for inference."""
    return {"kind": "quantization", "function": int(dequantize), "scale": scale, "bias": bias, "axis_mask": axis_mask}


def fused_arithmetic(function: ArithmeticFunction, roles: Sequence[DescriptorType]) -> dict[str, Any]:
    """A first stage of one to three inputs. It has no parameter gradients: they are the input gradients."""
    return {"kind": "arithmetic", "function": int(function), "roles": [int(r) for r in roles]}


class FusedParametersLayer(_core.FusedFilter):
    """Two stages in one filter; one, two or three inputs. parameter_gradient_count gradients stage by stage, None skips."""

    def __init__(self, *, inputs: Spec, output: Spec, fused_layer_parameters: Sequence[dict[str, Any]],
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        several = inputs if isinstance(inputs, list) else [inputs]
        _core.make_fused(self, several, output, list(fused_layer_parameters), filter_parameters)

    def apply(self, batch_size: int, inputs: ArrayLike, output: ArrayLike, training: bool = False) -> None:
        self.apply_all(batch_size, inputs if isinstance(inputs, list) else [inputs], output, training)

    def apply_backward(self, batch_size: int, inputs: ArrayLike = None, output: ArrayLike = None,
                       output_gradient: ArrayLike = None, generating_input_gradients: ArrayLike = None,
                       generating_parameter_gradients: Sequence[ArrayLike] = ()) -> None:
        def listed(value: ArrayLike) -> list[Any]:
            return value if isinstance(value, list) else [value]

        self.apply_all_backward(batch_size, listed(inputs), output, output_gradient, listed(generating_input_gradients),
                                list(generating_parameter_gradients))


class FusedConvolutionNormalizationLayer(FusedParametersLayer):
    """A convolution and a normalization: FusedParametersLayer with these two stages."""

    def __init__(self, *, input: Spec, output: Spec, convolution: dict[str, Any], normalization: dict[str, Any],
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__(inputs=input, output=output, fused_layer_parameters=[convolution, normalization],
                         filter_parameters=filter_parameters)


class FusedFullyConnectedNormalizationLayer(FusedParametersLayer):
    """A fully connected layer and a normalization."""

    def __init__(self, *, input: Spec, output: Spec, fully_connected: dict[str, Any], normalization: dict[str, Any],
                 filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__(inputs=input, output=output, fused_layer_parameters=[fully_connected, normalization],
                         filter_parameters=filter_parameters)


class MultiheadAttentionLayer(_core.AttentionFilter):
    """Attention: each projection is (target, weights, bias); see nn.MultiheadAttention for one that owns its weights."""

    def __init__(self, *, query: Sequence[Spec], key: Sequence[Spec], value: Sequence[Spec], output: Sequence[Spec],
                 adds_zero_attention: bool = False, key_attention_bias: Spec = None, value_attention_bias: Spec = None,
                 dropout: float = 0.0, seed: int = 0, filter_parameters: FilterParameters = default_parameters) -> None:
        super().__init__()
        _core.make_attention(self, [tuple(query), tuple(key), tuple(value), tuple(output)], adds_zero_attention,
                             key_attention_bias, value_attention_bias, dropout, seed, filter_parameters)

    def apply_backward(self, batch_size: int, query: ArrayLike, key: ArrayLike, value: ArrayLike, output: ArrayLike,
                       output_gradient: ArrayLike, query_gradients: Sequence[ArrayLike] = (None, None, None),
                       key_gradients: Sequence[ArrayLike] = (None, None, None),
                       value_gradients: Sequence[ArrayLike] = (None, None, None), output_weights_gradient: ArrayLike = None,
                       output_bias_gradient: ArrayLike = None, **options: Any) -> None:
        """Gradients of a projection are (target, weights, bias)."""
        triples = [tuple(query_gradients), tuple(key_gradients), tuple(value_gradients),
                   (None, output_weights_gradient, output_bias_gradient)]
        self.apply_backward_all(batch_size, query, key, value, output, output_gradient, triples, **options)


LSTMLayer = _core.LSTM


@dataclasses.dataclass
class _OptimizerBase:
    learning_rate: float = 1e-3
    gradient_scale: float = 1.0
    regularization_scale: float = 0.0
    regularization_function: int = 0  # 0 none, 1 L1, 2 L2
    clipping: tuple[int, float, float, float, float] = (0, 0.0, 0.0, 0.0, 0.0)  # kind, min, max, max norm, norm in use

    def _last(self) -> tuple[Any, ...]:
        return (self.gradient_scale, self.regularization_scale, self.regularization_function, *self.clipping)


@dataclasses.dataclass
class AdamOptimizer(_OptimizerBase):
    """time_step is yours to advance: 1 at the first step."""

    beta1: float = 0.9
    beta2: float = 0.999
    time_step: float = 1
    epsilon: float = 1e-8
    uses_ams_grad: bool = False
    _decoupled = False

    def step(self, parameters: Sequence[ArrayLike], gradients: Sequence[ArrayLike], accumulators: Sequence[ArrayLike]) -> None:
        _core.Stepper(list(parameters), list(gradients), list(accumulators)).adam(
            self._decoupled, self.uses_ams_grad, self.learning_rate, self.beta1, self.beta2, self.time_step, self.epsilon,
            *self._last())


@dataclasses.dataclass
class AdamWOptimizer(AdamOptimizer):
    """regularization_scale is the weight decay."""

    regularization_scale: float = 1e-2
    _decoupled = True


@dataclasses.dataclass
class RMSPropOptimizer(_OptimizerBase):
    learning_rate: float = 1e-2
    alpha: float = 0.99
    epsilon: float = 1e-8
    centered: bool = False
    momentum: float = 0.0

    def step(self, parameters: Sequence[ArrayLike], gradients: Sequence[ArrayLike], accumulators: Sequence[ArrayLike]) -> None:
        _core.Stepper(list(parameters), list(gradients), list(accumulators)).rmsprop(
            self.learning_rate, self.alpha, self.epsilon, self.centered, self.momentum, *self._last())


@dataclasses.dataclass
class SGDMomentumOptimizer(_OptimizerBase):
    momentum: float = 0.0
    uses_nesterov_momentum: bool = False
    variant: int = 0

    def step(self, parameters: Sequence[ArrayLike], gradients: Sequence[ArrayLike],
             accumulators: Sequence[ArrayLike] = ()) -> None:
        _core.Stepper(list(parameters), list(gradients), list(accumulators)).sgd(
            self.learning_rate, self.momentum, self.uses_nesterov_momentum, self.variant, *self._last())

"""Neural networks in PyTorch's manner on the library: modules, losses, gradients by a tape of layer calls.

    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 13 * 13, 10))
    step = nn.value_and_grad(model, nn.losses.cross_entropy)
    loss, grads = step(images, labels)
"""

from . import losses
from .layers import Conv2d, ConvTranspose2d, Embedding, Linear
from .module import Module, Parameter, seed
from .normalization import BatchNorm2d, GroupNorm, InstanceNorm2d, LayerNorm
from .operations import concatenate
from .sequence import LSTM, MultiheadAttention
from .simple import (GELU, AdaptiveAvgPool2d, AvgPool2d, Dropout, Flatten, Identity, LeakyReLU, LogSoftmax, MaxPool2d, ReLU,
                     ReLU6, Residual, Sequential, Sigmoid, SiLU, Softmax, Tanh)
from .tape import Tensor
from .training import ValueAndGrad, value_and_grad

__all__ = [
    "AdaptiveAvgPool2d", "AvgPool2d", "BatchNorm2d", "Conv2d", "ConvTranspose2d", "Dropout", "Embedding", "Flatten", "GELU",
    "GroupNorm", "Identity", "InstanceNorm2d", "LSTM", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MaxPool2d", "Module",
    "MultiheadAttention", "Parameter", "ReLU", "ReLU6", "Residual", "Sequential", "SiLU", "Sigmoid", "Softmax", "Tanh", "Tensor",
    "ValueAndGrad", "concatenate", "losses", "seed", "value_and_grad",
]

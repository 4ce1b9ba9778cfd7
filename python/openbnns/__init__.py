"""OpenBNNS: the classic BNNS neural-network library, forward and backward, on NumPy arrays without copying.

openbnns itself is the C++ overlay in Python's spelling; openbnns.nn is PyTorch's manner on top of it:

    from openbnns import nn, fit
    from openbnns.data import mnist
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 13 * 13, 10))
    fit(model, mnist("data", "train"), epochs=3)
"""

from . import data, functions, io, nn, optim
from ._core import Array, NearestNeighbors, RandomGenerator, YoloParameters, get_isa, get_num_threads, set_max_isa
from ._core import set_num_threads, version as _version
from ._errors import Error
from .functions import *  # noqa: F401,F403
from .fused import (AdamOptimizer, AdamWOptimizer, FusedConvolutionNormalizationLayer, FusedFullyConnectedNormalizationLayer,
                    FusedParametersLayer, LSTMLayer, MultiheadAttentionLayer, RMSPropOptimizer, SGDMomentumOptimizer,
                    fused_arithmetic, fused_convolution, fused_fully_connected, fused_normalization, fused_quantization)
from .layers import (ActivationLayer, BinaryArithmeticLayer, BroadcastMatrixMultiplyLayer, ConvolutionLayer, CropResizeLayer,
                     DropoutLayer, EmbeddingLayer, FullyConnectedLayer, GramLayer, LossLayer, NormalizationLayer, PaddingLayer,
                     PermuteLayer, PoolingLayer, ReductionLayer, ResizeLayer, TensorContractionLayer, TernaryArithmeticLayer,
                     TransposedConvolutionLayer, UnaryArithmeticLayer)
from .training import accuracy, evaluate, fit, load_checkpoint, predict, save_checkpoint
from .types import (ActivationFunction, ArithmeticFunction, BoxCoordinateMode, DataLayout, DescriptorType, FilterParameters,
                    InterpolationMethod, LinearSamplingMode, LossFunction, LossReduction, NormalizationKind, PaddingMode,
                    PoolingFunction, ReductionFunction, RelationalOperator, ShuffleType, array, shape, use_client_pointer)

__version__ = _version()
__all__ = [name for name in dir() if not name.startswith("_")]

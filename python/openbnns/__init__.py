"""OpenBNNS: the classic BNNS neural-network library, forward and backward, on NumPy arrays without copying.

openbnns itself is the C++ overlay in Python's spelling; openbnns.nn is PyTorch's manner on top of it:

    from openbnns import nn, fit
    from openbnns.data import mnist
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 13 * 13, 10))
    fit(model, mnist("data", "train"), epochs=3)
"""

from . import data, distributed, functions, io, nn, optim
from ._core import Array, FilterParameters, NearestNeighbors, RandomGenerator, YoloParameters, get_isa, get_num_threads
from ._core import set_max_isa, set_num_threads, version as _version
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
from .types import (ActivationFunction, ArithmeticFunction, BoxCoordinateMode, DataLayout, DescriptorType,
                    InterpolationMethod, LinearSamplingMode, LossFunction, LossReduction, NormalizationKind, PaddingMode,
                    PoolingFunction, ReductionFunction, RelationalOperator, ShuffleType, array, shape, use_client_pointer)

__version__ = _version()
__all__ = [
    "ActivationFunction", "ActivationLayer", "AdamOptimizer", "AdamWOptimizer", "ArithmeticFunction", "Array",
    "BinaryArithmeticLayer", "BoxCoordinateMode", "BroadcastMatrixMultiplyLayer", "ConvolutionLayer", "CropResizeLayer",
    "DataLayout", "DescriptorType", "DropoutLayer", "EmbeddingLayer", "Error", "FilterParameters", "FullyConnectedLayer",
    "FusedConvolutionNormalizationLayer", "FusedFullyConnectedNormalizationLayer", "FusedParametersLayer", "GramLayer",
    "InterpolationMethod", "LSTMLayer", "LinearSamplingMode", "LossFunction", "LossLayer", "LossReduction",
    "MultiheadAttentionLayer", "NearestNeighbors", "NormalizationKind", "NormalizationLayer", "PaddingLayer", "PaddingMode",
    "PermuteLayer", "PoolingFunction", "PoolingLayer", "RMSPropOptimizer", "RandomGenerator", "ReductionFunction",
    "ReductionLayer", "RelationalOperator", "ResizeLayer", "SGDMomentumOptimizer", "ShuffleType", "TensorContractionLayer",
    "TernaryArithmeticLayer", "TransposedConvolutionLayer", "UnaryArithmeticLayer", "YoloParameters", "accuracy",
    "apply_activation", "apply_in_top_k", "apply_matrix_multiplication", "apply_reduction", "apply_top_k", "array", "clip",
    "clip_by_global_norm", "clip_by_norm", "compare", "compute_norm", "compute_norm_backward", "copy", "copy_band_part",
    "data", "dequantize", "distributed", "evaluate", "fit", "functions", "fused_arithmetic", "fused_convolution",
    "fused_fully_connected", "fused_normalization", "fused_quantization", "gather", "gather_nd", "get_isa", "get_num_threads", "io",
    "load_checkpoint", "matrix_multiplication_workspace_size", "nn", "optim", "predict", "quantize", "save_checkpoint",
    "scatter", "scatter_nd", "set_max_isa", "set_num_threads", "shape", "shuffle", "tile", "tile_backward", "transpose",
    "use_client_pointer",
]

// Complete descriptions to start from: `bnns explain --example convolution`.
#pragma once

namespace bnns::tool::examples {

inline constexpr char kConvolution[] = R"({
  "layer": "convolution",
  "batch": 8,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "ImageCHW", "size": [56, 56, 64], "data_type": "Float32"},
    "w_desc": {"layout": "ConvolutionWeightsOIHW", "size": [3, 3, 64, 128], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [56, 56, 128], "data_type": "Float32"},
    "bias": {"layout": "Vector", "size": [128], "data_type": "Float32"},
    "activation": {"function": "RectifiedLinear", "alpha": 0, "beta": 0},
    "x_stride": 1, "y_stride": 1, "x_dilation_stride": 1, "y_dilation_stride": 1,
    "x_padding": 1, "y_padding": 1, "groups": 1, "pad": [0, 0, 0, 0]
  }
}
)";
inline constexpr char kTransposedConvolution[] = R"({
  "layer": "transposed_convolution",
  "batch": 8,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "w_desc": {"layout": "ConvolutionWeightsOIHW", "size": [2, 2, 64, 32], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [56, 56, 32], "data_type": "Float32"},
    "bias": {"layout": "Vector", "size": [32], "data_type": "Float32"},
    "activation": {"function": "Identity", "alpha": 0, "beta": 0},
    "x_stride": 2, "y_stride": 2, "x_dilation_stride": 1, "y_dilation_stride": 1,
    "x_padding": 0, "y_padding": 0, "groups": 1, "pad": [0, 0, 0, 0]
  }
}
)";
inline constexpr char kFullyConnected[] = R"({
  "layer": "fully_connected",
  "batch": 64,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "Vector", "size": [784], "data_type": "Float32"},
    "w_desc": {"layout": "RowMajorMatrix", "size": [784, 128], "data_type": "Float32"},
    "o_desc": {"layout": "Vector", "size": [128], "data_type": "Float32"},
    "bias": {"layout": "Vector", "size": [128], "data_type": "Float32"},
    "activation": {"function": "RectifiedLinear", "alpha": 0, "beta": 0}
  }
}
)";
inline constexpr char kPooling[] = R"({
  "layer": "pooling",
  "batch": 8,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "ImageCHW", "size": [56, 56, 64], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "bias": {"layout": "Vector", "size": [64], "data_type": "Float32", "data": null},
    "activation": {"function": "Identity", "alpha": 0, "beta": 0},
    "pooling_function": "Max",
    "k_width": 2, "k_height": 2, "x_stride": 2, "y_stride": 2, "x_dilation_stride": 1, "y_dilation_stride": 1,
    "x_padding": 0, "y_padding": 0, "pad": [0, 0, 0, 0]
  }
}
)";
inline constexpr char kActivation[] = R"({
  "layer": "activation",
  "batch": 64,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "Vector", "size": [1000], "data_type": "Float32"},
    "o_desc": {"layout": "Vector", "size": [1000], "data_type": "Float32"},
    "activation": {"function": "Softmax", "alpha": 0, "beta": 0},
    "axis_flags": 0
  }
}
)";
inline constexpr char kNormalization[] = R"({
  "layer": "normalization",
  "batch": 32,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "normType": "BatchNorm",
    "i_desc": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "beta_desc": {"layout": "Vector", "size": [64], "data_type": "Float32"},
    "gamma_desc": {"layout": "Vector", "size": [64], "data_type": "Float32"},
    "moving_mean_desc": {"layout": "Vector", "size": [64], "data_type": "Float32"},
    "moving_variance_desc": {"layout": "Vector", "size": [64], "data_type": "Float32"},
    "momentum": 0.9, "epsilon": 1e-5,
    "activation": {"function": "Identity", "alpha": 0, "beta": 0},
    "num_groups": 0, "normalization_axis": 0
  }
}
)";
inline constexpr char kLoss[] = R"({
  "layer": "loss",
  "batch": 64,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "function": "SoftmaxCrossEntropy",
    "i_desc": {"layout": "Vector", "size": [10], "data_type": "Float32"},
    "o_desc": {"layout": "Vector", "size": [1], "data_type": "Float32"},
    "reduction": "Mean",
    "label_smooth": 0
  }
}
)";
inline constexpr char kArithmetic[] = R"({
  "layer": "arithmetic",
  "batch": 1,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "arithmetic_function": "Add",
    "in1": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "in1_type": "Sample",
    "in2": {"layout": "ImageCHW", "size": [1, 1, 64], "data_type": "Float32"},
    "in2_type": "Parameter",
    "out": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "out_type": "Sample",
    "activation": {"function": "Identity", "alpha": 0, "beta": 0}
  }
}
)";
inline constexpr char kPermute[] = R"({
  "layer": "permute",
  "batch": 8,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "3DLastMajor", "size": [28, 28, 3], "data_type": "Float32"},
    "o_desc": {"layout": "3DLastMajor", "size": [3, 28, 28], "data_type": "Float32"},
    "permutation": [2, 0, 1]
  }
}
)";
inline constexpr char kMatMul[] = R"({
  "layer": "matmul",
  "batch": 1,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "alpha": 1, "beta": 0, "transA": false, "transB": true, "quadratic": false,
    "a_is_weights": false, "b_is_weights": false,
    "iA_desc": {"layout": "3DFirstMajor", "size": [12, 128, 64], "data_type": "Float32"},
    "iB_desc": {"layout": "3DFirstMajor", "size": [12, 128, 64], "data_type": "Float32"},
    "o_desc": {"layout": "3DFirstMajor", "size": [12, 128, 128], "data_type": "Float32"}
  }
}
)";
inline constexpr char kReduction[] = R"({
  "layer": "reduction",
  "batch": 1,
  "pass": "all",
  "threads": 0,
  "parameters": {
    "i_desc": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32"},
    "o_desc": {"layout": "ImageCHW", "size": [1, 1, 64], "data_type": "Float32"},
    "w_desc": {"layout": "ImageCHW", "size": [28, 28, 64], "data_type": "Float32", "data": null},
    "reduce_func": "Mean",
    "epsilon": 0
  }
}
)";

}  // namespace bnns::tool::examples

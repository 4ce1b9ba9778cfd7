// Normalizations, and fused layers that end in one or in a quantizer.

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

struct Norm {
  const char* name;
  BNNSFilterType kind;
  size_t batch, c, h, w;
  BNNSDataType type = BNNSDataTypeFloat32;
  BNNSActivationFunction activation = BNNSActivationFunctionIdentity;
  size_t groups = 1, axis = 0;
};

size_t affine_count(const Norm& n) {
  if (n.kind != BNNSLayerNorm) return n.c;
  return n.axis == 0 ? n.c * n.h * n.w : n.axis == 1 ? n.h * n.w : n.w;
}

BNNSLayerParametersNormalization parameters(Layer& layer, const Norm& n) {
  BNNSLayerParametersNormalization p = {};
  p.i_desc = p.o_desc = image(n.c, n.h, n.w, nullptr, n.type);
  const size_t affine = affine_count(n);
  p.beta_desc = vector_descriptor(affine, layer.in(affine));
  p.gamma_desc = vector_descriptor(affine, layer.in(affine));
  if (n.kind == BNNSBatchNorm || n.kind == BNNSInstanceNorm) {  // written by training: outputs
    p.moving_mean_desc = vector_descriptor(n.c, layer.out(n.c));
    p.moving_variance_desc = vector_descriptor(n.c, layer.out(n.c));
  }
  p.momentum = 0.9f, p.epsilon = 1e-3f;
  p.activation.function = n.activation;
  p.activation.alpha = 1;
  p.num_groups = n.groups, p.normalization_axis = n.axis;
  return p;
}

// Weights and moving statistics are the client's, so that a test sees what is written.
FilterOptions with_client_pointers(const FilterOptions* options) {
  FilterOptions o = options ? *options : FilterOptions{};
  o.flags |= BNNSFlagsUseClientPtr;
  return o;
}

void add(Layers& layers, const Norm& n) {
  auto owned = std::make_unique<Layer>(std::string("normalization ") + n.name);
  Layer& layer = *owned;
  layer.keeps_state = true;
  const auto p = parameters(layer, n);
  layer.create = [p, kind = n.kind](const FilterOptions* options) {
    const FilterOptions o = with_client_pointers(options);
    return BNNSFilterCreateLayerNormalization(kind, &p, &o);
  };
  const size_t count = n.c * n.h * n.w, affine = affine_count(n);
  const void* x = layer.in(n.batch * count, n.type);
  void* y = layer.out(n.batch * count, n.type);
  for (const bool training : {false, true}) {
    layer.call(training ? "training" : "inference", [=, batch = n.batch](BNNSFilter f, const FilterOptions*) {
      return BNNSNormalizationFilterApplyBatch(f, batch, x, count, y, count, training);
    });
  }
  Array dy = image(n.c, n.h, n.w, layer.in(n.batch * count, n.type), n.type), dx = dy;
  dx.data = layer.out(n.batch * count, n.type);
  Array dbeta = vector_descriptor(affine, layer.out(affine)), dgamma = vector_descriptor(affine, layer.out(affine));
  layer.call("backward", [=, batch = n.batch](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSNormalizationFilterApplyBackwardBatch(f, batch, &dx, count, y, count, &dy, count, &dbeta, &dgamma);
  });
  layers.push_back(std::move(owned));
}

enum class First { convolution, transposed, fully_connected, sum };

struct Fused {
  const char* name;
  First first;
  size_t batch, inputs, outputs, size, kernel, pad;
  bool quantizes = false;
  BNNSFilterType kind = BNNSBatchNorm;
};

// Owned by the closures of a layer: what a fused layer points at.
struct FusedParts {
  BNNSLayerParametersConvolution convolution = {};
  BNNSLayerParametersFullyConnected full = {};
  BNNSArithmeticBinary fields = {};
  BNNSLayerParametersArithmetic arithmetic = {};
  BNNSLayerParametersNormalization normalization = {};
  BNNSLayerParametersQuantization quantization = {};
  BNNSFilterType types[2];
  const void* layers[2];
};

void add_fused(Layers& layers, const Fused& c) {
  auto owned = std::make_unique<Layer>(std::string("fused ") + c.name);
  Layer& layer = *owned;
  layer.keeps_state = true;
  const auto parts = std::make_shared<FusedParts>();
  const bool full = c.first == First::fully_connected, sum = c.first == First::sum;
  const size_t to = full                           ? 1
                    : sum                          ? c.size
                    : c.first == First::transposed ? 2 * c.size
                                                   : c.size + 2 * c.pad - c.kernel + 1;
  const size_t x_count = c.inputs * (full ? 1 : c.size * c.size), y_count = c.outputs * to * to;
  Array y_desc = image(c.outputs, to, to);
  Array dw, db;
  std::memset(&dw, 0, sizeof dw), std::memset(&db, 0, sizeof db);
  if (full) {
    y_desc = vector_descriptor(c.outputs, nullptr);
    parts->full.i_desc = vector_descriptor(c.inputs, nullptr);
    parts->full.o_desc = y_desc;
    parts->full.w_desc = dw = row_major(c.inputs, c.outputs, layer.in(c.inputs * c.outputs));
    parts->full.bias = db = vector_descriptor(c.outputs, layer.in(c.outputs));
    parts->types[0] = BNNSFullyConnected, parts->layers[0] = &parts->full;
  } else if (sum) {
    parts->fields.in1 = parts->fields.in2 = parts->fields.out = y_desc;
    parts->fields.in1_type = parts->fields.in2_type = parts->fields.out_type = BNNSSample;
    parts->arithmetic.arithmetic_function = BNNSArithmeticMultiply;
    parts->arithmetic.arithmetic_function_fields = &parts->fields;
    parts->types[0] = BNNSArithmetic, parts->layers[0] = &parts->arithmetic;
  } else {
    BNNSLayerParametersConvolution& p = parts->convolution;
    p.i_desc = image(c.inputs, c.size, c.size), p.o_desc = y_desc;
    const size_t weights = c.inputs * c.outputs * c.kernel * c.kernel;
    p.w_desc = dw =
        descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {c.kernel, c.kernel, c.inputs, c.outputs}, layer.in(weights));
    p.bias = db = vector_descriptor(c.outputs, layer.in(c.outputs));
    p.x_stride = p.y_stride = c.first == First::transposed ? 2 : 1;
    p.x_padding = p.y_padding = c.pad;
    parts->types[0] = c.first == First::transposed ? BNNSTransposedConvolution : BNNSConvolution;
    parts->layers[0] = &p;
  }
  const BNNSDataType y_type = c.quantizes ? BNNSDataTypeInt8 : BNNSDataTypeFloat32;
  if (c.quantizes) {
    parts->quantization.function = BNNSQuantizerFunctionQuantize;
    parts->quantization.i_desc = parts->quantization.o_desc = y_desc;
    parts->quantization.o_desc.data_type = y_type;
    parts->types[1] = BNNSQuantization, parts->layers[1] = &parts->quantization;
  } else {
    parts->normalization = parameters(layer, {"", c.kind, c.batch, c.outputs, to, to});
    parts->normalization.i_desc = parts->normalization.o_desc = y_desc;
    parts->types[1] = c.kind, parts->layers[1] = &parts->normalization;
  }
  layer.create = [parts](const FilterOptions* options) {
    const FilterOptions o = with_client_pointers(options);
    return BNNSFilterCreateFusedLayer(2, parts->types, parts->layers, &o);
  };
  const void* x[2] = {layer.in(c.batch * x_count), layer.in(c.batch * x_count)};
  void* y = layer.out(c.batch * y_count, y_type);
  const size_t inputs = sum ? 2 : 1;
  for (const bool training : {false, true}) {
    if (training && c.quantizes) continue;
    layer.call(training ? "training" : "inference",
               [=, a = x[0], b = x[1], batch = c.batch](BNNSFilter f, const FilterOptions*) {
                 const void* in[] = {a, b};
                 const size_t stride[] = {x_count, x_count};
                 return BNNSFusedFilterApplyMultiInputBatch(f, batch, inputs, in, stride, y, y_count, training);
               });
  }
  if (!c.quantizes) {
    Array dy = y_desc, dx[2];
    dy.data = layer.in(c.batch * y_count);
    for (Array& d : dx) d = vector_descriptor(x_count, layer.out(c.batch * x_count));
    if (sum)
      dx[0].layout = dx[1].layout = y_desc.layout, std::memcpy(dx[0].size, y_desc.size, sizeof y_desc.size),
      std::memcpy(dx[1].size, y_desc.size, sizeof y_desc.size);
    size_t weights = 1;
    for (const size_t extent : dw.size) weights *= extent ? extent : 1;
    if (!sum) dw.data = layer.out(weights), db.data = layer.out(c.outputs);
    Array dbeta = vector_descriptor(c.outputs, layer.out(c.outputs)), dgamma = dbeta;
    dgamma.data = layer.out(c.outputs);
    layer.call("backward", [=, dx0 = dx[0], dx1 = dx[1], a = x[0], b = x[1], batch = c.batch](
                               BNNSFilter f, const FilterOptions*) mutable {
      const void* in[] = {a, b};
      const size_t stride[] = {x_count, x_count};
      Array* in_delta[] = {&dx0, &dx1};
      Array* both[] = {&dbeta, &dgamma};
      Array* all[] = {&dw, &db, &dbeta, &dgamma};
      return BNNSFusedFilterApplyBackwardMultiInputBatch(f, batch, inputs, in, stride, in_delta, stride, y, y_count,
                                                         &dy, y_count, sum ? both : all);
    });
  }
  layers.push_back(std::move(owned));
}

}  // namespace

void add_normalizations(Layers& layers) {
  constexpr auto f16 = BNNSDataTypeFloat16, bf16 = BNNSDataTypeBFloat16, f32 = BNNSDataTypeFloat32;
  constexpr auto relu = BNNSActivationFunctionRectifiedLinear, gelu = BNNSActivationFunctionGELUApproximation,
                 tanh = BNNSActivationFunctionTanh;
  const Norm table[] = {
      {"batch", BNNSBatchNorm, 8, 32, 14, 14},
      {"batch relu", BNNSBatchNorm, 8, 48, 9, 9, f32, relu},
      {"batch of vectors", BNNSBatchNorm, 64, 200, 1, 1, f32, relu},
      {"batch f16 gelu", BNNSBatchNorm, 4, 24, 12, 12, f16, gelu},
      {"batch of large planes", BNNSBatchNorm, 2, 8, 64, 64, bf16, relu},
      {"batch of short rows", BNNSBatchNorm, 16, 64, 4, 4, f32, tanh},
      {"instance", BNNSInstanceNorm, 4, 32, 14, 14},
      {"instance bf16", BNNSInstanceNorm, 4, 16, 15, 15, bf16, relu},
      {"group", BNNSGroupNorm, 4, 32, 14, 14, f32, relu, 8},
      {"group of short planes", BNNSGroupNorm, 16, 64, 2, 2, f32, gelu, 4},
      {"group f16", BNNSGroupNorm, 4, 32, 13, 13, f16, gelu, 4},
      {"layer", BNNSLayerNorm, 16, 16, 8, 8},
      {"layer f16", BNNSLayerNorm, 16, 500, 1, 1, f16, tanh},
      {"layer of large samples", BNNSLayerNorm, 3, 8, 32, 40, f16, gelu},
      {"layer of vectors", BNNSLayerNorm, 64, 768, 1, 1, f32, gelu},
      {"layer of planes", BNNSLayerNorm, 8, 16, 12, 12, f32, relu, 1, 1},
      {"layer of rows", BNNSLayerNorm, 8, 8, 12, 64, bf16, gelu, 1, 2},
  };
  for (const Norm& n : table) add(layers, n);
  const Fused fused[] = {
      {"3x3 and batch", First::convolution, 4, 32, 32, 14, 3, 1},
      {"5x5 and batch", First::convolution, 2, 16, 24, 14, 5, 2},
      {"3x3 of 3 and batch", First::convolution, 4, 3, 16, 20, 3, 1},
      {"3x3 and instance", First::convolution, 2, 16, 16, 12, 3, 1, false, BNNSInstanceNorm},
      {"up and batch", First::transposed, 2, 16, 16, 12, 4, 1},
      {"fully connected and batch", First::fully_connected, 64, 200, 160, 1, 1, 0},
      {"product and batch", First::sum, 8, 32, 32, 10, 1, 0},
      {"3x3 and quantization", First::convolution, 2, 16, 16, 12, 3, 1, true},
      {"up and quantization", First::transposed, 2, 16, 16, 12, 4, 1, true},
      {"fully connected and quantization", First::fully_connected, 32, 200, 100, 1, 1, 0, true},
  };
  for (const Fused& c : fused) add_fused(layers, c);
}

}  // namespace bnns::testing

// Layers without products: activations, arithmetic, losses, reductions and those that move data.

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

Layer& begin(Layers& layers, const std::string& name) {
  layers.push_back(std::make_unique<Layer>(name));
  return *layers.back();
}

void add_activation(Layers& layers, const char* name, BNNSActivationFunction function, BNNSDataType type) {
  Layer& layer = begin(layers, std::string("activation ") + name);
  BNNSLayerParametersActivation p = {};
  p.i_desc = p.o_desc = image(8, 20, 60, nullptr, type);
  p.activation.function = function;
  p.activation.alpha = 0.5f, p.activation.beta = 2;
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerActivation(&p, o); };
  Plain plain{4, 9600, 9600, type, p.i_desc};
  add_plain_calls(layer, plain);
}

void add_arithmetic(Layers& layers, const char* name, BNNSArithmeticFunction function, bool broadcast) {
  Layer& layer = begin(layers, std::string("arithmetic ") + name);
  auto fields = std::make_shared<BNNSArithmeticBinary>();
  fields->in1 = fields->out = image(16, 20, 20);
  fields->in2 = broadcast ? image(16, 1, 1) : fields->in1;
  fields->in1_type = fields->out_type = BNNSSample;
  fields->in2_type = broadcast ? BNNSParameter : BNNSSample;
  BNNSLayerParametersArithmetic p = {};
  p.arithmetic_function = function;
  p.arithmetic_function_fields = fields.get();
  layer.create = [p, fields](const FilterOptions* o) { return BNNSFilterCreateLayerArithmetic(&p, o); };
  constexpr size_t kBatch = 4, kCount = 6400;
  const size_t second = broadcast ? 16 : kCount, samples = broadcast ? 1 : kBatch;
  const void *a = layer.in(kBatch * kCount), *b = layer.in(samples * second);
  void* y = layer.out(kBatch * kCount);
  layer.call("forward", [=](BNNSFilter f, const FilterOptions*) {
    const void* in[] = {a, b};
    const size_t stride[] = {kCount, second};
    return BNNSArithmeticFilterApplyBatch(f, kBatch, 2, in, stride, y, kCount);
  });
  Array dy = fields->out, da = fields->in1, db = fields->in2;
  dy.data = layer.in(kBatch * kCount), da.data = layer.out(kBatch * kCount), db.data = layer.out(samples * second);
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    const void* in[] = {a, b};
    const size_t stride[] = {kCount, second};
    Array* deltas[] = {&da, &db};
    return BNNSArithmeticFilterApplyBackwardBatch(f, kBatch, 2, in, stride, deltas, stride, y, kCount, &dy, kCount);
  });
}

void add_loss(Layers& layers, const char* name, BNNSLossFunction function, BNNSLossReductionFunction reduction) {
  Layer& layer = begin(layers, std::string("loss ") + name);
  constexpr size_t kBatch = 64, kWidth = 40;
  auto p = std::make_shared<BNNSLayerParametersLossHuber>();  // the longest of those used here
  p->function = function, p->reduction = reduction;
  p->huber_delta = function == BNNSLossFunctionHuber ? 1 : 0;
  p->i_desc = vector_descriptor(kWidth, nullptr);
  const bool none = reduction == BNNSLossReductionNone;
  const bool per_sample = function == BNNSLossFunctionSoftmaxCrossEntropy;
  const size_t each = !none || per_sample ? 1 : kWidth;
  p->o_desc = vector_descriptor(each, nullptr);
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerLoss(p.get(), o); };
  const void *x = layer.probabilities(kBatch * kWidth), *labels = layer.probabilities(kBatch * kWidth);
  void* y = layer.out(none ? kBatch * each : 1);
  Array dx = p->i_desc, dy = p->o_desc;
  dx.data = layer.out(kBatch * kWidth), dy.data = layer.in(none ? kBatch * each : 1);
  layer.call("forward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSLossFilterApplyBatch(f, kBatch, x, kWidth, labels, kWidth, nullptr, 0, y, &dx, kWidth);
  });
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSLossFilterApplyBackwardBatch(f, kBatch, x, kWidth, &dx, kWidth, labels, kWidth, nullptr, 0, &dy, each);
  });
}

void add_reduction(Layers& layers, const char* name, BNNSReduceFunction function, bool weighted, Array to) {
  Layer& layer = begin(layers, std::string("reduction ") + name);
  BNNSLayerParametersReduction p = {};
  p.i_desc = image(32, 24, 24);
  p.o_desc = to;
  p.reduce_func = function;
  p.epsilon = 1e-3f;
  const size_t count = 32 * 576, small = to.size[0] * to.size[1] * to.size[2];
  if (weighted) p.w_desc = image(32, 24, 24, layer.in(count));
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerReduction(&p, o); };
  Plain plain{4, count, small};
  plain.dx = p.i_desc;
  if (weighted) plain.dw = image(32, 24, 24, layer.out(count));
  add_plain_calls(layer, plain);
}

void add_movers(Layers& layers) {
  Layer& permute = begin(layers, "permute");
  BNNSLayerParametersPermute a = {};
  a.i_desc = descriptor(BNNSDataLayout3DFirstMajor, {20, 30, 40}, nullptr);
  a.o_desc = descriptor(BNNSDataLayout3DFirstMajor, {40, 20, 30}, nullptr);
  a.permutation[0] = 2, a.permutation[1] = 0, a.permutation[2] = 1;
  permute.create = [a](const FilterOptions* o) { return BNNSFilterCreateLayerPermute(&a, o); };
  Plain plain{2, 24000, 24000};
  plain.dx = a.i_desc;
  add_plain_calls(permute, plain);
  permute.calls.pop_back();
  Array dy = a.o_desc, dx = a.i_desc;
  dy.data = permute.in(48000), dx.data = permute.out(48000);
  permute.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSPermuteFilterApplyBackwardBatch(f, 2, &dx, 24000, &dy, 24000);
  });

  for (const auto mode : {BNNSPaddingModeConstant, BNNSPaddingModeReflect}) {
    Layer& layer = begin(layers, std::string("padding ") + std::to_string(mode));
    BNNSLayerParametersPadding p = {};
    p.i_desc = descriptor(BNNSDataLayout3DFirstMajor, {16, 20, 30}, nullptr);
    p.o_desc = descriptor(BNNSDataLayout3DFirstMajor, {16, 24, 33}, nullptr);
    p.padding_size[1][0] = p.padding_size[1][1] = 2, p.padding_size[2][0] = 1, p.padding_size[2][1] = 2;
    p.padding_mode = mode;
    layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerPadding(&p, o); };
    Plain padded{4, 9600, 16 * 24 * 33};
    padded.dx = p.i_desc;
    add_plain_calls(layer, padded);
  }
  for (const auto method : {BNNSInterpolationMethodNearest, BNNSInterpolationMethodLinear}) {
    Layer& layer = begin(layers, std::string("resize ") + std::to_string(method));
    BNNSLayerParametersResize p = {};
    p.method = method;
    p.i_desc = image(8, 20, 30), p.o_desc = image(8, 35, 45);
    layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerResize(&p, o); };
    Plain resized{4, 4800, 8 * 35 * 45};
    resized.dx = p.i_desc;
    add_plain_calls(layer, resized);
  }
  Layer& dropout = begin(layers, "dropout");
  BNNSLayerParametersDropout d = {};
  d.i_desc = d.o_desc = vector_descriptor(5000, nullptr);
  d.rate = 0.5f, d.seed = 9;
  dropout.create = [d](const FilterOptions* o) { return BNNSFilterCreateLayerDropout(&d, o); };
  dropout.keeps_state = true;
  Plain dropped{8, 5000, 5000};
  dropped.dx = d.i_desc;
  add_plain_calls(dropout, dropped);

  Layer& embedding = begin(layers, "embedding");
  BNNSLayerParametersEmbedding e = {};
  e.i_desc = vector_descriptor(100, nullptr, BNNSDataTypeUInt32);
  e.dictionary = descriptor(BNNSDataLayout2DLastMajor, {64, 50}, embedding.in(3200));
  e.o_desc = descriptor(BNNSDataLayout2DLastMajor, {64, 100}, nullptr);
  e.padding_idx = SIZE_MAX;
  embedding.create = [e](const FilterOptions* o) { return BNNSFilterCreateLayerEmbedding(&e, o); };
  const uint32_t* rows = embedding.indices(400, 50);
  void* y = embedding.out(4 * 6400);
  embedding.call("forward",
                 [=](BNNSFilter f, const FilterOptions*) { return BNNSFilterApplyBatch(f, 4, rows, 100, y, 6400); });
  Array out_delta = e.o_desc, dw = e.dictionary;
  out_delta.data = embedding.in(4 * 6400), dw.data = embedding.out(3200);
  embedding.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSFilterApplyBackwardBatch(f, 4, rows, 100, nullptr, 0, nullptr, 0, &out_delta, 6400, &dw, nullptr);
  });
}

}  // namespace

void add_elementwise(Layers& layers) {
  constexpr auto f16 = BNNSDataTypeFloat16, bf16 = BNNSDataTypeBFloat16, f32 = BNNSDataTypeFloat32;
  add_activation(layers, "relu", BNNSActivationFunctionRectifiedLinear, f32);
  add_activation(layers, "gelu bf16", BNNSActivationFunctionGELUApproximation, bf16);
  add_activation(layers, "softmax", BNNSActivationFunctionSoftmax, f32);
  add_activation(layers, "softmax f16", BNNSActivationFunctionSoftmax, f16);
  add_activation(layers, "log softmax", BNNSActivationFunctionLogSoftmax, f32);
  add_arithmetic(layers, "add", BNNSArithmeticAdd, false);
  add_arithmetic(layers, "multiply by channel", BNNSArithmeticMultiply, true);
  add_arithmetic(layers, "pow", BNNSArithmeticPow, false);
  add_loss(layers, "softmax", BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionMean);
  add_loss(layers, "softmax none", BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionNone);
  add_loss(layers, "sigmoid", BNNSLossFunctionSigmoidCrossEntropy, BNNSLossReductionSum);
  add_loss(layers, "square", BNNSLossFunctionMeanSquareError, BNNSLossReductionMean);
  add_loss(layers, "huber none", BNNSLossFunctionHuber, BNNSLossReductionNone);
  add_loss(layers, "cosine", BNNSLossFunctionCosineDistance, BNNSLossReductionSum);
  add_loss(layers, "hinge", BNNSLossFunctionHinge, BNNSLossReductionNonZeroWeightMean);
  add_reduction(layers, "sum of rows", BNNSReduceFunctionSum, false, image(32, 24, 1));
  add_reduction(layers, "weighted sum of channels", BNNSReduceFunctionSum, true, image(1, 24, 24));
  add_reduction(layers, "max of all", BNNSReduceFunctionMax, false, image(1, 1, 1));
  add_reduction(layers, "l2 of columns", BNNSReduceFunctionL2Norm, false, image(32, 1, 24));
  add_reduction(layers, "log sum exp", BNNSReduceFunctionLogSumExp, false, image(32, 1, 1));
  add_reduction(layers, "weighted product", BNNSReduceFunctionL1Norm, true, image(32, 1, 1));
  add_movers(layers);
}

}  // namespace bnns::testing

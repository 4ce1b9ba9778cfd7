// Activation, arithmetic, loss, normalization, reduction, dropout, quantization.
#include <algorithm>

#include "fuzz/api/case.h"

namespace bnns::fuzz {
namespace {

size_t elements(const Array& d) {
  size_t count = 1;
  for (size_t k = 0; k < std::min<size_t>(d.layout >> 16, 8); ++k) count = count > 1 << 16 ? count : count * d.size[k];
  return count;
}

void activation(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersActivation>();
  p.i_desc = b.chance(128) ? c.image(b.from(1, 9), b.from(1, 9), b.from(1, 5)) : c.vector(b.from(1, 200));
  p.o_desc = p.i_desc;
  if (b.chance(64)) p.o_desc.data_type = c.type();
  p.activation = c.activation();
  p.axis_flags = b.chance(64) ? b.byte() : 0;
  c.add(p.i_desc, p.o_desc, p.activation);
  c.add_word(p.axis_flags), c.add_word(p.activation.ioffset);
  c.vary();
  if (p.activation.function == BNNSActivationFunctionIntegerLinearSaturatePerChannel) {
    const size_t most = std::max(elements(p.i_desc), elements(p.o_desc)) * sizeof(int32_t);
    p.activation.iscale_per_channel = static_cast<const int32_t*>(c.input(most));
    p.activation.ioffset_per_channel = static_cast<const int32_t*>(c.input(most));
    p.activation.ishift_per_channel = static_cast<const int32_t*>(c.input(most));
  }
  const Filter filter(BNNSFilterCreateLayerActivation(&p, &c.options));
  const Array alpha = c.vector(1);
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc, &alpha);
}

void arithmetic(Case& c) {
  auto& b = c.bytes;
  const size_t count = b.from(1, 3);
  auto& t = c.make<BNNSArithmeticTernary>();
  const Array shape = c.image(b.from(1, 9), b.from(1, 5), b.from(1, 5));
  Array* in[] = {&t.in1, &t.in2, &t.in3};
  BNNSDescriptorType* types[] = {&t.in1_type, &t.in2_type, &t.in3_type};
  for (size_t k = 0; k < 3; ++k) {
    *in[k] = shape, *types[k] = b.chance(192) ? BNNSSample : static_cast<BNNSDescriptorType>(b.below(3));
    if (b.chance(64)) in[k]->size[b.below(3)] = 1;
    if (k < count) c.add(*in[k]), c.add_word(*types[k]);
  }
  t.out = shape, t.out_type = BNNSSample;
  auto& p = c.make<BNNSLayerParametersArithmetic>();
  p.arithmetic_function = static_cast<BNNSArithmeticFunction>(b.below(41));
  p.activation = c.activation();
  c.add(t.out, p.activation), c.add_word(t.out_type), c.add_word(p.arithmetic_function);
  c.vary();
  // The three structures differ in their number of inputs; the memory is the longest's.
  auto& fields = c.make<BNNSArithmeticTernary>();
  const BNNSArithmeticUnary one = {t.in1, t.in1_type, t.out, t.out_type};
  const BNNSArithmeticBinary two = {t.in1, t.in1_type, t.in2, t.in2_type, t.out, t.out_type};
  const void* const source[] = {&one, &two, &t};
  const size_t sizes[] = {sizeof one, sizeof two, sizeof t};
  std::memcpy(static_cast<void*>(&fields), source[count - 1], sizes[count - 1]);
  p.arithmetic_function_fields = &fields;
  const Filter filter(BNNSFilterCreateLayerArithmetic(&p, &c.options));
  if (!filter) return;
  const void* x[3] = {};
  size_t x_stride[3] = {}, dx_stride[3] = {};
  const auto samples = [&](size_t k) { return *types[k] == BNNSSample ? c.batch : 1; };
  for (size_t k = 0; k < count; ++k) {
    const auto s = c.input(*in[k], samples(k));
    x[k] = s.data, x_stride[k] = s.stride;
  }
  const auto y = c.output(t.out, c.batch);
  c.call("arithmetic",
         [&] { return BNNSArithmeticFilterApplyBatch(filter, c.batch, count, x, x_stride, y.data, y.stride); });
  Array dy = t.out, dx[3] = {t.in1, t.in2, t.in3};
  Array* deltas[] = {&dx[0], &dx[1], &dx[2]};
  c.add(dy, dx[0]);
  c.vary();
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  for (size_t k = 0; k < count; ++k) c.give_delta(dx[k], samples(k), &dx_stride[k]);
  c.call("arithmetic backward", [&] {
    return BNNSArithmeticFilterApplyBackwardBatch(filter, c.batch, count, x, x_stride, deltas, dx_stride, y.data,
                                                  y.stride, &dy, g.stride);
  });
}

void loss(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersLossYolo>();  // the longest; all begin alike
  p.function = static_cast<BNNSLossFunction>(b.from(1, 10));
  p.i_desc = c.vector(b.from(1, 40));
  p.o_desc = c.vector(1);
  p.reduction = static_cast<BNNSLossReductionFunction>(b.below(5));
  p.huber_delta = static_cast<float>(b.byte()) / 64;
  const bool yolo = p.function == BNNSLossFunctionYolo;
  if (yolo) {
    p.number_of_grid_columns = b.from(1, 3), p.number_of_grid_rows = b.from(1, 3);
    p.number_of_anchor_boxes = b.from(1, 3), p.anchor_box_size = b.from(5, 8), p.reduction = BNNSLossReductionSum;
    p.i_desc = c.tensor({p.number_of_grid_rows, p.number_of_grid_columns, p.number_of_anchor_boxes, p.anchor_box_size});
    p.rescore = b.chance(128);
    c.add(p.number_of_grid_columns, p.number_of_grid_rows, p.number_of_anchor_boxes, p.anchor_box_size);
    c.add(p.scale_xy, p.scale_wh, p.object_minimum_iou, p.no_object_maximum_iou);
  }
  c.add(p.i_desc, p.o_desc, p.huber_delta), c.add_word(p.function), c.add_word(p.reduction);
  c.vary();
  if (yolo) p.anchors_data = static_cast<float*>(c.input(std::min<size_t>(p.number_of_anchor_boxes, 1024) * 8));
  const Filter filter(BNNSFilterCreateLayerLoss(&p, &c.options));
  if (!filter) return;
  const auto x = c.input(p.i_desc, c.batch), labels = c.input(p.i_desc, c.batch);
  const size_t weights = b.below(4) == 0 ? 1 : b.below(4) == 0 ? c.batch : 0, count = elements(p.i_desc);
  const size_t type_bytes = (p.i_desc.data_type & 0x7fff) / 8;
  void* const w = weights != 0 ? c.input(weights * type_bytes) : nullptr;
  const bool each_sample = p.function == BNNSLossFunctionSoftmaxCrossEntropy ||
                           p.function == BNNSLossFunctionCategoricalCrossEntropy ||
                           p.function == BNNSLossFunctionCosineDistance;
  const size_t terms = p.reduction != BNNSLossReductionNone ? 1 : c.batch * (each_sample ? 1 : count);
  const BNNSDataType y_type = p.o_desc.data_type != 0 ? p.o_desc.data_type : p.i_desc.data_type;
  void* const y = c.output(terms * ((y_type & 0x7fff) / 8));
  Array dx = p.i_desc, dy = p.o_desc;
  size_t dx_stride = 0;
  c.add(dx, dy);
  c.vary();
  c.give_delta(dx, c.batch, &dx_stride);
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  const bool with_gradient = b.chance(128);
  c.call("loss", [&] {
    return BNNSLossFilterApplyBatch(filter, c.batch, x.data, x.stride, labels.data, labels.stride, w, weights, y,
                                    with_gradient ? &dx : nullptr, dx_stride);
  });
  c.call("loss backward", [&] {
    return BNNSLossFilterApplyBackwardBatch(filter, c.batch, x.data, x.stride, &dx, dx_stride, labels.data,
                                            labels.stride, w, weights, &dy, g.stride);
  });
}

void normalization(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersNormalization>();
  auto type = static_cast<BNNSFilterType>(b.from(2, 5));
  const size_t groups = b.from(1, 3), channels = groups * b.from(1, 3), w = b.from(1, 6), h = b.from(1, 5);
  p.i_desc = c.image(w, h, channels), p.o_desc = p.i_desc;
  p.normalization_axis = b.below(3), p.num_groups = groups;
  const size_t axis = p.normalization_axis, affine = axis == 0 ? w * h * channels : axis == 1 ? w * h : w;
  p.beta_desc = c.vector(type == BNNSLayerNorm ? affine : channels), p.gamma_desc = p.beta_desc;
  p.moving_mean_desc = c.vector(channels), p.moving_variance_desc = p.moving_mean_desc;
  p.momentum = 0.5f, p.epsilon = 1e-3f, p.activation = c.activation();
  c.add(p.i_desc, p.o_desc, p.beta_desc, p.gamma_desc, p.moving_mean_desc, p.moving_variance_desc, p.momentum);
  c.add(p.epsilon, p.activation, p.num_groups, p.normalization_axis), c.add_word(type);
  c.vary();
  const size_t present = b.byte();
  if (present & 1) c.give(p.beta_desc);
  if (present & 2) c.give(p.gamma_desc);
  if (present & 4) c.give_delta(p.moving_mean_desc, 1, nullptr), c.give_delta(p.moving_variance_desc, 1, nullptr);
  const Filter filter(BNNSFilterCreateLayerNormalization(type, &p, &c.options));
  if (!filter) return;
  const auto x = c.input(p.i_desc, c.batch), y = c.output(p.o_desc, c.batch);
  c.call("normalization", [&] {
    return BNNSNormalizationFilterApplyBatch(filter, c.batch, x.data, x.stride, y.data, y.stride, present & 8);
  });
  Array dx = p.i_desc, dy = p.o_desc, dbeta = p.beta_desc, dgamma = p.gamma_desc;
  c.add(dx, dy, dbeta, dgamma);
  c.vary();
  size_t dx_stride = 0;
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  c.give_delta(dx, c.batch, &dx_stride), c.give_delta(dbeta, 1, nullptr), c.give_delta(dgamma, 1, nullptr);
  c.call("normalization backward", [&] {
    return BNNSNormalizationFilterApplyBackwardBatch(filter, c.batch, &dx, dx_stride, y.data, y.stride, &dy, g.stride,
                                                     present & 16 ? nullptr : &dbeta, present & 32 ? nullptr : &dgamma);
  });
}

void reduction(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersReduction>();
  p.i_desc = p.o_desc = p.w_desc = c.image(b.from(1, 9), b.from(1, 5), b.from(1, 5));
  const size_t axes = b.byte();
  for (size_t k = 0; k < 3; ++k) p.o_desc.size[k] = axes >> k & 1 ? 1 : p.i_desc.size[k];
  p.reduce_func = static_cast<BNNSReduceFunction>(b.below(17));
  if (p.reduce_func == BNNSReduceFunctionArgMax || p.reduce_func == BNNSReduceFunctionArgMin) {
    p.o_desc.data_type = BNNSDataTypeInt32;
  }
  c.add(p.i_desc, p.o_desc, p.w_desc, p.epsilon), c.add_word(p.reduce_func);
  c.vary();
  const bool weighted = b.chance(64) && c.give(p.w_desc);
  const Filter filter(BNNSFilterCreateLayerReduction(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc, weighted ? &p.w_desc : nullptr);
}

void dropout(Case& c) {
  auto& p = c.make<BNNSLayerParametersDropout>();
  p.i_desc = p.o_desc = c.tensor({c.bytes.from(1, 9), c.bytes.from(1, 9), c.bytes.from(1, 3)});
  p.rate = static_cast<float>(c.bytes.byte()) / 256, p.seed = 1, p.control = c.bytes.byte();
  c.add(p.i_desc, p.o_desc, p.rate);
  c.vary();
  const Filter filter(BNNSFilterCreateLayerDropout(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc);
}

void quantization(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersQuantization>();
  p.i_desc = p.o_desc = c.tensor({b.from(1, 9), b.from(1, 5), b.from(1, 5)});
  p.axis_mask = b.below(9), p.function = static_cast<BNNSQuantizerFunction>(b.below(2));
  (p.function == BNNSQuantizerFunctionQuantize ? p.o_desc : p.i_desc).data_type = BNNSDataTypeInt8;
  size_t parameters = 1;
  for (size_t k = 0; k < 3; ++k) parameters *= p.axis_mask >> k & 1 ? p.i_desc.size[k] : 1;
  p.scale = c.vector(parameters), p.bias = p.scale;
  c.add(p.i_desc, p.o_desc, p.scale, p.bias, p.axis_mask), c.add_word(p.function);
  c.vary();
  if (b.chance(192)) c.give(p.scale);
  if (b.chance(192)) c.give(p.bias);
  const auto x = c.input(p.i_desc, c.batch), y = c.output(p.o_desc, c.batch);
  p.i_desc.data = x.data, p.o_desc.data = y.data;
  c.call("quantizer", [&] { return BNNSDirectApplyQuantizer(&p, &c.options, c.batch, x.stride, y.stride); });
}

}  // namespace

const std::vector<Kind> kElementwise = {activation, arithmetic, loss, normalization, reduction, dropout, quantization};

}  // namespace bnns::fuzz

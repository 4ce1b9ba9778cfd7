// Scale and shift beside two arithmetic layers with the same result: a product, then a sum, with the parameters
// repeated for every element.

#include "bench/row.h"
#include "examples/operator_skeleton/scale_shift_ext.h"

namespace bnns::bench {
namespace {

struct Shape {
  const char* name;
  size_t batch, channels, size;
  bool quick;
  std::vector<size_t> x() const { return {batch, channels, size, size}; }
};
constexpr Shape kShapes[] = {{"32x64x56", 32, 64, 56, true}, {"32x512x7", 32, 512, 7, true}, {"1x8x4", 1, 8, 4, false}};

Filter arithmetic(BNNSArithmeticFunction function, const BNNSNDArrayDescriptor& image, size_t threads) {
  BNNSArithmeticBinary fields;
  std::memset(&fields, 0, sizeof fields);
  fields.in1 = fields.in2 = fields.out = image;
  fields.in1_type = fields.out_type = BNNSSample;
  fields.in2_type = BNNSParameter;
  BNNSLayerParametersArithmetic layer;
  std::memset(&layer, 0, sizeof layer);
  layer.arithmetic_function = function;
  layer.arithmetic_function_fields = &fields;
  layer.activation.function = BNNSActivationFunctionIdentity;
  const BNNSFilterParameters o = options(threads);
  return own(BNNSFilterCreateLayerArithmetic(&layer, &o));
}

void add(const Shape& s) {
  Row r;
  r.family = "scale_shift", r.op = "scale and shift", r.direction = "forward";
  r.shape = s.name;
  r.quick = s.quick;
  r.operations = 2.0 * double(product(s.x()));
  r.bytes = 8.0 * double(product(s.x()));
  r.fill = [=](Data& d) {
    d.add("x", s.x()).fill(), d.add("y", s.x()), d.add("peer_y", s.x());
    d.add("scale", {s.channels}).fill(1, 1), d.add("shift", {s.channels}).fill(1, 2);
    Array &scales = d.add("scales", {s.channels, s.size, s.size}), &shifts = d.add("shifts", scales.shape());
    for (size_t i = 0; i < scales.count(); ++i) {
      scales.set(i, d["scale"].get(i / (s.size * s.size))), shifts.set(i, d["shift"].get(i / (s.size * s.size)));
    }
  };
  r.open = [=](Case& c, size_t threads) {
    const BNNSNDArrayDescriptor image = describe(BNNSDataLayoutImageCHW, {s.size, s.size, s.channels});
    const size_t sample = s.channels * s.size * s.size;
    BNNSExtLayerParametersScaleShift layer;
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = layer.o_desc = image;
    layer.scale = describe(BNNSDataLayoutVector, {s.channels}, Type::f32, c.sets[0]["scale"].data());
    layer.shift = describe(BNNSDataLayoutVector, {s.channels}, Type::f32, c.sets[0]["shift"].data());
    layer.axis = 2;
    const BNNSFilterParameters o = options(threads);
    const Filter ours = own(BNNSExtFilterCreateLayerScaleShift(&layer, &o));
    const Filter multiply = arithmetic(BNNSArithmeticMultiply, image, threads),
                 sum = arithmetic(BNNSArithmeticAdd, image, threads);
    c.contenders.push_back(
        {"ours", [=](Data& d) { check(BNNSFilterApplyBatch(ours.get(), s.batch, d["x"].data(), 0, d["y"].data(), 0)); },
         "y"});
    const auto apply = [=](const Filter& filter, const void* in, const void* parameter, void* out) {
      const void* inputs[] = {in, parameter};
      const size_t strides[] = {sample, 0};
      check(BNNSArithmeticFilterApplyBatch(filter.get(), s.batch, 2, inputs, strides, out, sample));
    };
    c.contenders.push_back({"two arithmetic layers",
                            [=](Data& d) {
                              apply(multiply, d["x"].data(), d["scales"].data(), d["peer_y"].data());
                              apply(sum, d["peer_y"].data(), d["shifts"].data(), d["peer_y"].data());
                            },
                            "peer_y"});
  };
  rows().push_back(std::move(r));
}

}  // namespace

void add_scale_shift_rows() {
  for (const Shape& s : kShapes) add(s);
}

}  // namespace bnns::bench

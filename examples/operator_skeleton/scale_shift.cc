// make_scale_shift_problem: what can be wrong with a layer. ScaleShiftFilter: what can be wrong with a call, then the
// algorithm by table. Nothing is written before all checks of a call are done.

#include "examples/operator_skeleton/scale_shift.h"

#include <algorithm>
#include <initializer_list>

#include "examples/operator_skeleton/implementations.h"
#include "src/core/error.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

constexpr const char* kOp = "scale_shift";

void check_float(const Tensor& t, const char* field) {
  check_plain(t, kOp, field);
  if (is_float(t.type)) return;
  fail_unsupported("%s: %s has type %s; data are f32, f16 or bf16", kOp, field, type_name(t.type));
}

Tensor read_data(const BNNSNDArrayDescriptor& d, const char* field) {
  const Tensor t = resolve(d, kOp, field);
  check_float(t, field);
  return t;
}

Tensor read_parameter(const BNNSNDArrayDescriptor& d, size_t channels, const char* field) {
  const Tensor t = resolve_with_data(d, kOp, field);
  check_float(t, field);
  if (t.rank != 1 || t.count != channels) {
    fail_invalid("%s: %s is %s, expected a vector of %zu = i_desc.size[axis]", kOp, field, t.text().c_str(), channels);
  }
  return t;
}

// Memory that a call reads or writes.
struct Region {
  const char* name;
  const void* data;  // NULL: none
  size_t bytes;
};

void check_apart(const Region& written, std::initializer_list<Region> others) {
  for (const Region& other : others) {
    if (!written.data || !other.data) continue;
    check_disjoint(written.data, written.bytes, written.name, other.data, other.bytes, other.name, kOp);
  }
}

Region region_of(const Tensor& t, const char* name) {
  return {name, t.data, t.data ? t.span_bytes() : 0};
}

}  // namespace

ScaleShiftProblem make_scale_shift_problem(const BNNSExtLayerParametersScaleShift* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSExtLayerParametersScaleShift", kOp);
  ScaleShiftProblem p;
  p.x = read_data(layer->i_desc, "i_desc");
  p.y = read_data(layer->o_desc, "o_desc");
  if (p.y.rank != p.x.rank || !std::equal(p.x.size, p.x.size + p.x.rank, p.y.size)) {
    fail_invalid("%s: o_desc is %s, expected the sizes of i_desc, %s", kOp, p.y.text().c_str(), p.x.text().c_str());
  }
  if (layer->axis >= p.x.rank) {
    fail_invalid("%s: axis is %zu, expected less than the rank of i_desc, %zu", kOp, layer->axis, p.x.rank);
  }
  p.axis = layer->axis;
  p.a = read_parameter(layer->scale, p.channels(), "scale");
  if (!is_absent(layer->shift)) p.b = read_parameter(layer->shift, p.channels(), "shift");
  return p;
}

std::string ScaleShiftProblem::text() const {
  return std::string(kOp) + " " + x.text() + " axis " + std::to_string(axis);
}

PlaneOperand::PlaneOperand(const ScaleShiftProblem& problem, const Tensor& sample, const void* data,
                           size_t batch_stride)
    : base(static_cast<char*>(const_cast<void*>(data))),
      sample_bytes(batch_stride * type_bytes(sample.type)),
      channel_bytes(sample.stride[problem.axis] * type_bytes(sample.type)) {
  Tensor one = sample;
  one.size[problem.axis] = 1;
  one.count = problem.plane();
  std::copy_n(problem.x.axis, problem.x.rank, one.axis);
  plane = Elements(one);
}

void ParameterGradient::put(size_t channel, double sum) const {
  if (!data) return;
  const float value = static_cast<float>(sum);
  if (accumulate) return elements.accumulate(data, channel, 1, &value);
  float buffer;
  float* to = elements.target(data, channel, &buffer);
  *to = value;
  elements.write(data, channel, 1, to);
}

ScaleShiftFilter::ScaleShiftFilter(const Options& options, const ScaleShiftProblem& problem)
    : Filter(FilterKind::scale_shift, options),
      problem_(problem),
      a_(problem.a, options, "the scale of a scale_shift"),
      b_(problem.b, options, "the shift of a scale_shift") {}

ScaleShiftRun ScaleShiftFilter::begin(size_t batch) const {
  ScaleShiftRun run;
  run.batch = batch;
  run.channels = problem_.channels();
  run.plane = problem_.plane();
  run.n_threads = options_.n_threads;
  run.a = &a_.tensor();
  run.b = &b_.tensor();
  return run;
}

void ScaleShiftFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  if (batch == 0) return;
  const Tensor &x = problem_.x, &y = problem_.y;
  in_stride = input_batch_stride(in_stride, batch, x, kOp, "in_stride");
  out_stride = output_batch_stride(out_stride, batch, y, kOp, "out_stride");
  check_data(in, x.type, kOp, "in");
  check_data(out, y.type, kOp, "out");
  check_in_place_or_apart({x, in, in_stride, "in"}, {y, out, out_stride, "out"}, batch, kOp);
  ScaleShiftRun run = begin(batch);
  check_apart({"out", out, batch_bytes(batch, out_stride, y, kOp, "out_stride")},
              {region_of(*run.a, "scale"), region_of(*run.b, "shift")});
  run.x = PlaneOperand(problem_, x, in, in_stride);
  run.y = PlaneOperand(problem_, y, out, out_stride);
  choose(kScaleShiftForward, run).run(run);
}

void ScaleShiftFilter::backward(const BackwardCall& call) {
  const size_t batch = call.batch;
  if (batch == 0) return;
  const Tensor& x = problem_.x;
  if (call.bias_delta && !b_.present()) fail_invalid("%s: bias_delta is given, expected NULL: there is no shift", kOp);
  const Tensor dy = resolve_delta_view(call.out_delta, problem_.y, kOp, "out_delta");
  check_float(dy, "out_delta");
  const size_t dy_stride = input_batch_stride(call.out_delta_stride, batch, dy, kOp, "out_delta_stride");
  Tensor dx, da, db;  // without data: not wanted
  size_t dx_stride = 0, x_stride = 0;
  if (call.in_delta) {
    dx = resolve_delta_view(call.in_delta, x, kOp, "in_delta");
    check_float(dx, "in_delta");
    dx_stride = output_batch_stride(call.in_delta_stride, batch, dx, kOp, "in_delta_stride");
  }
  if (call.weights_delta) {
    da = resolve_delta(call.weights_delta, problem_.a, kOp, "weights_delta");
    x_stride = input_batch_stride(call.in_stride, batch, x, kOp, "in_stride");
    check_data(call.in, x.type, kOp, "in");
  }
  if (call.bias_delta) db = resolve_delta(call.bias_delta, problem_.b, kOp, "bias_delta");

  ScaleShiftRun run = begin(batch);
  const auto region = [&](const char* name, const Tensor& t, const void* data, size_t stride) {
    return Region{name, data, data ? batch_bytes(batch, stride, t, kOp, name) : 0};
  };
  const void* in = da.data ? call.in : nullptr;
  const Region x_region = region("in", x, in, x_stride), dy_region = region("out_delta", dy, dy.data, dy_stride),
               dx_region = region("in_delta", dx, dx.data, dx_stride), a = region_of(*run.a, "scale");
  const Region da_region = region_of(da, "weights_delta"), db_region = region_of(db, "bias_delta");
  check_in_place_or_apart({dy, dy.data, dy_stride, "out_delta"}, {dx, dx.data, dx_stride, "in_delta"}, batch, kOp);
  check_in_place_or_apart({x, in, x_stride, "in"}, {dx, dx.data, dx_stride, "in_delta"}, batch, kOp);
  check_apart(dx_region, {a, da_region, db_region});
  check_apart(da_region, {x_region, dy_region, a, db_region});
  check_apart(db_region, {x_region, dy_region, a});

  run.dy = PlaneOperand(problem_, dy, dy.data, dy_stride);
  if (in) run.x = PlaneOperand(problem_, x, in, x_stride);
  if (dx.data) run.dx = PlaneOperand(problem_, dx, dx.data, dx_stride);
  run.accumulate = dx.accumulate;
  if (da.data) run.da = ParameterGradient(da);
  if (db.data) run.db = ParameterGradient(db);
  choose(kScaleShiftBackward, run).run(run);
}

const char* ScaleShiftFilter::implementation(BNNSExtPass pass, size_t batch) const {
  const char none = 0;  // dense tensors that nobody reads
  ScaleShiftRun run = begin(batch);
  run.x = PlaneOperand(problem_, problem_.x, &none, 0);
  run.y = run.dy = PlaneOperand(problem_, problem_.y, &none, 0);
  if (pass == BNNSExtPassForward) return find(kScaleShiftForward, run).name;
  return find(kScaleShiftBackward, run).name;
}

}  // namespace bnns

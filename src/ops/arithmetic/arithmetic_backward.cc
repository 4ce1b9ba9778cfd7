// ArithmeticFilter::backward: every check of a gradient call, and the choice of what it is computed from.

#include <algorithm>

#include "src/core/error.h"
#include "src/ops/arithmetic/arithmetic_gradient.h"
#include "src/tensor/distinct.h"

namespace bnns {
using namespace arithmetic;
namespace {

constexpr const char* kOp = "arithmetic";
constexpr const char* kInputName[] = {"in[0]", "in[1]", "in[2]"};
constexpr const char* kInputStrideName[] = {"in_stride[0]", "in_stride[1]", "in_stride[2]"};
constexpr const char* kDeltaName[] = {"in_delta[0]", "in_delta[1]", "in_delta[2]"};
constexpr const char* kDeltaStrideName[] = {"in_delta_stride[0]", "in_delta_stride[1]", "in_delta_stride[2]"};

// A gradient in the axes of the tensor it belongs to. Another layout with as many elements (programs pass a Vector for
// an image) is taken in memory order.
Tensor read_delta(const BNNSNDArrayDescriptor* d, const Tensor& like, const char* name) {
  const Tensor given = resolve_delta(d, like, kOp, name);
  check_distinct(given, kOp, name);
  if (given.layout == like.layout) return given;
  if (!given.dense && given.rank != 1) {
    fail_unsupported("%s: %s has gaps and another layout than the tensor it belongs to: not offered", kOp, name);
  }
  Tensor t = like;
  size_t step = given.rank == 1 ? given.stride[0] : 1;
  t.span = (given.count - 1) * step + 1;
  t.dense = given.dense;
  for (size_t j = 0; j < t.rank; ++j) {
    t.stride[t.axis[j]] = step;
    step *= t.size[t.axis[j]];
  }
  t.type = given.type;
  t.accumulate = given.accumulate;
  t.data = given.data;
  return t;
}

Placement placement(const GradientGroup& group, size_t batch) {
  return {&group.delta, group.delta.data, group.batched ? batch : 1, group.batch_stride};
}

class Checker {
 public:
  Checker(const ArithmeticProblem& problem, const ArithmeticBackward& call) : p_(problem), call_(call) {}

  // One group per buffer, in order of inputs.
  void read_groups(GradientPlan* plan) {
    for (size_t k = 0; k < p_.inputs(); ++k) {
      if (!wanted(k)) continue;
      GradientGroup group;
      group.members = static_cast<uint8_t>(1u << k);
      group.delta = read_delta(call_.in_delta[k], p_.in[k], kDeltaName[k]);
      group.batched = p_.is_sample(k);
      if (group.batched) {
        if (!call_.in_delta_stride) fail_invalid("%s: in_delta_stride is NULL, expected an array of strides", kOp);
        group.batch_stride =
            output_batch_stride(call_.in_delta_stride[k], call_.batch, group.delta, kOp, kDeltaStrideName[k]);
      }
      if (!join(plan, group, k)) plan->groups[plan->group_count++] = group;
    }
  }

  // An empty batch: parameter gradients that are overwritten become 0. All are checked before the first is written.
  void zero_parameters() {
    Tensor deltas[kArithmeticInputs];
    size_t count = 0;
    for (size_t k = 0; k < p_.inputs(); ++k) {
      if (!p_.is_sample(k) && wanted(k)) deltas[count++] = read_delta(call_.in_delta[k], p_.in[k], kDeltaName[k]);
    }
    for (size_t i = 0; i < count; ++i) {
      if (!deltas[i].accumulate) clear_gradient(deltas[i]);
    }
  }

  // What the gradients are computed from, and that it is there.
  void read_sources(GradientPlan* plan) {
    const ArithmeticFunction& info = p_.info();
    const Tensor out_delta = read_delta(call_.out_delta, p_.out, "out_delta");
    const size_t dy_stride =
        input_batch_stride(call_.out_delta_stride, call_.batch, out_delta, kOp, "out_delta_stride");
    check_in_place(plan, {&out_delta, out_delta.data, call_.batch, dy_stride});
    plan->dy = Operand(plan->space, out_delta, out_delta.data, dy_stride);

    uint8_t all = static_cast<uint8_t>((1u << p_.inputs()) - 1);
    bool reads_y = false;
    for (size_t i = 0; i < plan->group_count; ++i) {
      for (size_t k = 0; k < p_.inputs(); ++k) {
        if (!(plan->groups[i].members >> k & 1)) continue;
        plan->reads |= info.gradient_reads[k];
        reads_y = reads_y || (info.gradient_reads_y >> k & 1);
      }
    }
    plan->undo = p_.activation.is_identity()                 ? GradientPlan::Undo::nothing
                 : p_.activation.is_rowwise()                ? GradientPlan::Undo::from_output_rows
                 : has_derivative_from_output(p_.activation) ? GradientPlan::Undo::from_output
                                                             : GradientPlan::Undo::from_input;
    plan->out_is_y = reads_y && p_.activation.is_identity() && prefers_out();
    plan->recompute = plan->undo == GradientPlan::Undo::from_input || (reads_y && !plan->out_is_y);
    if (plan->recompute) plan->reads = all;
    read_out(plan);
    for (size_t k = 0; k < p_.inputs(); ++k) {
      if (plan->reads >> k & 1) read_input(plan, k, reads_y);
    }
  }

 private:
  const void* input(size_t k) const { return call_.in ? call_.in[k] : nullptr; }
  size_t input_stride(size_t k) const { return call_.in_stride ? call_.in_stride[k] : 0; }

  bool wanted(size_t k) const {
    if (p_.is_constant(k)) return false;
    if (call_.in_delta && call_.in_delta[k]) return true;
    if (call_.skip_missing_deltas) return false;
    if (!call_.in_delta) fail_invalid("%s: in_delta is NULL, expected an array of %zu descriptors", kOp, p_.inputs());
    fail_invalid("%s: %s is NULL, expected a descriptor: only Constant inputs have no gradient", kOp, kDeltaName[k]);
  }

  // Adds input k to the group of the tensor that it is, if there is one.
  bool join(GradientPlan* plan, const GradientGroup& group, size_t k) const {
    for (size_t i = 0; i < plan->group_count; ++i) {
      GradientGroup& other = plan->groups[i];
      const size_t j = other.first_member();
      const bool known = input(j) && input(k);
      const Placement mine = placement(group, call_.batch), theirs = placement(other, call_.batch);
      if (known ? input(j) == input(k) : group.delta.data == other.delta.data) {
        check_same_tensor(j, k);
        if (!same_place(mine, theirs) || group.delta.accumulate != other.delta.accumulate) {
          fail_invalid(
              "%s: in[%zu] and in[%zu] are one tensor, so %s and %s must be one buffer, which receives the sum", kOp, j,
              k, kDeltaName[j], kDeltaName[k]);
        }
        other.members |= group.members;
        return true;
      }
      if (share_memory(mine, theirs)) {
        fail_invalid("%s: %s and %s share memory, but in[%zu] and in[%zu] are different tensors", kOp, kDeltaName[j],
                     kDeltaName[k], j, k);
      }
    }
    return false;
  }

  void check_same_tensor(size_t j, size_t k) const {
    const bool batched = p_.is_sample(j);
    const auto stride = [&](size_t i) {
      return batched ? input_batch_stride(input_stride(i), call_.batch, p_.in[i], kOp, kInputStrideName[i]) : 0;
    };
    if (p_.in_type[j] != p_.in_type[k] ||
        !same_place({&p_.in[j], nullptr, call_.batch, stride(j)}, {&p_.in[k], nullptr, call_.batch, stride(k)})) {
      fail_invalid("%s: in[%zu] and in[%zu] are the same data, expected the same descriptor, type and stride", kOp, j,
                   k);
    }
  }

  void check_in_place(const GradientPlan* plan, const Placement& dy) const {
    using InPlace = ArithmeticFunction::InPlace;
    const ArithmeticFunction& info = p_.info();
    for (size_t i = 0; i < plan->group_count; ++i) {
      const GradientGroup& group = plan->groups[i];
      const char* name = kDeltaName[group.first_member()];
      const Placement mine = placement(group, call_.batch);
      if (!share_memory(mine, dy)) continue;
      if (info.gradient_in_place == InPlace::never ||
          (info.gradient_in_place == InPlace::with_identity && !p_.activation.is_identity())) {
        fail_invalid("%s: %s and out_delta share memory; the gradient of %s%s does not work in place", kOp, name,
                     info.name, info.gradient_in_place == InPlace::never ? "" : " with an activation");
      }
      if (!same_place(mine, dy) || group.delta.accumulate) {
        fail_invalid("%s: %s and out_delta share memory, expected the same shape, strides and type, and overwriting",
                     kOp, name);
      }
    }
  }

  // y = f(x) from `out` saves computing it again. A rounded y is second best to x itself, unless x has been
  // overwritten.
  bool prefers_out() const {
    if (!call_.out) return false;
    if (p_.out.is(BNNSDataTypeFloat32)) return true;
    for (size_t k = 0; k < p_.inputs(); ++k) {
      if (!input(k) || input(k) == call_.out) return true;
    }
    return false;
  }

  void read_out(GradientPlan* plan) {
    const bool undoes =
        plan->undo == GradientPlan::Undo::from_output || plan->undo == GradientPlan::Undo::from_output_rows;
    if (undoes && !call_.out) {
      fail_invalid("%s: out is NULL, expected the output: the gradient of %s is computed from it", kOp,
                   activation_name(p_.activation.function));
    }
    if (!call_.out) return;
    check_data(call_.out, p_.out.type, kOp, "out");
    const size_t stride = input_batch_stride(call_.out_stride, call_.batch, p_.out, kOp, "out_stride");
    out_ = {&p_.out, call_.out, call_.batch, stride};
    if (!undoes && !plan->out_is_y) return;
    check_not_written(plan, out_, "out");
    plan->out = Operand(plan->space, p_.out, call_.out, stride);
  }

  void read_input(GradientPlan* plan, size_t k, bool reads_y) const {
    const Tensor& t = p_.in[k];
    if (!input(k)) {
      if (plan->undo == GradientPlan::Undo::from_input) {
        fail_invalid("%s: %s is NULL, expected the input: the derivative of %s cannot be had from its output", kOp,
                     kInputName[k], activation_name(p_.activation.function));
      }
      const bool out_would_do = reads_y && p_.activation.is_identity() && !call_.out;
      fail_invalid("%s: %s is NULL, expected the input%s: the gradient of %s is computed from it", kOp, kInputName[k],
                   out_would_do ? " or out" : "", p_.info().name);
    }
    check_data(input(k), t.type, kOp, kInputName[k]);
    Placement place{&t, input(k), 1, 0};
    if (p_.is_sample(k)) {
      place.batch = call_.batch;
      place.batch_stride = input_batch_stride(input_stride(k), call_.batch, t, kOp, kInputStrideName[k]);
    }
    if (call_.out && share_memory(place, out_)) {
      fail_invalid("%s: %s and out share memory: the forward pass overwrote the input that the gradient of %s needs",
                   kOp, kInputName[k], p_.info().name);
    }
    check_not_written(plan, place, kInputName[k]);
    plan->x[k] = Operand(plan->space, t, input(k), place.batch_stride);
  }

  void check_not_written(const GradientPlan* plan, const Placement& source, const char* name) const {
    for (size_t i = 0; i < plan->group_count; ++i) {
      if (share_memory(placement(plan->groups[i], call_.batch), source)) {
        fail_invalid("%s: %s and %s share memory, and the gradient is computed from the latter", kOp,
                     kDeltaName[plan->groups[i].first_member()], name);
      }
    }
  }

  const ArithmeticProblem& p_;
  const ArithmeticBackward& call_;
  Placement out_;
};

}  // namespace

void ArithmeticFilter::backward(const ArithmeticBackward& call) {
  const ArithmeticProblem& p = problem_;
  if (call.inputs != p.inputs()) {
    fail_invalid("%s: number_of_inputs is %zu, expected %zu for %s", kOp, call.inputs, p.inputs(), p.info().name);
  }
  if (!p.info().has_gradient) fail_unsupported("%s: %s has no gradient", kOp, p.info().name);
  Checker checker(p, call);
  if (call.batch == 0) return checker.zero_parameters();
  GradientPlan plan(p, call.batch);
  checker.read_groups(&plan);
  checker.read_sources(&plan);
  run_gradients(plan, options_, shelf_);
}

}  // namespace bnns

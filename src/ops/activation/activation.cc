// Every check of the stand-alone layer that does not depend on data pointers.

#include "src/ops/activation/activation.h"

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "activation";

void check_tensor(const Tensor& t, const char* field) {
  if (is_indexed(t.type))
    fail_unsupported("%s: %s has type %s: only weights are indexed", kOp, field, type_name(t.type));
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is OIHW_Pack32: only convolution weights are packed", kOp, field);
  }
  if (type_bytes(t.type) == 0 && !t.dense) {
    fail_unsupported("%s: %s has strides and type %s; types narrower than a byte must be contiguous", kOp, field,
                     type_name(t.type));
  }
}

void check_shift(int32_t shift, const char* field) {
  if (shift < 0 || shift > 63) fail_invalid("%s: %s is %d, expected 0 to 63", kOp, field, shift);
}

// Channels of the two per-channel functions: the third axis of an image, or each element of a vector.
size_t channels_of(const Tensor& t, bool vector_too, const char* function) {
  if (t.layout == BNNSDataLayoutImageCHW) return t.size[2];
  if (vector_too && t.layout == BNNSDataLayoutVector) return t.size[0];
  fail_invalid("%s: i_desc.layout is %s, expected BNNSDataLayoutImageCHW%s for %s", kOp, enum_text(t.layout).text,
               vector_too ? " or BNNSDataLayoutVector" : "", function);
}

void read_integer_function(const BNNSActivation& a, ActivationProblem* p) {
  for (const Tensor* t : {&p->i, &p->o}) {
    if (!is_integer(t->type) || type_bytes(t->type) == 0) {
      fail_unsupported("%s: %s has type %s; %s works on integers of 8 to 64 bits", kOp,
                       t == &p->i ? "i_desc" : "o_desc", type_name(t->type), activation_name(a.function));
    }
  }
  p->integer = true;
  if (a.function == BNNSActivationFunctionIntegerLinearSaturate) {
    check_shift(a.ishift, "activation.ishift");
    p->iscale = a.iscale;
    p->ioffset = a.ioffset;
    p->ishift = a.ishift;
    return;
  }
  p->channels = channels_of(p->i, true, "IntegerLinearSaturatePerChannel");
  if (!a.iscale_per_channel || !a.ioffset_per_channel || !a.ishift_per_channel) {
    fail_invalid("%s: iscale_per_channel, ioffset_per_channel or ishift_per_channel is NULL, expected %zu values each",
                 kOp, p->channels);
  }
  for (size_t c = 0; c < p->channels; ++c) check_shift(a.ishift_per_channel[c], "activation.ishift_per_channel");
  p->iscale_per_channel = a.iscale_per_channel;
  p->ioffset_per_channel = a.ioffset_per_channel;
  p->ishift_per_channel = a.ishift_per_channel;
}

void read_row_axes(uint32_t axis_flags, ActivationProblem* p) {
  const size_t rank = p->i.rank;
  const uint32_t flags = axis_flags ? axis_flags : 1;
  if (flags >> (rank + 1)) {
    fail_invalid("%s: axis_flags is 0x%x, expected bits 0 to %zu for i_desc of rank %zu (bit %zu is the batch)", kOp,
                 axis_flags, rank, rank, rank);
  }
  for (const Tensor* t : {&p->i, &p->o}) {
    if (type_bytes(t->type) == 0) {
      fail_unsupported("%s: %s of %s; types narrower than a byte are for element-wise functions", kOp,
                       activation_name(p->activation.function), type_name(t->type));
    }
  }
  p->row_axes = flags;
}

// K9: the output has one element per row and receives the index of the largest sum.
void check_gumbel_max(const ActivationProblem& p) {
  if (p.row_axes >> p.i.rank) fail_unsupported("%s: gumbel_max along the batch is not offered", kOp);
  size_t length = 1;
  for (size_t k = 0; k < p.i.rank; ++k) {
    if (p.row_axes >> k & 1) length *= p.i.size[k];
  }
  if (p.o.count != p.i.count / length) {
    if (p.o.count == p.i.count) {
      fail_unsupported(
          "%s: gumbel_max into %zu elements is not offered; o_desc has 1 element along the axis and "
          "receives the index",
          kOp, p.o.count);
    }
    fail_invalid("%s: o_desc has %zu elements, expected %zu = %zu / %zu (one index per row)", kOp, p.o.count,
                 p.i.count / length, p.i.count, length);
  }
}

}  // namespace

ActivationProblem make_activation_problem(const BNNSLayerParametersActivation* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersActivation", kOp);
  const BNNSActivation& a = layer->activation;
  check_activation_function(a.function, kOp);
  ActivationProblem p;
  p.activation = {a.function, a.alpha, a.beta};
  p.i = resolve(layer->i_desc, kOp, "i_desc");
  p.o = resolve(layer->o_desc, kOp, "o_desc");
  check_tensor(p.i, "i_desc");
  check_tensor(p.o, "o_desc");
  check_distinct(p.o, kOp, "o_desc");
  const bool gumbel_max = a.function == BNNSActivationFunctionGumbelMax;
  if (p.activation.is_rowwise() || gumbel_max) read_row_axes(layer->axis_flags, &p);
  if (gumbel_max) {
    check_gumbel_max(p);
  } else if (p.i.count != p.o.count) {
    fail_invalid("%s: o_desc has %zu elements, expected %zu as in i_desc", kOp, p.o.count, p.i.count);
  }
  switch (a.function) {
    case BNNSActivationFunctionIntegerLinearSaturate:
    case BNNSActivationFunctionIntegerLinearSaturatePerChannel:
      read_integer_function(a, &p);
      break;
    case BNNSActivationFunctionPReLUPerChannel:
      p.channels = channels_of(p.i, false, "PReLUPerChannel");
      break;
    case BNNSActivationFunctionIdentity:
      // Integers to integers without a bias stay integers: f32 in between would lose the bits beyond 24.
      p.integer = is_integer(p.i.type) && is_integer(p.o.type) && type_bytes(p.i.type) && type_bytes(p.o.type) &&
                  p.i.scale == p.o.scale && p.i.bias == 0 && p.o.bias == 0;
      break;
    default:
      break;
  }
  return p;
}

std::string ActivationProblem::text() const {
  std::string result =
      std::string("activation ") + activation_name(activation.function) + " " + i.text() + " -> " + o.text();
  if (row_axes > 1) result += " axes " + std::to_string(row_axes);
  return result;
}

}  // namespace bnns

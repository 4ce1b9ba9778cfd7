// The two tensors of a batched call, checked: see batch_pair.h.

#include "src/filter/batch_pair.h"

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {

void check_plain(const Tensor& t, const char* op, const char* field) {
  switch (t.layout) {
    case BNNSDataLayoutConvolutionWeightsOIHrWr:
    case BNNSDataLayoutConvolutionWeightsIOHrWr:
    case BNNSDataLayoutConvolutionWeightsOIHW_Pack32:
      fail_unsupported("%s: %s.layout is %s, rotated or packed weights; expected one that is plain in memory", op,
                       field, enum_text(t.layout).text);
    default:
      break;
  }
  if (type_bytes(t.type) == 0 || is_indexed(t.type)) {
    fail_unsupported("%s: %s has type %s; expected a float, Boolean or integer of 8 bits or more", op, field,
                     type_name(t.type));
  }
}

BatchPair forward_pair(size_t batch, const Tensor& x, const void* in, size_t in_stride, const Tensor& y, void* out,
                       size_t out_stride, const char* op) {
  BatchPair pair{batch, x, y, 0, 0};
  pair.from_stride = input_batch_stride(in_stride, batch, x, op, "in_stride");
  pair.to_stride = output_batch_stride(out_stride, batch, y, op, "out_stride");
  if (batch == 0) return pair;
  check_data(in, x.type, op, "in");
  check_data(out, y.type, op, "out");
  check_disjoint(out, batch_bytes(batch, pair.to_stride, y, op, "out_stride"), "out", in,
                 batch_bytes(batch, pair.from_stride, x, op, "in_stride"), "in", op);
  pair.from.data = const_cast<void*>(in);
  pair.to.data = out;
  pair.to.accumulate = false;  // the flag is for gradients
  return pair;
}

BatchPair backward_pair(const BackwardCall& call, const Tensor& x, const Tensor& y, const char* op) {
  if (call.weights_delta) fail_invalid("%s: weights_delta is given, expected NULL: there are no weights", op);
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: there is no bias", op);
  if (!is_float(x.type)) {
    fail_unsupported("%s: i_desc has type %s; only f32, f16 and bf16 have a gradient", op, type_name(x.type));
  }
  BatchPair pair;
  pair.from = resolve_delta_view(call.out_delta, y, op, "out_delta");
  check_plain(pair.from, op, "out_delta");
  pair.from_stride = input_batch_stride(call.out_delta_stride, call.batch, pair.from, op, "out_delta_stride");
  if (!call.in_delta) return pair;
  pair.to = resolve_delta_view(call.in_delta, x, op, "in_delta");
  check_plain(pair.to, op, "in_delta");
  check_distinct(pair.to, op, "in_delta");
  pair.to_stride = output_batch_stride(call.in_delta_stride, call.batch, pair.to, op, "in_delta_stride");
  check_disjoint(pair.to.data, batch_bytes(call.batch, pair.to_stride, pair.to, op, "in_delta_stride"), "in_delta",
                 pair.from.data, batch_bytes(call.batch, pair.from_stride, pair.from, op, "out_delta_stride"),
                 "out_delta", op);
  pair.batch = call.batch;
  return pair;
}

}  // namespace bnns

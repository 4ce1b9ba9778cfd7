// AttentionFilter::apply and the checks of inputs that backward shares.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/gemm/operand.h"
#include "src/ops/attention/attention.h"
#include "src/ops/attention/attention_buffers.h"
#include "src/ops/attention/attention_checks.h"
#include "src/ops/attention/attention_pass.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "attention";

// Strides of X by (batch, head, query, key); 0 for indices that it does not have.
void set_addend(AttentionMask* mask, const Tensor& x, const AttentionShape& s) {
  const LogicalShape shape = logical_shape(x, kOp, "add_to_attention");
  if (shape.rank == 4) {
    check_attention_shape(x, {s.batch, s.heads, s.queries, s.keys}, "add_to_attention", "(batch, h, L, S)");
  } else if (shape.rank == 3) {
    check_attention_shape(x, {s.heads, s.queries, s.keys}, "add_to_attention", "(h, L, S)");
  } else {
    check_attention_shape(x, {s.queries, s.keys}, "add_to_attention", "(L, S)");
  }
  if (shape.rank >= 4) mask->add_batch_stride = shape.stride[shape.rank - 4];
  if (shape.rank >= 3) mask->add_head_stride = shape.stride[shape.rank - 3];
  mask->add_query_stride = shape.stride[shape.rank - 2];
  mask->add = x.data;
  mask->row = vector_tensor(s.keys, x.data);
  mask->row.type = x.type;
  mask->row.stride[0] = shape.stride[shape.rank - 1];
  mask->row.dense = mask->row.stride[0] == 1;
  mask->row.span = (s.keys - 1) * mask->row.stride[0] + 1;
}

}  // namespace

AttentionMask AttentionFilter::check_mask(const AttentionInputs& in, AttentionExtents* extents) const {
  AttentionShape s = problem_.shape;
  s.batch = in.batch;
  AttentionMask mask;
  if (in.key_mask && !is_absent(*in.key_mask)) {
    const Tensor keys = resolve_with_data(*in.key_mask, kOp, "key_mask");
    if (!keys.is(BNNSDataTypeBoolean)) {
      fail_invalid("%s: key_mask has type %s, expected Boolean", kOp, type_name(keys.type));
    }
    check_attention_shape(keys, {s.keys}, "key_mask", "(S)");
    mask.keys = static_cast<const uint8_t*>(keys.data);
    mask.key_stride = keys.stride[0];
    mask.key_batch_stride = input_batch_stride(in.key_mask_stride, in.batch, keys, kOp, "key_mask_stride");
    extents->add(
        {keys.data, batch_bytes(in.batch, mask.key_batch_stride, keys, kOp, "key_mask_stride"), "key_mask", false},
        kOp);
  }
  if (in.add_to_attention && !is_absent(*in.add_to_attention)) {
    const Tensor x = resolve_with_data(*in.add_to_attention, kOp, "add_to_attention");
    if (!is_float(x.type) && !x.is(BNNSDataTypeBoolean)) {
      fail_unsupported("%s: add_to_attention has type %s, expected f32, f16, bf16 or Boolean", kOp, type_name(x.type));
    }
    if (x.rank < 2) fail_invalid("%s: add_to_attention has rank %zu, expected 2, 3 or 4", kOp, x.rank);
    set_addend(&mask, x, s);
    extents->add({x.data, x.span_bytes(), "add_to_attention", false}, kOp);
  }
  return mask;
}

AttentionInputs AttentionFilter::check_inputs(const AttentionInputs& in, unsigned needed,
                                              AttentionExtents* extents) const {
  const AttentionProblem& p = problem_;
  AttentionInputs out = in;
  const struct {
    const Tensor& sample;
    const void* data;
    size_t* stride;
    const char *name, *stride_name;
  } targets[] = {{p.query.target, in.query, &out.query_stride, "query", "query_stride"},
                 {p.key.target, in.key, &out.key_stride, "key", "key_stride"},
                 {p.value.target, in.value, &out.value_stride, "value", "value_stride"}};
  for (unsigned i = 0; i < 3; ++i) {
    const auto& t = targets[i];
    *t.stride = input_batch_stride(*t.stride, in.batch, t.sample, kOp, t.stride_name);
    if (in.batch && (needed >> i & 1)) check_data(t.data, t.sample.type, kOp, t.name);
    if (t.data) extents->add({attention_target_view(t.sample, in.batch, t.data, *t.stride), t.name, false}, kOp);
  }
  const struct {
    const Weights& w;
    const char *weights, *bias;
  } parameters[] = {{query_, "query.weights", "query.bias"},
                    {key_, "key.weights", "key.bias"},
                    {value_, "value.weights", "value.bias"},
                    {output_, "output.weights", "output.bias"}};
  for (const auto& q : parameters) {
    const Tensor &w = q.w.weights.tensor(), &b = q.w.bias.tensor();
    extents->add({w.data, w.span_bytes(), q.weights, false}, kOp);
    if (q.w.bias.present()) extents->add({b.data, b.span_bytes(), q.bias, false}, kOp);
  }
  for (const auto& [row, name] : {std::pair{&key_row_, "key_attn_bias"}, {&value_row_, "value_attn_bias"}}) {
    if (row->present()) extents->add({row->tensor().data, row->tensor().span_bytes(), name, false}, kOp);
  }
  return out;
}

void AttentionFilter::run_forward(AttentionPass& pass, AttentionHeads& h, const AttentionInputs& in, void* output,
                                  size_t output_stride) const {
  const AttentionProblem& p = problem_;
  const AttentionShape& s = h.shape;
  if (!h.q) {  // neither cache nor workspace
    float* arrays = pass.floats(attention_array_floats(s));
    if (!pass.measuring()) set_attention_arrays(&h, arrays);
  }
  project_all(pass, h, in);
  const size_t threads = attention_threads(s, pass.threads(), false);
  void* buffers = pass.take(checked_mul(threads, attention_worker_bytes(h, false), kOp));
  if (!pass.measuring()) attention_heads_forward(h, buffers, threads);

  MatrixView target = attention_target_view(p.output.target, s.batch, output, output_stride);
  target.accumulate = false;  // the flag belongs to gradients
  AttentionResult y(pass, target);
  const Lens heads = strided_lens(h.heads, FloatType::f32, static_cast<ptrdiff_t>(s.value_stride()), 1);
  const Lens weights = transposed(pass.operand(attention_output_weights_view(output_.weights.tensor())));
  const float* bias = nullptr;
  if (output_.bias.present()) {
    bias = pass.values(attention_output_bias_view(output_.bias.tensor(), p.model, "output.bias"));
  }
  const GemmInit init = output_.bias.present() ? GemmInit::bias_columns : GemmInit::overwrite;
  pass.multiply({s.batch * s.queries, p.model, s.heads * s.value_size, init}, heads, weights, y.output(), bias);
  y.store(pass);
}

void AttentionFilter::apply(const AttentionInputs& inputs, void* output, size_t output_stride, AttentionBuffer cache,
                            AttentionBuffer workspace) {
  const AttentionProblem& p = problem_;
  AttentionHeads h;
  h.shape = shape_of(inputs.batch);
  const size_t cache_bytes = attention_cache_bytes(h.shape);
  const size_t workspace_bytes = attention_workspace_bytes(h.shape, cache.data != nullptr, false);
  if (answer_attention_sizes(cache, cache_bytes, workspace, workspace_bytes)) return;
  check_attention_buffer(cache, cache_bytes, "backprop_cache");
  check_attention_buffer(workspace, workspace_bytes, "workspace");

  AttentionExtents extents;
  const AttentionInputs in = check_inputs(inputs, 7, &extents);
  h.mask = check_mask(inputs, &extents);
  output_stride = output_batch_stride(output_stride, in.batch, p.output.target, kOp, "output_stride");
  if (in.batch == 0) return;
  check_data(output, p.output.target.type, kOp, "output");
  extents.add({attention_target_view(p.output.target, in.batch, output, output_stride), "output", true}, kOp);
  if (cache.data) extents.add({cache.data, cache_bytes, "backprop_cache", true}, kOp);
  if (workspace.data) extents.add({workspace.data, workspace_bytes, "workspace", true}, kOp);

  if (cache.data) {
    set_attention_arrays(&h, reinterpret_cast<float*>(static_cast<char*>(cache.data) + sizeof(AttentionCacheHeader)));
  } else if (workspace.data) {
    set_attention_arrays(&h, static_cast<float*>(aligned_up(workspace.data)));
  }
  h.dropout = dropout_;
  AttentionPass pass(options_.n_threads);
  run_forward(pass, h, in, output, output_stride);
  ScratchShelf::Lease lease(scratch_, std::max<size_t>(pass.bytes(), 1));
  pass.begin(lease.data());
  if (h.dropout.threshold) h.dropout.number = ++passes_;
  if (cache.data) write_cache_header(cache.data, h.shape, h.dropout);
  if (recording()) count_work(0, p.operations(in.batch));
  run_forward(pass, h, in, output, output_stride);
}

}  // namespace bnns

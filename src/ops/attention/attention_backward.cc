// AttentionFilter::apply_backward. With g = dOut (N x d_model), N = all rows of the batch:
//   dWo = heads^T g     dbo = column sums of g     dHeads = g Wo^T     then the heads (attention_head.h)
//   dWq = Q^T dQ'       dbq = column sums of dQ'   dQ = dQ' Wq^T       and likewise for keys and values

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/gemm/operand.h"
#include "src/ops/attention/attention.h"
#include "src/ops/attention/attention_buffers.h"
#include "src/ops/attention/attention_checks.h"
#include "src/ops/attention/attention_pass.h"
#include "src/simd/sums.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "attention";
constexpr size_t kSumColumns = 64;  // per task

Lens row_lens(const float* data, size_t stride) {
  return strided_lens(data, FloatType::f32, static_cast<ptrdiff_t>(stride), 1);
}

// Blocks of rows: block o begins o * outer_stride after the first.
struct RowBlocks {
  const float* data;
  size_t outer, outer_stride, rows, stride;
};

// The sums of the columns of all rows, in `sums`, a column by one thread whatever the number of threads.
void sum_columns(const AttentionPass& pass, const RowBlocks& blocks, size_t columns, float* sums) {
  if (pass.measuring()) return;
  const size_t tasks = div_up(columns, kSumColumns), bytes = blocks.outer * blocks.rows * columns * sizeof(float);
  parallel_for(tasks, threads_for(pass.threads(), tasks, bytes), [&](size_t task, size_t) {
    const size_t first = task * kSumColumns, n = std::min(kSumColumns, columns - first);
    double total[kSumColumns] = {};
    for (size_t o = 0; o < blocks.outer && blocks.rows; ++o) {
      add_column_sums(blocks.data + o * blocks.outer_stride + first, blocks.rows, blocks.stride, n, total);
    }
    round_sums(total, n, sums + first);
  });
}

Tensor read_delta(const BNNSNDArrayDescriptor& d, const char* field) {
  const Tensor t = resolve_with_data(d, kOp, field);
  check_distinct(t, kOp, field);
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; gradients are f32, f16 or bf16", kOp, field, type_name(t.type));
  }
  return t;
}

const char* const kTargets[] = {"query_param_delta.target_desc", "key_param_delta.target_desc",
                                "value_param_delta.target_desc"};
const char* const kWeights[] = {"query_param_delta.weights", "key_param_delta.weights", "value_param_delta.weights"};
const char* const kBiases[] = {"query_param_delta.bias", "key_param_delta.bias", "value_param_delta.bias"};

}  // namespace

struct AttentionFilter::Deltas {
  MatrixView dy;                                                                               // what comes in
  MatrixView target[3], weights[3], bias[3], output_weights, output_bias, key_row, value_row;  // data null: not wanted
  size_t same[3] = {0, 1, 2};  // the first target with the same memory

  bool wanted(size_t i) const { return target[i].data || weights[i].data || bias[i].data; }
  bool wants_keys() const { return wanted(1) || key_row.data; }
  bool wants_values() const { return wanted(2) || value_row.data; }
  bool wants_heads() const { return wanted(0) || wants_keys() || wants_values(); }
};

// Everything that can be wrong with the gradients' descriptors.
AttentionFilter::Deltas AttentionFilter::check_backward(const AttentionInputs& in, const AttentionGradients& g) const {
  const AttentionProblem& p = problem_;
  const AttentionShape& s = p.shape;
  Deltas deltas;
  if (!g.output)
    fail_invalid("%s: output_param_delta is NULL, expected the gradient of the output in its target_desc", kOp);
  const auto read_target = [&](const BNNSNDArrayDescriptor& d, const Tensor& like, bool written, const char* field) {
    const Tensor t = read_delta(d, field);
    const LogicalShape shape = logical_shape(like, kOp, field);
    check_attention_shape(t, {shape.size[0], shape.size[1]}, field, "the layer's target");
    const size_t stride = written ? output_batch_stride(d.stride[2], in.batch, t, kOp, field)
                                  : input_batch_stride(d.stride[2], in.batch, t, kOp, field);
    return attention_target_view(t, in.batch, t.data, stride);
  };
  deltas.dy = read_target(g.output->target_desc, p.output.target, false, "output_param_delta.target_desc");

  const BNNSMHAProjectionParameters* given[] = {g.query, g.key, g.value};
  const AttentionProjection* projections[] = {&p.query, &p.key, &p.value};
  for (size_t i = 0; i < 3; ++i) {
    if (!given[i]) continue;
    const size_t size = i == 2 ? s.value_size : s.key_size;
    if (!is_absent(given[i]->target_desc)) {
      deltas.target[i] = read_target(given[i]->target_desc, projections[i]->target, true, kTargets[i]);
    }
    if (!is_absent(given[i]->weights)) {
      const Tensor t = read_delta(given[i]->weights, kWeights[i]);
      const LogicalShape shape = logical_shape(projections[i]->weights, kOp, kWeights[i]);
      check_attention_shape(t, {shape.size[0], size, s.heads}, kWeights[i], "the layer's weights");
      deltas.weights[i] = attention_weights_view(t);
    }
    if (!is_absent(given[i]->bias)) {
      deltas.bias[i] = attention_bias_view(read_delta(given[i]->bias, kBiases[i]), size, s.heads, kBiases[i]);
    }
  }
  for (size_t i = 1; i < 3; ++i) {
    for (size_t j = 0; j < i && deltas.target[i].data; ++j) {
      const MatrixView &a = deltas.target[j], &b = deltas.target[i];
      if (a.data != b.data || deltas.same[i] != i) continue;
      if (a.type != b.type || a.rows != b.rows || a.columns != b.columns || a.row_stride != b.row_stride ||
          a.column_stride != b.column_stride || (in.batch > 1 && a.outer_stride != b.outer_stride)) {
        fail_invalid(
            "%s: %s and %s have the same data, expected then the same shape, strides and type: the sum goes there", kOp,
            kTargets[j], kTargets[i]);
      }
      deltas.same[i] = j;
    }
  }
  if (!is_absent(g.output->weights)) {
    const Tensor t = read_delta(g.output->weights, "output_param_delta.weights");
    check_attention_shape(t, {s.heads * s.value_size, p.model}, "output_param_delta.weights", "the layer's weights");
    deltas.output_weights = attention_output_weights_view(t);
  }
  if (!is_absent(g.output->bias)) {
    deltas.output_bias = attention_output_bias_view(read_delta(g.output->bias, "output_param_delta.bias"), p.model,
                                                    "output_param_delta.bias");
  }
  const auto read_row = [&](const BNNSNDArrayDescriptor* d, size_t size, const char* field) {
    if (!d || is_absent(*d)) return MatrixView();
    if (!key_row_.present()) fail_invalid("%s: %s is given, expected none: the layer has no such row", kOp, field);
    return attention_bias_view(read_delta(*d, field), size, s.heads, field);
  };
  deltas.key_row = read_row(g.key_row, s.key_size, "key_attn_bias_delta");
  deltas.value_row = read_row(g.value_row, s.value_size, "value_attn_bias_delta");
  return deltas;
}

// dW, db and dX of one projection y = x W + b, from g = dy: rows of all heads, g_stride apart.
void AttentionFilter::projection_gradients(AttentionPass& pass, const Deltas& deltas, size_t which, const MatrixView& x,
                                           const float* g, size_t g_stride, size_t g_outer_stride,
                                           AttentionResult* dx) const {
  const Weights& w = which == 0 ? query_ : which == 1 ? key_ : value_;
  const MatrixView weights = attention_weights_view(w.weights.tensor());
  const size_t n = weights.outer * weights.rows;
  const bool together = g_outer_stride == x.rows * g_stride;
  const auto g_rows = [&](size_t o) { return g ? g + o * g_outer_stride : nullptr; };
  if (deltas.weights[which].data) {
    AttentionResult dw(pass, deltas.weights[which]);
    const Lens rows = pass.operand(x);
    for_row_blocks(pass, together, x.outer, x.rows, [&](size_t o, size_t count) {
      pass.multiply({n, x.columns, count, dw.next()}, transposed(row_lens(g_rows(o), g_stride)),
                    transposed(rows_from(rows, o * x.rows)), dw.output());
    });
    dw.store(pass);
  }
  if (deltas.bias[which].data) {
    float* sums = pass.floats(n);
    const size_t outer = together ? 1 : x.outer;
    sum_columns(pass, {g, outer, g_outer_stride, together ? x.outer * x.rows : x.rows, g_stride}, n, sums);
    if (!pass.measuring()) scatter(sums, deltas.bias[which], 1);
  }
  if (deltas.target[which].data) {
    const Lens columns = transposed(pass.operand(weights));
    const GemmInit init = dx->next();
    for_row_blocks(pass, together, x.outer, x.rows, [&](size_t o, size_t count) {
      pass.multiply({count, x.columns, n, init}, row_lens(g_rows(o), g_stride), columns,
                    rows_from(dx->output(), o * x.rows));
    });
  }
}

void AttentionFilter::run_backward(AttentionPass& pass, AttentionHeads& h, const AttentionInputs& in,
                                   const Deltas& deltas, bool cached) const {
  const AttentionProblem& p = problem_;
  const AttentionShape& s = h.shape;
  const size_t n = s.batch * s.queries, values = s.heads * s.value_size;
  const bool wants_heads = deltas.wants_heads(), wants_output = deltas.output_weights.data != nullptr;
  const size_t threads =
      std::max(attention_threads(s, pass.threads(), false), attention_threads(s, pass.threads(), true));
  void* buffers = pass.take(checked_mul(threads, attention_worker_bytes(h, true), kOp));
  if (!cached && (wants_heads || wants_output)) {
    project_all(pass, h, in);
    if (wants_output && !pass.measuring()) attention_heads_forward(h, buffers, threads);
  }

  const Lens dy = pass.operand(deltas.dy);
  if (wants_output) {
    AttentionResult dw(pass, deltas.output_weights);
    pass.multiply({values, p.model, n, dw.next()}, transposed(row_lens(h.heads, s.value_stride())), transposed(dy),
                  dw.output());
    dw.store(pass);
  }
  if (deltas.output_bias.data) {
    const bool plain = dy.type == FloatType::f32 && dy.depth_stride == 1;
    const float* rows = plain ? static_cast<const float*>(dy.data) : pass.values(deltas.dy);
    float* sums = pass.floats(p.model);
    sum_columns(pass, {rows, 1, 0, n, plain ? static_cast<size_t>(dy.row_stride) : p.model}, p.model, sums);
    if (!pass.measuring()) scatter(sums, deltas.output_bias, 1);
  }
  if (!wants_heads) return;

  pass.multiply({n, values, p.model}, dy, pass.operand(attention_output_weights_view(output_.weights.tensor())),
                {const_cast<float*>(h.dheads), s.value_stride(), 1});
  if (!pass.measuring()) attention_heads_backward(h, buffers, threads);

  AttentionResult dx[3];
  for (size_t i = 0; i < 3; ++i) {
    if (deltas.target[i].data && deltas.same[i] == i) dx[i] = AttentionResult(pass, deltas.target[i]);
  }
  const size_t ks = s.key_stride(), vs = s.value_stride();
  if (deltas.wanted(0)) {
    projection_gradients(pass, deltas, 0, attention_target_view(p.query.target, s.batch, in.query, in.query_stride),
                         h.dq, ks, s.queries * ks, &dx[0]);
  }
  if (deltas.wanted(1)) {
    projection_gradients(pass, deltas, 1, attention_target_view(p.key.target, s.batch, in.key, in.key_stride), h.dk, ks,
                         s.rows() * ks, &dx[deltas.same[1]]);
  }
  if (deltas.wanted(2)) {
    projection_gradients(pass, deltas, 2, attention_target_view(p.value.target, s.batch, in.value, in.value_stride),
                         h.dv, vs, s.rows() * vs, &dx[deltas.same[2]]);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (deltas.target[i].data && deltas.same[i] == i) dx[i].store(pass);
  }
  // The bias row of every sample stands behind its S rows.
  if (deltas.key_row.data) {
    float* sums = pass.floats(s.heads * s.key_size);
    sum_columns(pass, {h.dk ? h.dk + s.keys * ks : nullptr, 1, 0, s.batch, s.rows() * ks}, s.heads * s.key_size, sums);
    if (!pass.measuring()) scatter(sums, deltas.key_row, 1);
  }
  if (deltas.value_row.data) {
    float* sums = pass.floats(values);
    sum_columns(pass, {h.dv ? h.dv + s.keys * vs : nullptr, 1, 0, s.batch, s.rows() * vs}, values, sums);
    if (!pass.measuring()) scatter(sums, deltas.value_row, 1);
  }
}

void AttentionFilter::apply_backward(const AttentionInputs& inputs, const AttentionGradients& gradients,
                                     AttentionBuffer cache, AttentionBuffer workspace) {
  AttentionHeads h;
  h.shape = shape_of(inputs.batch);
  const AttentionShape& s = h.shape;
  const bool cached = cache.data != nullptr;
  const size_t cache_bytes = attention_cache_bytes(s), workspace_bytes = attention_workspace_bytes(s, cached, true);
  if (answer_attention_sizes({nullptr, nullptr}, 0, workspace, workspace_bytes)) return;
  check_attention_buffer(cache, cache_bytes, "backprop_cache");
  check_attention_buffer(workspace, workspace_bytes, "workspace");
  h.dropout = dropout_;
  if (cached && inputs.batch) {
    h.dropout = read_cache_header(cache.data, s, dropout_);
  } else if (dropout_.threshold && inputs.batch) {
    fail_invalid(
        "%s: backprop_cache is NULL, expected the one that the forward call filled: dropout %g made its "
        "decisions there",
        kOp, static_cast<double>(problem_.dropout));
  }

  const Deltas deltas = check_backward(inputs, gradients);
  unsigned needed = 0;
  if (!cached && (deltas.wants_heads() || deltas.output_weights.data)) needed = 7;
  for (unsigned i = 0; i < 3; ++i) {
    if (deltas.weights[i].data) needed |= 1u << i;
  }
  AttentionExtents extents;
  const AttentionInputs in = check_inputs(inputs, needed, &extents);
  h.mask = check_mask(inputs, &extents);
  extents.add({deltas.dy, "output_param_delta.target_desc", false}, kOp);
  if (cached) extents.add({cache.data, cache_bytes, "backprop_cache", false}, kOp);
  for (size_t i = 0; i < 3; ++i) {
    if (deltas.same[i] == i) extents.add({deltas.target[i], kTargets[i], true}, kOp);
    extents.add({deltas.weights[i], kWeights[i], true}, kOp);
    extents.add({deltas.bias[i], kBiases[i], true}, kOp);
  }
  extents.add({deltas.output_weights, "output_param_delta.weights", true}, kOp);
  extents.add({deltas.output_bias, "output_param_delta.bias", true}, kOp);
  extents.add({deltas.key_row, "key_attn_bias_delta", true}, kOp);
  extents.add({deltas.value_row, "value_attn_bias_delta", true}, kOp);
  if (workspace.data) extents.add({workspace.data, workspace_bytes, "workspace", true}, kOp);

  if (recording()) count_work(0, 2 * problem_.operations(in.batch));
  AttentionPass pass(options_.n_threads);
  const auto place = [&] {  // the arrays, in cache, workspace and scratch
    const size_t arrays = cached ? 0 : attention_array_floats(s), all = arrays + attention_gradient_floats(s);
    float* memory = workspace.data ? static_cast<float*>(aligned_up(workspace.data)) : pass.floats(all);
    if (pass.measuring()) return;
    if (cached) {
      set_attention_arrays(&h, reinterpret_cast<float*>(static_cast<char*>(cache.data) + sizeof(AttentionCacheHeader)));
    } else {
      set_attention_arrays(&h, memory);
    }
    float* at = memory + arrays;
    h.dheads = at, at += s.head_floats();
    if (deltas.wanted(0)) h.dq = at;
    at += s.query_floats();
    if (deltas.wants_keys()) h.dk = at, h.dk_groups = at + s.key_floats();
    at += s.backward_groups() * s.key_floats();
    if (deltas.wants_values()) h.dv = at, h.dv_groups = at + s.value_floats();
  };
  place();
  run_backward(pass, h, in, deltas, cached);
  ScratchShelf::Lease lease(scratch_, std::max<size_t>(pass.bytes(), 1));
  pass.begin(lease.data());
  place();
  run_backward(pass, h, in, deltas, cached);
}

}  // namespace bnns

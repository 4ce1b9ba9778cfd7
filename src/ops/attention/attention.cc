// Checks of the layer, and the parts that forward and backward share.

#include "src/ops/attention/attention.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/ops/attention/attention_checks.h"
#include "src/ops/attention/attention_pass.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "attention";

void check_float(const Tensor& t, const char* field) {
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; attention works on f32, f16 and bf16", kOp, field, type_name(t.type));
  }
}

Tensor read_target(const BNNSNDArrayDescriptor& d, const char* field) {
  const Tensor t = resolve(d, kOp, field);
  check_float(t, field);
  if (logical_shape(t, kOp, field).rank != 2) {
    fail_invalid("%s: %s has rank %zu, expected a matrix: rows are positions, columns features", kOp, field, t.rank);
  }
  return t;
}

Tensor read_weights(const BNNSNDArrayDescriptor& d, size_t rank, const char* field) {
  const Tensor t = resolve_with_data(d, kOp, field);
  check_float(t, field);
  if (logical_shape(t, kOp, field).rank != rank) {
    fail_invalid("%s: %s has rank %zu, expected %zu", kOp, field, t.rank, rank);
  }
  return t;
}

Tensor read_optional(const BNNSNDArrayDescriptor& d, const char* field) {
  if (is_absent(d)) return {};
  const Tensor t = resolve_with_data(d, kOp, field);
  check_float(t, field);
  return t;
}

}  // namespace

std::string attention_shape_text(const size_t* size, size_t rank) {
  std::string text = "(";
  for (size_t k = 0; k < rank; ++k) text += (k ? ", " : "") + std::to_string(size[k]);
  return text + ")";
}

void check_attention_shape(const Tensor& t, std::initializer_list<size_t> expected, const char* field,
                           const char* meaning) {
  const LogicalShape shape = logical_shape(t, kOp, field);
  if (shape.rank == expected.size() && std::equal(expected.begin(), expected.end(), shape.size)) return;
  fail_invalid("%s: %s has the indices %s, expected %s = %s", kOp, field,
               attention_shape_text(shape.size, shape.rank).c_str(),
               attention_shape_text(expected.begin(), expected.size()).c_str(), meaning);
}

MatrixView attention_target_view(const Tensor& t, size_t batch, const void* data, size_t stride) {
  const LogicalShape shape = logical_shape(t, kOp, "target_desc");
  return {const_cast<void*>(data), t.type,          batch,       shape.size[0], shape.size[1], stride,
          shape.stride[0],         shape.stride[1], t.accumulate};
}

MatrixView attention_weights_view(const Tensor& t) {
  const LogicalShape shape = logical_shape(t, kOp, "weights");
  return {t.data,          t.type,          shape.size[2],   shape.size[1], shape.size[0],
          shape.stride[2], shape.stride[1], shape.stride[0], t.accumulate};
}

MatrixView attention_output_weights_view(const Tensor& t) {
  const LogicalShape shape = logical_shape(t, kOp, "output.weights");
  return {t.data, t.type, 1, shape.size[0], shape.size[1], 0, shape.stride[0], shape.stride[1], t.accumulate};
}

MatrixView attention_bias_view(const Tensor& t, size_t size, size_t heads, const char* field) {
  const LogicalShape shape = logical_shape(t, kOp, field);
  if (shape.rank == 1 && shape.size[0] == size * heads) {  // a vector: head after head
    return {t.data, t.type, 1, heads, size, 0, size * shape.stride[0], shape.stride[0], t.accumulate};
  }
  check_attention_shape(t, {size, heads}, field, "(d_key or d_value, heads)");
  return {t.data, t.type, 1, heads, size, 0, shape.stride[1], shape.stride[0], t.accumulate};
}

MatrixView attention_output_bias_view(const Tensor& t, size_t model, const char* field) {
  const LogicalShape shape = logical_shape(t, kOp, field);
  if (t.count != model) fail_invalid("%s: %s has %zu elements, expected %zu = d_model", kOp, field, t.count, model);
  // A vector, or a matrix with one row or one column.
  size_t stride = shape.stride[0];
  for (size_t k = 0; k < shape.rank; ++k) {
    if (shape.size[k] == model) stride = shape.stride[k];
    if (shape.size[k] != model && shape.size[k] != 1) {
      fail_invalid("%s: %s has the indices %s, expected a vector of %zu", kOp, field,
                   attention_shape_text(shape.size, shape.rank).c_str(), model);
    }
  }
  return {t.data, t.type, 1, 1, model, 0, 0, stride, t.accumulate};
}

AttentionProblem make_attention_problem(const BNNSLayerParametersMultiheadAttention* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersMultiheadAttention", kOp);
  AttentionProblem p;
  p.query.target = read_target(layer->query.target_desc, "query.target_desc");
  p.key.target = read_target(layer->key.target_desc, "key.target_desc");
  p.value.target = read_target(layer->value.target_desc, "value.target_desc");
  p.output.target = read_target(layer->output.target_desc, "output.target_desc");
  check_distinct(p.output.target, kOp, "output.target_desc");
  p.query.weights = read_weights(layer->query.weights, 3, "query.weights");
  p.key.weights = read_weights(layer->key.weights, 3, "key.weights");
  p.value.weights = read_weights(layer->value.weights, 3, "value.weights");
  p.output.weights = read_weights(layer->output.weights, 2, "output.weights");

  const LogicalShape q = logical_shape(p.query.target, kOp, ""), k = logical_shape(p.key.target, kOp, "");
  const LogicalShape v = logical_shape(p.value.target, kOp, "");
  AttentionShape& s = p.shape;
  s.queries = q.size[0], p.model = q.size[1];
  s.keys = k.size[0], p.key_model = k.size[1];
  p.value_model = v.size[1];
  s.heads = p.query.weights.size[2];
  s.key_size = p.key.weights.size[1];
  s.value_size = p.value.weights.size[1];
  check_attention_shape(p.value.target, {s.keys, p.value_model}, "value.target_desc", "(S, v_dim), S as in key");
  check_attention_shape(p.query.weights, {p.model, s.key_size, s.heads}, "query.weights", "(d_model, d_key, h)");
  check_attention_shape(p.key.weights, {p.key_model, s.key_size, s.heads}, "key.weights", "(k_dim, d_key, h)");
  check_attention_shape(p.value.weights, {p.value_model, s.value_size, s.heads}, "value.weights",
                        "(v_dim, d_value, h)");
  check_attention_shape(p.output.target, {s.queries, p.model}, "output.target_desc", "(L, d_model) as in query");
  check_attention_shape(p.output.weights, {s.heads * s.value_size, p.model}, "output.weights", "(h d_value, d_model)");

  p.query.bias = read_optional(layer->query.bias, "query.bias");
  p.key.bias = read_optional(layer->key.bias, "key.bias");
  p.value.bias = read_optional(layer->value.bias, "value.bias");
  p.output.bias = read_optional(layer->output.bias, "output.bias");
  p.key_row = read_optional(layer->key_attn_bias, "key_attn_bias");
  p.value_row = read_optional(layer->value_attn_bias, "value_attn_bias");
  if (p.query.bias.count) attention_bias_view(p.query.bias, s.key_size, s.heads, "query.bias");
  if (p.key.bias.count) attention_bias_view(p.key.bias, s.key_size, s.heads, "key.bias");
  if (p.value.bias.count) attention_bias_view(p.value.bias, s.value_size, s.heads, "value.bias");
  if (p.output.bias.count) attention_output_bias_view(p.output.bias, p.model, "output.bias");
  if (p.key_row.count) attention_bias_view(p.key_row, s.key_size, s.heads, "key_attn_bias");
  if (p.value_row.count) attention_bias_view(p.value_row, s.value_size, s.heads, "value_attn_bias");
  if ((p.key_row.count == 0) != (p.value_row.count == 0)) {
    fail_invalid("%s: %s has no data, expected both of key_attn_bias and value_attn_bias or neither", kOp,
                 p.key_row.count ? "value_attn_bias" : "key_attn_bias");
  }
  p.zero_row = layer->add_zero_attn;
  s.extra = (p.key_row.count ? 1 : 0) + (p.zero_row ? 1 : 0);
  s.check_size(kOp);
  if (layer->dropout > 0 && layer->dropout < 1) p.dropout = layer->dropout;  // anything else: none
  p.seed = layer->seed;
  return p;
}

std::string AttentionProblem::text() const {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, " l%zu s%zu model%zu h%zu k%zu v%zu", shape.queries, shape.keys, model,
                shape.heads, shape.key_size, shape.value_size);
  std::string result = std::string(kOp) + " " + type_name(query.target.type) + numbers;
  if (key_row.count) result += " bias_row";
  if (zero_row) result += " zero_row";
  if (dropout > 0)
    std::snprintf(numbers, sizeof numbers, " dropout%g", static_cast<double>(dropout)), result += numbers;
  return result;
}

namespace {

Parameter optional_parameter(const Tensor& t, const Options& options, const char* what) {
  return t.count ? Parameter(t, options, what) : Parameter();
}

}  // namespace

AttentionFilter::AttentionFilter(const Options& options, const AttentionProblem& p)
    : Filter(kKind, options),
      problem_(p),
      query_{Parameter(p.query.weights, options, "the weights"), optional_parameter(p.query.bias, options, "the bias")},
      key_{Parameter(p.key.weights, options, "the weights"), optional_parameter(p.key.bias, options, "the bias")},
      value_{Parameter(p.value.weights, options, "the weights"), optional_parameter(p.value.bias, options, "the bias")},
      output_{Parameter(p.output.weights, options, "the weights"),
              optional_parameter(p.output.bias, options, "the bias")},
      key_row_(optional_parameter(p.key_row, options, "key_attn_bias")),
      value_row_(optional_parameter(p.value_row, options, "value_attn_bias")),
      scratch_(options) {
  if (p.dropout > 0) {
    const double rate = static_cast<double>(p.dropout);
    dropout_.seed = p.seed ? p.seed : seed_from_system();
    dropout_.threshold = static_cast<uint32_t>(std::ceil(rate * 0x1p32));  // rate < 1: at most 2^32 - 2^8
    dropout_.scale = static_cast<float>(1 / (1 - rate));
  }
}

AttentionShape AttentionFilter::shape_of(size_t batch) const {
  AttentionShape shape = problem_.shape;
  shape.batch = batch;
  shape.check_size(kOp);
  return shape;
}

namespace {

// Divides finished blocks of Q' by sqrt(d_key), while they are in cache.
struct Scale {
  float factor;
  float* data;
  size_t stride;
  static void run(void* context, Range rows, Range columns) {
    const Scale& s = *static_cast<const Scale*>(context);
    for (size_t r = rows.begin; r < rows.end; ++r) {
      float* row = s.data + r * s.stride + columns.begin;
      dropout_scale(s.factor, row, row, columns.size());
    }
  }
};

}  // namespace

void AttentionFilter::project(AttentionPass& pass, const MatrixView& x, const Weights& w, float* y, size_t y_stride,
                              size_t y_outer_stride, float factor) const {
  const MatrixView weights = attention_weights_view(w.weights.tensor());
  const size_t n = weights.outer * weights.rows;
  const Lens a = pass.operand(x), b = pass.operand(weights);
  const float* bias = nullptr;
  if (w.bias.present()) bias = pass.values(attention_bias_view(w.bias.tensor(), weights.rows, weights.outer, "bias"));
  const GemmInit init = w.bias.present() ? GemmInit::bias_columns : GemmInit::overwrite;
  for_row_blocks(pass, y_outer_stride == x.rows * y_stride, x.outer, x.rows, [&](size_t o, size_t rows) {
    float* to = y ? y + o * y_outer_stride : nullptr;
    Scale scale{factor, to, y_stride};
    pass.multiply({rows, n, weights.columns, init}, rows_from(a, o * x.rows), b, {to, y_stride, 1}, bias,
                  factor == 1 ? GemmEpilogue{} : GemmEpilogue{Scale::run, &scale});
  });
}

// The bias row, then the row of zeros, behind the S rows of every sample.
void AttentionFilter::fill_extra_rows(const AttentionHeads& h) const {
  const AttentionShape& s = h.shape;
  for (size_t b = 0; b < s.batch && s.extra; ++b) {
    float* k = h.k + (b * s.rows() + s.keys) * s.key_stride();
    float* v = h.v + (b * s.rows() + s.keys) * s.value_stride();
    if (key_row_.present()) {
      gather(attention_bias_view(key_row_.tensor(), s.key_size, s.heads, "key_attn_bias"), k, 1);
      gather(attention_bias_view(value_row_.tensor(), s.value_size, s.heads, "value_attn_bias"), v, 1);
      k += s.key_stride(), v += s.value_stride();
    }
    if (problem_.zero_row) {
      std::memset(k, 0, s.heads * s.key_size * sizeof(float));
      std::memset(v, 0, s.heads * s.value_size * sizeof(float));
    }
  }
}

void AttentionFilter::project_all(AttentionPass& pass, const AttentionHeads& h, const AttentionInputs& in) const {
  const AttentionProblem& p = problem_;
  const AttentionShape& s = h.shape;
  const float scale = 1 / std::sqrt(static_cast<float>(s.key_size));
  project(pass, attention_target_view(p.query.target, s.batch, in.query, in.query_stride), query_, h.q, s.key_stride(),
          s.queries * s.key_stride(), scale);
  project(pass, attention_target_view(p.key.target, s.batch, in.key, in.key_stride), key_, h.k, s.key_stride(),
          s.rows() * s.key_stride(), 1);
  project(pass, attention_target_view(p.value.target, s.batch, in.value, in.value_stride), value_, h.v,
          s.value_stride(), s.rows() * s.value_stride(), 1);
  if (!pass.measuring()) fill_extra_rows(h);
}

}  // namespace bnns

// Multi-head attention. For every sample and head, with Q' = Q Wq + bq, K' = K Wk + bk, V' = V Wv + bv:
//   R = Q' K'^T / sqrt(d_key) + X, -inf where masked     P = dropout(softmax over keys of R)     head = P V'
//   output = (heads side by side) Wo + bo
// Q is (L, d_model), K (S, k_dim), V (S, v_dim). A bias row and a row of zeros may follow the S rows of K' and V'.
//
// Projections are products over all rows of the batch; a head is computed tile by tile (attention_head.h), so no L x S
// matrix is stored. README.md has the gradients, the cache and the workspace.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/filter/filter.h"
#include "src/ops/attention/attention_head.h"
#include "src/ops/attention/attention_view.h"
#include "src/tensor/tensor.h"

namespace bnns {

class AttentionPass;
class AttentionResult;

struct AttentionProjection {
  Tensor target, weights, bias;  // bias.count is 0 where there is none
};

struct AttentionProblem {
  AttentionProjection query, key, value, output;
  Tensor key_row, value_row;  // the rows that follow K' and V'; count 0 where there are none
  AttentionShape shape;       // its batch is 0 here
  size_t model = 0, key_model = 0, value_model = 0;
  bool zero_row = false;
  float dropout = 0;  // 0: none
  uint32_t seed = 0;  // 0: from the operating system

  // Of a forward pass; the gradients of all its products take twice as many.
  double operations(size_t batch) const {
    const AttentionShape& s = shape;
    const double projected = product_of(s.queries, model, s.key_size) + product_of(s.keys, key_model, s.key_size) +
                             product_of(s.keys, value_model, s.value_size) + product_of(s.queries, s.value_size, model);
    return 2 * product_of(batch, s.heads) * (projected + product_of(s.queries, s.keys, s.key_size + s.value_size));
  }
  std::string text() const;  // "attention f32 l512 s512 model512 h8 k64 v64"
};

// Every check of BNNSLayerParametersMultiheadAttention.
AttentionProblem make_attention_problem(const BNNSLayerParametersMultiheadAttention* layer);

// What both calls read, as it came.
struct AttentionInputs {
  size_t batch;
  const void *query, *key, *value;
  size_t query_stride, key_stride, value_stride;
  const BNNSNDArrayDescriptor* key_mask;
  size_t key_mask_stride;
  const BNNSNDArrayDescriptor* add_to_attention;
};

// A buffer of the caller with its size; size NULL: not given. NULL data with a size is a question for the size.
struct AttentionBuffer {
  size_t* size;
  void* data;
  bool is_question() const { return size && !data; }
};

struct AttentionGradients {  // of BNNSApplyMultiheadAttentionBackward, as they came
  const BNNSMHAProjectionParameters *query, *key, *value, *output;
  const BNNSNDArrayDescriptor *key_row, *value_row;
};

class AttentionFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::multihead_attention;
  AttentionFilter(const Options& options, const AttentionProblem& problem);

  void apply(const AttentionInputs& inputs, void* output, size_t output_stride, AttentionBuffer cache,
             AttentionBuffer workspace);
  void apply_backward(const AttentionInputs& inputs, const AttentionGradients& gradients, AttentionBuffer cache,
                      AttentionBuffer workspace);
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.output.target; }

 private:
  struct Weights {
    Parameter weights, bias;
  };
  struct Deltas;  // the checked arguments of apply_backward
  Deltas check_backward(const AttentionInputs& inputs, const AttentionGradients& gradients) const;
  void run_forward(AttentionPass& pass, AttentionHeads& heads, const AttentionInputs& inputs, void* output,
                   size_t output_stride) const;
  void run_backward(AttentionPass& pass, AttentionHeads& heads, const AttentionInputs& inputs, const Deltas& deltas,
                    bool cached) const;
  void projection_gradients(AttentionPass& pass, const Deltas& deltas, size_t which, const MatrixView& x,
                            const float* g, size_t g_stride, size_t g_outer_stride, AttentionResult* dx) const;

  // Q' / sqrt(d_key), K', V' of the batch, extra rows included.
  void project_all(AttentionPass& pass, const AttentionHeads& heads, const AttentionInputs& inputs) const;
  void project(AttentionPass& pass, const MatrixView& x, const Weights& w, float* y, size_t y_stride,
               size_t y_outer_stride, float factor) const;
  void fill_extra_rows(const AttentionHeads& heads) const;
  AttentionShape shape_of(size_t batch) const;
  // Strides, pointers that `needed` names (bits: query, key, value), and all that the filter and the inputs cover.
  AttentionInputs check_inputs(const AttentionInputs& inputs, unsigned needed, AttentionExtents* extents) const;
  AttentionMask check_mask(const AttentionInputs& inputs, AttentionExtents* extents) const;

  AttentionProblem problem_;
  Weights query_, key_, value_, output_;
  Parameter key_row_, value_row_;
  ScratchShelf scratch_;
  DropoutPass dropout_;  // without its number
  std::atomic<uint64_t> passes_{0};
};

}  // namespace bnns

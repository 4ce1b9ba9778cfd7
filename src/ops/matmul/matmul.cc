#include "src/ops/matmul/matmul.h"

#include <algorithm>

#include "src/core/error.h"

namespace bnns {
namespace {

constexpr const char* kOp = "matmul";

// Index numbers: the batch of the call, rows of C, columns of C, the sum, leading indices from the last to the first.
enum : uint8_t { kRows = 1, kColumns = 2, kInner = 3, kLeading = 4 };
constexpr char kLabels[] = "?mnk123456";

IndexList matrix_indices(const Tensor& t, const char* field, uint8_t rows, uint8_t columns) {
  if (t.rank < 2) fail_invalid("%s: %s has rank %zu, expected at least 2: a matrix", kOp, field, t.rank);
  IndexList list;
  list.field = field;
  list.rank = t.rank;
  const size_t leading = std::min(t.rank, kMaxRank) - 2;
  for (size_t l = 0; l < leading; ++l) list.index[l] = static_cast<uint8_t>(kLeading + leading - 1 - l);
  list.index[leading] = rows;
  list.index[leading + 1] = columns;
  return list;
}

void bind_matrices(ProductProblem* p, bool trans_a, bool trans_b, const char* a, const char* b, const char* c) {
  const IndexList lists[kSides] = {
      matrix_indices(p->tensor[kSideA], a, trans_a ? kInner : kRows, trans_a ? kRows : kInner),
      matrix_indices(p->tensor[kSideB], b, trans_b ? kColumns : kInner, trans_b ? kInner : kColumns),
      matrix_indices(p->tensor[kSideC], c, kRows, kColumns)};
  bind_indices(p, lists, kLabels, 1u << kRows | 1u << kColumns | 1u << kInner);
  for (size_t i = kLeading; i < p->indices; ++i) {
    const bool inputs = p->axis[kSideA][i] >= 0 || p->axis[kSideB][i] >= 0;
    if (inputs == (p->axis[kSideC][i] >= 0)) continue;
    fail_invalid("%s: leading index %c (counted from the matrix) has extent %zu in %s, expected %s", kOp, kLabels[i],
                 p->extent[i], inputs ? "the inputs" : c, inputs ? "the same in the output" : "1 as in the inputs");
  }
  p->name = trans_a ? (trans_b ? "tt" : "tn") : trans_b ? "nt" : "nn";
}

}  // namespace

ProductProblem make_matmul_problem(const BNNSLayerParametersBroadcastMatMul* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersBroadcastMatMul", kOp);
  if (layer->a_is_weights && layer->b_is_weights) {
    fail_invalid("%s: a_is_weights and b_is_weights are both true, expected one input at least", kOp);
  }
  if (layer->quadratic && (layer->a_is_weights || layer->b_is_weights)) {
    fail_invalid("%s: quadratic is true and %s too, expected no weights: B is A", kOp,
                 layer->a_is_weights ? "a_is_weights" : "b_is_weights");
  }
  ProductProblem p;
  p.op = kOp;
  p.kind = FilterKind::matmul;
  p.has_b = true;
  p.self = layer->quadratic;
  p.alpha = layer->alpha;
  p.beta = resolve_beta(layer->beta, kOp);
  p.weights = layer->a_is_weights ? kSideA : layer->b_is_weights ? static_cast<int>(kSideB) : -1;
  p.tensor[kSideA] = resolve_product_tensor(layer->iA_desc, kOp, "iA_desc");
  p.tensor[kSideB] = p.self ? p.tensor[kSideA] : resolve_product_tensor(layer->iB_desc, kOp, "iB_desc");
  p.tensor[kSideC] = resolve_product_tensor(layer->o_desc, kOp, "o_desc");
  if (p.weights >= 0) {
    check_data(p.tensor[p.weights].data, p.tensor[p.weights].type, kOp, p.weights == kSideA ? "iA_desc" : "iB_desc",
               ".data");
  }
  bind_matrices(&p, layer->transA, layer->transB, "iA_desc", p.self ? "iA_desc (as B)" : "iB_desc", "o_desc");
  return p;
}

ProductProblem make_direct_matmul_problem(bool trans_a, bool trans_b, float alpha, const BNNSNDArrayDescriptor* a,
                                          const BNNSNDArrayDescriptor* b, const BNNSNDArrayDescriptor* c) {
  ProductProblem p;
  p.op = kOp;
  p.has_b = true;
  p.alpha = alpha;
  const char* names[] = {"inputA", "inputB", "output"};
  const BNNSNDArrayDescriptor* descriptors[] = {a, b, c};
  for (size_t side = 0; side < kSides; ++side) {
    if (!descriptors[side]) fail_invalid("%s: %s is NULL, expected a descriptor", kOp, names[side]);
    p.tensor[side] = resolve_product_tensor(*descriptors[side], kOp, names[side]);
  }
  bind_matrices(&p, trans_a, trans_b, names[0], names[1], names[2]);
  return p;
}

}  // namespace bnns

#include "src/ops/gram/gram.h"

#include "src/core/error.h"

namespace bnns {
namespace {

constexpr const char* kOp = "gram";

// Index numbers; leading indices follow, from the last to the first.
enum : uint8_t { kColumn = 1, kRow = 2, kFirstFeature = 3, kSecondFeature = 4, kLeading = 5 };
constexpr char kLabels[] = "?ijfc12345";

IndexList input_indices(const Tensor& t, const char* field, uint8_t feature) {
  IndexList list;
  list.field = field;
  list.rank = t.rank;
  for (size_t l = 0; l + 3 < t.rank; ++l) list.index[l] = static_cast<uint8_t>(kLeading + t.rank - 4 - l);
  list.index[t.rank - 3] = kColumn;
  list.index[t.rank - 2] = kRow;
  list.index[t.rank - 1] = feature;
  return list;
}

}  // namespace

ProductProblem make_gram_problem(const BNNSLayerParametersGram* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersGram", kOp);
  ProductProblem p;
  p.op = kOp;
  p.kind = FilterKind::gram;
  p.alpha = layer->alpha;
  p.has_b = p.self = true;
  p.tensor[kSideA] = p.tensor[kSideB] = resolve_product_tensor(layer->i_desc, kOp, "i_desc");
  p.tensor[kSideC] = resolve_product_tensor(layer->o_desc, kOp, "o_desc");
  const size_t rank = p.tensor[kSideA].rank, out_rank = p.tensor[kSideC].rank;
  if (rank < 3) fail_invalid("%s: i_desc has rank %zu, expected at least 3: i, j and features", kOp, rank);
  if (out_rank != rank - 1) {
    fail_invalid("%s: o_desc has rank %zu, expected %zu = that of i_desc less one", kOp, out_rank, rank - 1);
  }
  IndexList lists[kSides] = {input_indices(p.tensor[kSideA], "i_desc", kFirstFeature),
                             input_indices(p.tensor[kSideB], "i_desc", kSecondFeature)};
  lists[kSideC].field = "o_desc";
  lists[kSideC].rank = out_rank;
  for (size_t l = 0; l + 2 < out_rank; ++l) {
    lists[kSideC].index[l] = static_cast<uint8_t>(kLeading + out_rank - 3 - l);
  }
  lists[kSideC].index[out_rank - 2] = kFirstFeature;
  lists[kSideC].index[out_rank - 1] = kSecondFeature;
  bind_indices(&p, lists, kLabels, 1u << kFirstFeature | 1u << kSecondFeature);
  p.name = "x_*ijf,x_*ijc->g_*fc";
  return p;
}

}  // namespace bnns

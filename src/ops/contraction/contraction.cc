#include "src/ops/contraction/contraction.h"

#include "src/core/error.h"

namespace bnns {
namespace {

constexpr const char* kOp = "contraction";

// Numbers of letters and of the indices that '*' stands for, in order of appearance; 0 is the batch.
struct IndexNames {
  char label[kMaxIndices + 1] = "?";
  size_t count = 1;

  uint8_t of(char name) {
    for (size_t i = 1; i < count; ++i) {
      if (label[i] == name) return static_cast<uint8_t>(i);
    }
    label[count] = name;
    return static_cast<uint8_t>(count++);
  }
};

IndexList list_of(const ContractionOperand& o, const Tensor& t, const char* field, size_t extras, IndexNames* names) {
  IndexList list;
  list.field = field;
  if (o.letters.empty() && !o.star()) {  // a number
    if (t.count != 1) fail_invalid("%s: %s has %zu elements, expected 1: no index is named", kOp, field, t.count);
    return list;
  }
  if (t.rank != o.letters.size() + (o.star() ? extras : 0)) {
    fail_invalid("%s: %s has rank %zu, expected %zu = %zu letters + %zu for '*'", kOp, field, t.rank,
                 o.letters.size() + (o.star() ? extras : 0), o.letters.size(), o.star() ? extras : 0);
  }
  const auto add_star = [&](bool here) {
    for (size_t i = 0; i < extras && here; ++i) list.index[list.rank++] = names->of(static_cast<char>('1' + i));
  };
  add_star(o.star_first);
  for (const char letter : o.letters) list.index[list.rank++] = names->of(letter);
  add_star(o.star_last);
  return list;
}

}  // namespace

ProductProblem make_contraction_problem(const BNNSLayerParametersTensorContraction* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersTensorContraction", kOp);
  const ContractionString s = parse_contraction(layer->operation);
  ProductProblem p;
  p.op = kOp;
  p.kind = FilterKind::contraction;
  p.alpha = layer->alpha;
  p.beta = resolve_beta(layer->beta, kOp);
  p.has_b = s.has_b;
  p.self = s.has_b && s.operand[kSideA].name == s.operand[kSideB].name;
  p.weights = s.operand[kSideA].name[0] == 'w'              ? static_cast<int>(kSideA)
              : s.has_b && s.operand[kSideB].name[0] == 'w' ? static_cast<int>(kSideB)
                                                            : -1;
  p.tensor[kSideA] = resolve_product_tensor(layer->iA_desc, kOp, "iA_desc");
  if (p.has_b) {
    p.tensor[kSideB] = p.self ? p.tensor[kSideA] : resolve_product_tensor(layer->iB_desc, kOp, "iB_desc");
  }
  p.tensor[kSideC] = resolve_product_tensor(layer->o_desc, kOp, "o_desc");
  if (p.weights >= 0) {
    check_data(p.tensor[p.weights].data, p.tensor[p.weights].type, kOp, p.weights == kSideA ? "iA_desc" : "iB_desc",
               ".data");
  }
  // How many indices '*' stands for: as many as the output has beyond its letters.
  const ContractionOperand& out = s.operand[kSideC];
  const size_t rank = p.tensor[kSideC].rank;
  if (out.star() && rank < out.letters.size()) {
    fail_invalid("%s: o_desc has rank %zu, expected at least %zu letters", kOp, rank, out.letters.size());
  }
  const size_t extras = out.star() ? rank - out.letters.size() : 0;
  IndexNames names;
  IndexList lists[kSides];
  lists[kSideA] = list_of(s.operand[kSideA], p.tensor[kSideA], "iA_desc", extras, &names);
  if (p.has_b) {
    lists[kSideB] = list_of(s.operand[kSideB], p.tensor[kSideB], p.self ? "iA_desc (as B)" : "iB_desc", extras, &names);
  }
  lists[kSideC] = list_of(out, p.tensor[kSideC], "o_desc", extras, &names);
  bind_indices(&p, lists, names.label, 0);
  for (const char* c = layer->operation; *c; ++c) {
    if (*c > ' ') p.name += *c;
  }
  return p;
}

}  // namespace bnns

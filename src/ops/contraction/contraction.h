// Tensor contraction: out = beta out + alpha * sum of the operands' products over the indices that out does not have,
// written as a string: "a_ij, b_jk -> out_ik". The layer is a ProductFilter (src/engine/product).
//
//   string   = operand [ "," operand ] "->" operand
//   operand  = name "_" [ "*" ] letters [ "*" ]         blanks may stand between any two tokens and between letters
//   name     = letters and digits; a left operand whose name begins with w is trained; equal left names are one tensor
//   letters  = one letter per logical index, no letter twice
//   "*"      = all further indices, at the same end in every operand that has it; never summed
#pragma once

#include <string>

#include "src/engine/product/product.h"

namespace bnns {

struct ContractionOperand {
  std::string name, letters;
  bool star_first = false, star_last = false;
  size_t position = 0;  // of the name's first character in the string
  size_t letter_position[2 * kMaxRank] = {};

  bool star() const { return star_first || star_last; }
};

struct ContractionString {
  ContractionOperand operand[kSides];
  bool has_b = false;
};

// Refuses a string that is not of the form above; the reason names the character.
ContractionString parse_contraction(const char* text);

// Every check of BNNSLayerParametersTensorContraction.
ProductProblem make_contraction_problem(const BNNSLayerParametersTensorContraction* layer);

}  // namespace bnns

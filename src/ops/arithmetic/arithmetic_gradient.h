// The gradient of a checked backward call: what arithmetic_backward.cc hands to arithmetic_gradient.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/memory.h"
#include "src/ops/arithmetic/arithmetic.h"
#include "src/ops/arithmetic/arithmetic_operand.h"

namespace bnns::arithmetic {

// A buffer that receives a gradient. Inputs that are one tensor have one buffer, which receives the sum of their
// gradients.
struct GradientGroup {
  uint8_t members = 0;      // bit k: input k
  Tensor delta;             // shape and axis order of the input
  bool batched = false;     // a Sample; else the samples share it and their gradients are summed
  size_t batch_stride = 0;  // of a Sample

  size_t first_member() const { return members & 1 ? 0 : members & 2 ? 1 : 2; }
  bool is_single() const { return (members & (members - 1)) == 0; }
};

struct GradientPlan {
  enum class Undo { nothing, from_output, from_output_rows, from_input };  // how g comes from dy

  explicit GradientPlan(const ArithmeticProblem& p, size_t batch)
      : problem(p), space(p.out, batch, p.activation.is_rowwise()) {}

  const ArithmeticProblem& problem;
  Space space;
  Undo undo = Undo::nothing;
  uint8_t reads = 0;       // bit k: input k is read
  bool recompute = false;  // f(x) is computed again: it is needed and not in `out`
  bool out_is_y = false;   // f(x) is needed and is what `out` holds
  Operand x[kArithmeticInputs], out, dy;
  size_t cut = SIZE_MAX;  // no block crosses a multiple of it: run_gradients sets it
  GradientGroup groups[kArithmeticInputs];
  size_t group_count = 0;
};

// Computes and writes all groups. Allocates before the first write; throws Error(out_of_memory) if that fails.
void run_gradients(GradientPlan& plan, const Options& options, ScratchShelf& shelf);

// Zeros: the gradient of an empty batch.
void clear_gradient(const Tensor& delta);

}  // namespace bnns::arithmetic

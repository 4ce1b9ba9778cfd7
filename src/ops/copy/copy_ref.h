// What a copy and a transpose mean, element by element, on the test's own tensors.
#pragma once

#include <utility>

#include "tests/support/layouts.h"

namespace bnns::ref {

using testing::Coordinates;

// Logical indices of a layout as coordinates in size order: a row-major matrix is indexed (row, column) but has
// {columns, rows} in size; IOHrWr weights have {.., output, input} in size and are indexed (.., input, output).
inline Coordinates size_order(BNNSDataLayout layout, Coordinates logical) {
  if (layout == BNNSDataLayoutRowMajorMatrix) std::swap(logical[0], logical[1]);
  if (layout == BNNSDataLayoutConvolutionWeightsIOHrWr) std::swap(logical[2], logical[3]);
  return logical;
}

// Calls f(coordinates in dest, coordinates in src), both in size order, for every element of a copy.
template <class F>
void for_each_copied(BNNSDataLayout dest, BNNSDataLayout src, const std::vector<size_t>& src_size, F&& f) {
  const std::vector<size_t> logical = size_order(src, src_size);
  testing::for_each_coordinate(logical, [&](const Coordinates& at) { f(size_order(dest, at), size_order(src, at)); });
}

}  // namespace bnns::ref

// Gather and scatter by coordinates: f(coordinates in data, coordinates in values) for every element that moves, in the
// order of the points. index(coordinates in indices) gives an index; all coordinates are in size order.
#pragma once

#include "tests/support/layouts.h"

namespace bnns::ref {

using testing::Coordinates;

// values has the sizes of data but for the axis; indices is a vector, or has the sizes of values.
template <class Index, class F>
void for_each_gathered(size_t axis, bool full, const std::vector<size_t>& values, Index&& index, F&& f) {
  testing::for_each_coordinate(values, [&](const Coordinates& at) {
    Coordinates from = at;
    from[axis] = index(full ? at : Coordinates{at[axis]});
    f(from, at);
  });
}

// Logical order of a row-major matrix is the reverse of its size order; all other layouts here have one order.
inline Coordinates logical(BNNSDataLayout layout, Coordinates at) {
  if (layout == BNNSDataLayoutRowMajorMatrix) std::swap(at[0], at[1]);
  return at;
}

// The last logical index of indices holds index vectors of L components into the first L logical indices of data.
template <class Index, class F>
void for_each_gathered_nd(BNNSDataLayout data_layout, const std::vector<size_t>& data, BNNSDataLayout index_layout,
                          const std::vector<size_t>& indices, BNNSDataLayout values_layout, Index&& index, F&& f) {
  const Coordinates d = logical(data_layout, data), i = logical(index_layout, indices);
  const size_t L = i.back(), lead = i.size() - 1;
  Coordinates points(i.begin(), i.begin() + long(lead)), rest(d.begin() + long(L), d.end());
  if (points.empty()) points = {1};
  const bool no_points = lead == 0, no_rest = rest.empty();
  if (no_rest) rest = {1};
  testing::for_each_coordinate(points, [&](const Coordinates& p) {
    testing::for_each_coordinate(rest, [&](const Coordinates& s) {
      Coordinates from;
      for (size_t l = 0; l < L; ++l) {
        Coordinates at = no_points ? Coordinates{} : p;
        at.push_back(l);
        from.push_back(index(logical(index_layout, at)));
      }
      Coordinates to = no_points ? Coordinates{} : p;
      if (!no_rest) from.insert(from.end(), s.begin(), s.end()), to.insert(to.end(), s.begin(), s.end());
      if (to.empty()) to = {0};
      f(logical(data_layout, from), logical(values_layout, to));
    });
  });
}

}  // namespace bnns::ref

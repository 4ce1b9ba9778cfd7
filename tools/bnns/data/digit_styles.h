// How people write each digit, as strokes through control points in the unit box (x to the right, y down).
#pragma once

#include <array>
#include <vector>

#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

struct Point {
  float x, y;
};

enum class Pen { curve, line };  // a smooth bend through the points, or straight from one to the next

struct Stroke {
  Pen pen;
  std::vector<Point> points;
};

using Style = std::vector<Stroke>;

// The styles of each class; at least two of them.
const std::array<std::vector<Style>, kClasses>& digit_styles();

}  // namespace bnns::tool

// What a band keeps.
#pragma once

namespace bnns::ref {

inline bool in_band(long row, long column, long lower, long upper) {
  if (lower >= 0 && row - column > lower) return false;
  if (upper >= 0 && column - row > upper) return false;
  return true;
}

}  // namespace bnns::ref

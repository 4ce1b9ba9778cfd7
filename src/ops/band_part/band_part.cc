// The column is the axis with the smallest stride, the row the next one; all other axes number the matrices. A row is
// zeros, a copied stretch, zeros.

#include "src/ops/band_part/band_part.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

constexpr const char* kOp = "band_part";
constexpr size_t kTaskBytes = 128 * 1024;

template <class T>
void run(const BandPartProblem& p, size_t n_threads) {
  const Tensor &x = p.x, &y = p.y;
  const size_t column_axis = y.axis[0], row_axis = y.axis[1];
  const size_t rows = y.count / y.size[column_axis], from = x.stride[column_axis], to = y.stride[column_axis];
  const ptrdiff_t columns = static_cast<ptrdiff_t>(y.size[column_axis]);
  const size_t group = std::max<size_t>(1, kTaskBytes / (y.size[column_axis] * sizeof(T))), tasks = div_up(rows, group);
  parallel_for(tasks, threads_for(n_threads, tasks, y.count * sizeof(T) / 4), [&](size_t task, size_t) {
    for (size_t r = task * group; r < std::min(rows, (task + 1) * group); ++r) {
      const T* source = static_cast<const T*>(x.data);
      T* target = static_cast<T*>(y.data);
      for (size_t j = 1, rest = r; j < y.rank; rest /= y.size[y.axis[j]], ++j) {
        source += rest % y.size[y.axis[j]] * x.stride[y.axis[j]];
        target += rest % y.size[y.axis[j]] * y.stride[y.axis[j]];
      }
      const ptrdiff_t row = static_cast<ptrdiff_t>(r % y.size[row_axis]);
      const ptrdiff_t begin = p.lower < 0 ? 0 : std::clamp<ptrdiff_t>(row - p.lower, 0, columns);
      const ptrdiff_t end = p.upper < 0 ? columns : std::clamp<ptrdiff_t>(row + p.upper + 1, begin, columns);
      const size_t first = static_cast<size_t>(begin), last = static_cast<size_t>(end);
      if (from == 1 && to == 1) {
        std::fill_n(target, first, T{0});
        if (source != target) std::memcpy(target + first, source + first, (last - first) * sizeof(T));
        std::fill(target + last, target + columns, T{0});
      } else {
        for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
          target[c * to] = c >= first && c < last ? source[c * from] : T{0};
        }
      }
    }
  });
}

}  // namespace

BandPartProblem make_band_part_problem(int lower, int upper, const BNNSNDArrayDescriptor* input,
                                       const BNNSNDArrayDescriptor* output) {
  BandPartProblem p;
  p.x = resolve_with_data(input, kOp, "input");
  p.y = resolve_with_data(output, kOp, "output");
  check_plain(p.x, kOp, "input");
  check_plain(p.y, kOp, "output");
  check_distinct(p.y, kOp, "output");
  if (p.x.rank < 2) fail_invalid("%s: input has rank %zu, expected at least 2", kOp, p.x.rank);
  if (p.y.layout != p.x.layout || !std::equal(p.x.size, p.x.size + p.x.rank, p.y.size)) {
    fail_invalid("%s: output is %s of layout %s, expected the sizes and layout of input, %s of layout %s", kOp,
                 p.y.text().c_str(), enum_text(p.y.layout).text, p.x.text().c_str(), enum_text(p.x.layout).text);
  }
  if (p.y.type != p.x.type || p.y.scale != p.x.scale || p.y.bias != p.x.bias) {
    fail_unsupported("%s: output is %s, expected the type, scale and bias of input, which is %s", kOp,
                     type_name(p.y.type), type_name(p.x.type));
  }
  check_in_place_or_apart({p.x, p.x.data, 0, "input"}, {p.y, p.y.data, 0, "output"}, 1, kOp);
  p.lower = lower;
  p.upper = upper;
  return p;
}

std::string BandPartProblem::text() const {
  return std::string(kOp) + " " + x.text() + " lower " + std::to_string(lower) + " upper " + std::to_string(upper);
}

void band_part(const BandPartProblem& problem, size_t n_threads) {
  switch (type_bytes(problem.x.type)) {
    case 1:
      return run<uint8_t>(problem, n_threads);
    case 2:
      return run<uint16_t>(problem, n_threads);
    case 4:
      return run<uint32_t>(problem, n_threads);
    default:
      return run<uint64_t>(problem, n_threads);
  }
}

}  // namespace bnns

#include "src/tensor/distinct.h"

#include <algorithm>
#include <numeric>

#include "src/core/error.h"

namespace bnns {
namespace {

__extension__ typedef __int128 Wide;  // differences of addresses that are not there may leave 64 bits

// Steps of the search below. Strides of real tensors need none: each steps over what the smaller ones cover.
constexpr size_t kMaxSteps = 100000;

// Two elements share an address where steps d, not all 0, |d[k]| <= last[k], give sum d[k] stride[k] = 0.
struct Search {
  size_t rank = 0;
  size_t axis[kMaxRank];                        // of the tensor; the axes longer than 1 by rising stride
  Wide stride[kMaxRank], last[kMaxRank];        // last: the largest coordinate
  Wide reach[kMaxRank + 1], gcd[kMaxRank + 1];  // of the axes before: the largest offset, the divisor of all offsets
  Wide step[kMaxRank] = {};
  size_t steps = 0;

  explicit Search(const Tensor& t) {
    for (size_t k = 0; k < t.rank; ++k) {
      if (t.size[k] > 1) axis[rank++] = k;
    }
    std::sort(axis, axis + rank, [&](size_t a, size_t b) { return t.stride[a] < t.stride[b]; });
    reach[0] = gcd[0] = 0;
    for (size_t j = 0; j < rank; ++j) {
      stride[j] = static_cast<Wide>(t.stride[axis[j]]);
      last[j] = static_cast<Wide>(t.size[axis[j]] - 1);
      reach[j + 1] = reach[j] + stride[j] * last[j];
      gcd[j + 1] = static_cast<Wide>(std::gcd(static_cast<uint64_t>(gcd[j]), static_cast<uint64_t>(t.stride[axis[j]])));
    }
  }

  // Every stride is larger than what the smaller ones cover.
  bool is_nested() const {
    for (size_t j = 1; j < rank; ++j) {
      if (stride[j] <= reach[j]) return false;
    }
    return true;
  }

  // Whether steps of the first n axes give `sum`.
  bool gives(size_t n, Wide sum) {
    if (sum > reach[n] || sum < -reach[n]) return false;
    if (n == 0 || sum == 0) {
      std::fill_n(step, n, Wide{0});
      return true;
    }
    if (sum % gcd[n] != 0) return false;
    // The rest, sum - d stride, must be within what the axes before reach.
    const size_t k = n - 1;
    const auto divide_up = [](Wide a, Wide b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); };
    const Wide first = std::max(-last[k], divide_up(sum - reach[k], stride[k]));
    const Wide end = std::min(last[k], -divide_up(-(sum + reach[k]), stride[k]));
    for (Wide d = first; d <= end; ++d) {
      if (++steps > kMaxSteps) return false;
      if (!gives(k, sum - d * stride[k])) continue;
      step[k] = d;
      return true;
    }
    return false;
  }

  // Two elements that share an address: the step of the slowest axis on which they differ is positive.
  bool finds_two() {
    for (size_t k = 1; k < rank; ++k) {
      for (Wide d = 1; d <= std::min(last[k], reach[k] / stride[k]); ++d) {
        if (++steps > kMaxSteps) return false;
        if (!gives(k, -d * stride[k])) continue;
        step[k] = d;
        return true;
      }
    }
    return false;
  }

  // The element at max(0, sign step) as "(0, 1, 2)".
  std::string element(const Tensor& t, int sign) const {
    size_t at[kMaxRank] = {};
    for (size_t j = 0; j < rank; ++j) at[axis[j]] = static_cast<size_t>(std::max<Wide>(0, sign * step[j]));
    std::string result = "(";
    for (size_t k = 0; k < t.rank; ++k) result += (k ? ", " : "") + std::to_string(at[k]);
    return result + ")";
  }
};

}  // namespace

void check_distinct(const Tensor& t, const char* op, const char* field) {
  if (t.dense || t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) return;
  Search search(t);
  if (search.is_nested()) return;
  if (search.finds_two()) {
    fail_invalid("%s: %s is %s: elements %s and %s share an address, expected one of its own for each that is written",
                 op, field, t.text().c_str(), search.element(t, 1).c_str(), search.element(t, -1).c_str());
  }
  if (search.steps > kMaxSteps) {
    fail_unsupported(
        "%s: %s is %s with strides of which it is not known whether elements share addresses, expected "
        "each stride to step over what the smaller ones cover",
        op, field, t.text().c_str());
  }
}

}  // namespace bnns

// IntegerLinearSaturate and its per-channel form: y = saturate((iscale x + ioffset) >> ishift) on integers as they are
// stored, and the exact conversion between integer types (Identity without a bias: scale 1, offset 0, shift 0).
//
// Up to 32 bits of x the sum fits in 64 bits; for 64-bit types it is taken in 128. The shift is arithmetic.

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "src/ops/activation/activation_filter.h"
#include "src/ops/activation/activation_tasks.h"
#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

__extension__ typedef __int128 Int128;

template <class T, class Wide>
void load(const BatchElements& x, size_t first, size_t n, Wide* to) {
  const char* base = static_cast<const char*>(x.base());
  for (size_t k = 0; k < n; ++k) {
    T value;
    std::memcpy(&value, base + (x.contiguous() ? first + k : x.offset(first + k)) * sizeof(T), sizeof(T));
    to[k] = value;
  }
}

template <class T, class Wide>
void store(const BatchElements& y, size_t first, size_t n, const Wide* from) {
  constexpr Wide low = std::numeric_limits<T>::min(), high = static_cast<Wide>(std::numeric_limits<T>::max());
  char* base = static_cast<char*>(y.base());
  for (size_t k = 0; k < n; ++k) {
    const T value = static_cast<T>(std::clamp(from[k], low, high));
    std::memcpy(base + (y.contiguous() ? first + k : y.offset(first + k)) * sizeof(T), &value, sizeof(T));
  }
}

template <class Wide>
void run(const ActivationProblem& p, const BatchElements& x, const BatchElements& y, size_t first, size_t end) {
  constexpr size_t kRun = 256;
  Wide values[kRun];
  const size_t count = p.i.count, plane = p.channels ? count / p.channels : count;
  while (first < end) {
    // A run stays within one channel, so its three numbers are constants of the loop.
    const size_t index = first % count, channel = index / plane;
    const size_t n = p.iscale_per_channel ? std::min({kRun, end - first, (channel + 1) * plane - index})
                                          : std::min(kRun, end - first);
    const Wide scale = p.iscale_per_channel ? p.iscale_per_channel[channel] : p.iscale;
    const Wide offset = p.ioffset_per_channel ? p.ioffset_per_channel[channel] : p.ioffset;
    const int32_t shift = p.ishift_per_channel ? p.ishift_per_channel[channel] : p.ishift;
    with_integer(x.type(), [&](auto t) { load<decltype(t)>(x, first, n, values); });
    for (size_t k = 0; k < n; ++k) values[k] = (scale * values[k] + offset) >> shift;
    with_integer(y.type(), [&](auto t) { store<decltype(t)>(y, first, n, values); });
    first += n;
  }
}

}  // namespace

void ActivationFilter::forward_integer(size_t batch, const BatchOperand& x, const BatchOperand& y) const {
  const BatchElements from = x.elements(batch), to = y.elements(batch);
  const size_t total = batch * problem_.i.count, tasks = div_up(total, kActivationTask);
  const bool wide = type_bytes(from.type()) == 8 || type_bytes(to.type()) == 8;
  const size_t bytes = total * (type_bytes(from.type()) + type_bytes(to.type()));
  parallel_for(tasks, threads_for(options_.n_threads, tasks, bytes), [&](size_t task, size_t) {
    const size_t first = task * kActivationTask, end = std::min(total, first + kActivationTask);
    wide ? run<Int128>(problem_, from, to, first, end) : run<int64_t>(problem_, from, to, first, end);
  });
}

}  // namespace bnns

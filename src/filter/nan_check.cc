// The search for NaN and infinity in results: see nan_check.h.

#include "src/filter/nan_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>

#include "src/core/log.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

struct Finding {
  size_t sample, element;  // in memory order
  float value;
};

std::optional<Finding> first_not_finite(const Tensor& t, const void* data, size_t batch, size_t stride) {
  // Packed weights have no stride per axis, and integers are finite.
  if (!data || !is_float(t.type) || t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) return {};
  if (stride == 0) stride = t.sample_stride();
  const Elements elements(t);
  float buffer[kBlock];
  for (size_t sample = 0; sample < batch; ++sample) {
    const void* base = element_at(data, t.type, sample * stride);
    for (size_t first = 0; first < t.count; first += kBlock) {
      const size_t n = std::min(kBlock, t.count - first);
      const float* values = elements.read(base, first, n, buffer);
      for (size_t i = 0; i < n; ++i) {
        if (!std::isfinite(values[i])) return Finding{sample, first + i, values[i]};
      }
    }
  }
  return {};
}

void say(const std::string& problem, const char* pass, const char* field, const Tensor& t, size_t batch,
         const Finding& finding) {
  size_t position[kMaxRank] = {}, rest = finding.element;
  for (size_t j = 0; j < t.rank; ++j) {
    const size_t k = t.axis[j];
    position[k] = rest % t.size[k];
    rest /= t.size[k];
  }
  std::string at = batch > 1 ? "sample " + std::to_string(finding.sample) + ", " : "";
  at += "position [";
  for (size_t k = 0; k < t.rank; ++k) at.append(k ? ", " : "").append(std::to_string(position[k]));
  char line[512];
  std::snprintf(line, sizeof line, "%s: %s%s%s is %g at %s] of %s", problem.c_str(), pass, *pass ? ": " : "", field,
                static_cast<double>(finding.value), at.c_str(), t.text().c_str());
  log_finding(line);
}

// Problems without a filter that were named. A table that is full says nothing more.
bool first_time(const std::string& problem, const char* field) {
  static std::atomic<uint64_t> known[64];
  const uint64_t key = std::hash<std::string>()(problem + field) | 1;
  for (std::atomic<uint64_t>& slot : known) {
    uint64_t there = 0;
    if (slot.compare_exchange_strong(there, key, std::memory_order_relaxed)) return true;
    if (there == key) return false;
  }
  return false;
}

// The call itself was carried out, so nothing that goes wrong here may fail it: memory, or a descriptor whose meaning
// only the operator knows.
template <class Body>
void quietly(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
  } catch (const std::exception&) {
  }
}

}  // namespace

void check_written(const Filter& filter, Note pass, const char* field, const Tensor& sample, const void* data,
                   size_t batch, size_t stride) noexcept {
  quietly([&] {
    const std::optional<Finding> finding = first_not_finite(sample, data, batch, stride);
    if (!finding || !filter.first_time(pass)) return;
    say(filter.text(), pass == Note::forward_nan ? "forward" : "backward", field, sample, batch, *finding);
  });
}

void check_written(const std::string& problem, const char* field, const Tensor& sample, const void* data, size_t batch,
                   size_t stride) noexcept {
  quietly([&] {
    const std::optional<Finding> finding = first_not_finite(sample, data, batch, stride);
    if (finding && first_time(problem, field)) say(problem, "", field, sample, batch, *finding);
  });
}

void check_forward_result(const Filter& filter, size_t batch, const void* out, size_t out_stride) noexcept {
  if (const Tensor* y = filter.result()) check_written(filter, Note::forward_nan, "out", *y, out, batch, out_stride);
}

void check_gradient(const Filter& filter, const BNNSNDArrayDescriptor* delta, const char* field, size_t batch,
                    size_t stride) noexcept {
  if (!delta || is_absent(*delta)) return;
  quietly([&] {
    check_written(filter, Note::backward_nan, field, resolve(*delta, "nan", field), delta->data, batch, stride);
  });
}

void check_gradients(const Filter& filter, const BackwardCall& call) noexcept {
  check_gradient(filter, call.in_delta, "in_delta", call.batch, call.in_delta_stride);
  check_gradient(filter, call.weights_delta, "weights_delta");
  check_gradient(filter, call.bias_delta, "bias_delta");
}

}  // namespace bnns

// A backward pass, and the gradients of gamma and beta that repeat along normalised axes: sums over those axes of the
// gradients of all elements, in double, in the order of the elements.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/log.h"
#include "src/ops/normalization/backward/pass.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

bool repeats(const Tensor* t) {
  return t && t->span < t->count;
}

// to = or += the sums of `values`, one for each element of the image that `to` is spread over.
void add_up(const float* values, const Tensor& to, double* sums) {
  std::fill_n(sums, to.span, 0.0);
  const auto for_each = [&](bool once, auto&& body) {
    const auto extent = [&](size_t k) { return once && to.stride[k] == 0 ? 1 : to.size[k]; };
    for (size_t c = 0; c < extent(2); ++c) {
      for (size_t y = 0; y < extent(1); ++y) {
        for (size_t x = 0; x < extent(0); ++x) body(c * to.stride[2] + y * to.stride[1] + x * to.stride[0]);
      }
    }
  };
  for_each(false, [&](size_t offset) { sums[offset] += static_cast<double>(*values++); });
  const Elements one = row_elements(to, 1, 1);
  for_each(true, [&](size_t offset) {
    void* place = element_at(to.data, to.type, offset);
    const float sum = static_cast<float>(sums[offset]);
    if (to.accumulate) return one.accumulate(place, 0, 1, &sum);
    float buffer, *target = one.target(place, 0, &buffer);
    *target = sum;
    one.write(place, 0, 1, target);
  });
}

}  // namespace

void normalization_backward(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                            const NormalizationState& state, const NormalizationBackward& call, ScratchShelf& scratch,
                            size_t n_threads) {
  if (recording())
    count_work(product_of(
        call.batch, problem.y.span_bytes() + (call.dx ? problem.x.span_bytes() : 0) + problem.count() * sizeof(float)));
  if (!repeats(call.dbeta) && !repeats(call.dgamma)) {
    return BackwardPass(problem, parameters, state, call, scratch, n_threads).run();
  }
  const size_t n = problem.affine_count();
  const ScratchShelf::Lease lease(scratch, checked_mul(n, 2 * sizeof(float) + sizeof(double), "layer normalization"));
  double* const sums = lease.as<double>();
  float* values = reinterpret_cast<float*>(sums + n);
  NormalizationBackward whole = call;
  Tensor all[2];
  const Tensor** wanted[] = {&whole.dbeta, &whole.dgamma};
  for (size_t i = 0; i < 2; ++i, values += n) {
    if (!repeats(*wanted[i])) continue;
    all[i] = vector_tensor(n, values);
    *wanted[i] = &all[i];
  }
  BackwardPass(problem, parameters, state, whole, scratch, n_threads).run();
  if (repeats(call.dbeta)) add_up(static_cast<const float*>(all[0].data), *call.dbeta, sums);
  if (repeats(call.dgamma)) add_up(static_cast<const float*>(all[1].data), *call.dgamma, sums);
}

}  // namespace bnns

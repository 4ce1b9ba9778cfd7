// BNNSFilterCreateLayerBroadcastMatMul, BNNSMatMulWorkspaceSize, BNNSMatMul, BNNSDirectApplyBroadcastMatMul.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "src/core/checked.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/filter/nan_check.h"
#include "src/ops/matmul/matmul.h"

namespace bnns {
namespace {

using Array = BNNSNDArrayDescriptor;

struct DirectMatmul {
  ProductProblem problem;
  Options options;
  Product product;

  DirectMatmul(bool trans_a, bool trans_b, float alpha, const Array* a, const Array* b, const Array* c,
               const BNNSFilterParameters* parameters)
      : problem(make_direct_matmul_problem(trans_a, trans_b, alpha, a, b, c)),
        options(read_options(parameters, "matmul")) {
    product.indices = problem.indices;
    std::copy(problem.extent, problem.extent + problem.indices, product.extent);
    const auto side = [&](ProductSide s) { return indexed(problem, s, problem.tensor[s], problem.tensor[s].data, 0); };
    product.a = side(kSideA);
    product.b = side(kSideB);
    product.c = side(kSideC);
    product.alpha = problem.alpha;
  }
  DirectMatmul(const DirectMatmul&) = delete;  // product points into problem

  size_t threads() const { return options.n_threads ? options.n_threads : default_threads(); }
  // What BNNSMatMulWorkspaceSize promises. The default number of threads may change between the two calls, and they may
  // be given different filter parameters, so the size is that of the first default seen, whatever n_threads is.
  size_t promised_bytes() const {
    static std::atomic<size_t> first_default{0};  // and no guard that a fork could leave taken
    size_t threads = first_default.load(std::memory_order_relaxed);
    const size_t now = default_threads();
    if (threads == 0 && first_default.compare_exchange_strong(threads, now, std::memory_order_relaxed)) threads = now;
    const size_t bytes = product_scratch_bytes(product, threads);
    return checked_add(bytes, kAlignment, "workspace");  // the caller's pointer may have any alignment
  }

  void run(void* workspace) const {
    const CallTimer timer("apply");
    multiply(workspace);
    if (timer.active()) timer.finish(problem.text(), 1, "matmul");
    if (nan_check_wanted())
      check_written(problem.text(), "output", problem.tensor[kSideC], problem.tensor[kSideC].data);
  }

 private:
  void multiply(void* workspace) const {
    static constexpr const char* kNames[] = {"inputA", "inputB", "output"};
    const Tensor* t = problem.tensor;
    for (size_t side = 0; side < kSides; ++side)
      check_data(t[side].data, t[side].type, "matmul", kNames[side], ".data");
    for (const ProductSide side : {kSideA, kSideB}) {
      check_disjoint(t[kSideC].data, t[kSideC].span_bytes(), "output", t[side].data, t[side].span_bytes(), kNames[side],
                     "matmul");
    }
    const size_t bytes = product_scratch_bytes(product, threads());
    const uintptr_t given = reinterpret_cast<uintptr_t>(workspace);
    if (workspace && bytes + kAlignment <= promised_bytes()) {
      return product_run(product, reinterpret_cast<void*>((given + kAlignment - 1) / kAlignment * kAlignment),
                         threads());
    }
    const Buffer scratch(options, bytes, "the workspace of the product");
    product_run(product, scratch.data(), threads());
  }
};

}  // namespace
}  // namespace bnns

BNNSFilter BNNSFilterCreateLayerBroadcastMatMul(const BNNSLayerParametersBroadcastMatMul* layer,
                                                const BNNSFilterParameters* parameters) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerBroadcastMatMul", BNNSFilter{}, [&] {
    return bnns::make_filter<bnns::ProductFilter>(bnns::read_options(parameters, "matmul"),
                                                  bnns::make_matmul_problem(layer));
  });
}

ssize_t BNNSMatMulWorkspaceSize(bool trans_a, bool trans_b, float alpha, const BNNSNDArrayDescriptor* a,
                                const BNNSNDArrayDescriptor* b, const BNNSNDArrayDescriptor* c,
                                const BNNSFilterParameters* parameters) noexcept {
  return bnns::guarded("BNNSMatMulWorkspaceSize", ssize_t{-1}, [&] {
    return static_cast<ssize_t>(bnns::DirectMatmul(trans_a, trans_b, alpha, a, b, c, parameters).promised_bytes());
  });
}

int BNNSMatMul(bool trans_a, bool trans_b, float alpha, const BNNSNDArrayDescriptor* a, const BNNSNDArrayDescriptor* b,
               const BNNSNDArrayDescriptor* c, void* workspace, const BNNSFilterParameters* parameters) noexcept {
  return bnns::guarded_status("BNNSMatMul",
                              [&] { bnns::DirectMatmul(trans_a, trans_b, alpha, a, b, c, parameters).run(workspace); });
}

void BNNSDirectApplyBroadcastMatMul(bool trans_a, bool trans_b, float alpha, const BNNSNDArrayDescriptor* a,
                                    const BNNSNDArrayDescriptor* b, const BNNSNDArrayDescriptor* c,
                                    const BNNSFilterParameters* parameters) noexcept {
  bnns::guarded_status("BNNSDirectApplyBroadcastMatMul",
                       [&] { bnns::DirectMatmul(trans_a, trans_b, alpha, a, b, c, parameters).run(nullptr); });
}

// Entry of the GEMM core: brings the problem into one form and asks the table (implementations.cc).
#include "src/gemm/gemm.h"

#include <algorithm>
#include <cstdint>

#include "src/gemm/implementations.h"

namespace bnns {
namespace detail {

bool GemmCall::prepare(Range rows, Range columns) const {
  switch (init) {
    case GemmInit::overwrite:
      return false;
    case GemmInit::accumulate:
      return true;
    case GemmInit::bias_rows:
      for (size_t i = rows.begin; i < rows.end; ++i) {
        std::fill(c + i * c_stride + columns.begin, c + i * c_stride + columns.end, bias[i]);
      }
      return true;
    case GemmInit::bias_columns:
      for (size_t i = rows.begin; i < rows.end; ++i) {
        std::copy(bias + columns.begin, bias + columns.end, c + i * c_stride + columns.begin);
      }
      return true;
  }
  return false;
}

void GemmCall::finish(Range rows, Range columns) const {
  if (!epilogue.run) return;
  exchanged ? epilogue.run(epilogue.context, columns, rows) : epilogue.run(epilogue.context, rows, columns);
}

bool can_stream(const GemmCall& call) noexcept {
  return call.init == GemmInit::overwrite && !call.epilogue.run && call.m * call.n >= kStreamSize &&
         reinterpret_cast<uintptr_t>(call.c) % 64 == 0 && call.c_stride * sizeof(float) % 64 == 0;
}

namespace {

GemmCall make_call(const GemmProblem& p, const Lens& a, const Lens& b, const GemmOutput& c, const float* bias,
                   const GemmEpilogue& epilogue, size_t threads) {
  threads = std::max<size_t>(1, threads);
  if (p.n <= 1 || c.column_stride == 1)
    return {p.m,  p.n,      p.k,   p.init,  a,     b,      c.data,           c.row_stride,
            bias, epilogue, false, threads, isa(), c.bf16, c.bf16_row_stride};
  const GemmInit init = p.init == GemmInit::bias_rows      ? GemmInit::bias_columns
                        : p.init == GemmInit::bias_columns ? GemmInit::bias_rows
                                                           : p.init;
  return {p.n, p.m, p.k, init, b, a, c.data, c.column_stride, bias, epilogue, true, threads, isa()};
}

// k = 0: C is init alone.
void run_empty_sum(const GemmCall& call) {
  const Range rows{0, call.m}, columns{0, call.n};
  if (!call.prepare(rows, columns)) {
    for (size_t i = 0; i < call.m; ++i) std::fill_n(call.c + i * call.c_stride, call.n, 0.0f);
  }
  call.finish(rows, columns);
}

// In a frame of its own: other products need not step over the scratch.
[[gnu::noinline]] void run_small(const GemmCall& call) {
  alignas(64) float memory[kSmallFloats];
  choose(kGemmImplementations, call).run(call, memory);
}

}  // namespace
}  // namespace detail

bool gemm_is_small(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c) noexcept {
  const GemmEpilogue none;
  return detail::is_small(detail::make_call(problem, a, b, c, nullptr, none, 1));
}

size_t gemm_workspace_bytes(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c,
                            size_t threads) noexcept {
  if (problem.m == 0 || problem.n == 0 || problem.k == 0) return 0;
  const GemmEpilogue none;
  detail::GemmCall call = detail::make_call(problem, a, b, c, nullptr, none, threads);
  if (detail::is_small(call)) return 0;
  const detail::GemmImplementation& now = find(detail::kGemmImplementations, call);
  if (!now.by_isa) return now.workspace_floats(call) * sizeof(float);
  // Enough for every instruction set of the machine: the cap may change between this question and the call.
  size_t floats = 0;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) {
    call.isa = static_cast<Isa>(i);
    floats = std::max(floats, find(detail::kGemmImplementations, call).workspace_floats(call));
  }
  return floats * sizeof(float);
}

const char* gemm_implementation(const GemmProblem& problem, const Lens& a, const Lens& b,
                                const GemmOutput& c) noexcept {
  const GemmEpilogue none;
  return find(detail::kGemmImplementations, detail::make_call(problem, a, b, c, nullptr, none, 1)).name;
}

void gemm(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c, const float* bias,
          const GemmEpilogue& epilogue, void* workspace, size_t threads) noexcept {
  if (problem.m == 0 || problem.n == 0) return;
  const detail::GemmCall call = detail::make_call(problem, a, b, c, bias, epilogue, threads);
  if (call.k == 0) return detail::run_empty_sum(call);
  if (detail::is_small(call)) return detail::run_small(call);
  choose(detail::kGemmImplementations, call).run(call, static_cast<float*>(workspace));
}

}  // namespace bnns

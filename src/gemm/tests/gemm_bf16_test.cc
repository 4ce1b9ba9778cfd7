// Products of two bf16 operands: the pair kernels of AVX-512 BF16 and AMX (bf16.h), and whatever the driver does where
// a machine has neither. Every layout, odd depths, turned and sliced products, results in f32 and bf16, guard pages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "src/core/half.h"
#include "src/gemm/bf16.h"
#include "src/gemm/gemm.h"
#include "src/gemm/gemm_ref.h"
#include "src/simd/tests/simd_testing.h"

namespace bnns {
namespace {

using test::GuardedBuffer;

template <class Body>
void for_each_isa(Body body) {
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) {
    set_max_isa(static_cast<Isa>(i));
    SCOPED_TRACE(isa_name(static_cast<Isa>(i)));
    body();
  }
  set_max_isa(best_isa());
}

struct Case {
  size_t m, n, k;
  bool a_rows = false, b_rows = false;  // rows contiguous, else depth
  GemmInit init = GemmInit::overwrite;
  bool bf16_result = false;
  size_t pad = 0;
  bool at_end = true;

  std::string text() const {
    return "m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k) + (a_rows ? " a:rows" : "") +
           (b_rows ? " b:rows" : "") + " init" + std::to_string(int(init)) + (bf16_result ? " bf16" : "") + " pad" +
           std::to_string(pad);
  }
};

// Numbers that bf16 holds: small integers, or real ones of eight bits.
std::vector<double> values(size_t count, bool integers, uint32_t state) {
  std::vector<double> v(count);
  for (double& x : v) {
    state = state * 1664525 + 1013904223;
    x = integers ? double(state >> 24) - 128 < 0 ? double(state >> 29) - 3 : double(state >> 28) - 7
                 : double(bfloat16_to_float(float_to_bfloat16(float(state >> 8) * (1.0f / 8388608) - 1.0f)));
  }
  return v;
}

// An operand in memory that ends or begins at an inaccessible page.
struct Operand {
  GuardedBuffer<uint16_t> memory;
  Lens lens;
  Operand(const std::vector<double>& v, size_t rows, size_t depth, bool rows_contiguous, size_t pad, bool at_end)
      : memory(rows_contiguous ? (depth - 1) * (rows + pad) + rows : (rows - 1) * (depth + pad) + depth) {
    uint16_t* data = at_end ? memory.at_end() : memory.at_start();
    const size_t row_stride = rows_contiguous ? 1 : depth + pad, depth_stride = rows_contiguous ? rows + pad : 1;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < depth; ++k) {
        data[r * row_stride + k * depth_stride] = float_to_bfloat16(float(v[r * depth + k]));
      }
    }
    lens = strided_lens(data, FloatType::bf16, ptrdiff_t(row_stride), ptrdiff_t(depth_stride));
  }
};

// a is m x k, b is n x k (its rows are columns of C), init m x n. Returns C.
std::vector<float> run(const Case& x, const std::vector<double>& a, const std::vector<double>& b,
                       const std::vector<double>& init, size_t threads) {
  const Operand oa(a, x.m, x.k, x.a_rows, x.pad, x.at_end), ob(b, x.n, x.k, x.b_rows, x.pad, x.at_end);
  const size_t stride = x.n + x.pad;
  std::vector<float> bias;
  if (x.init == GemmInit::bias_rows) {
    for (size_t i = 0; i < x.m; ++i) bias.push_back(float(init[i * x.n]));
  } else if (x.init == GemmInit::bias_columns) {
    for (size_t j = 0; j < x.n; ++j) bias.push_back(float(init[j]));
  }
  GuardedBuffer<float> c_memory((x.m - 1) * stride + x.n);
  GuardedBuffer<uint16_t> bf16_memory((x.m - 1) * stride + x.n);
  GemmOutput c{x.at_end ? c_memory.at_end() : c_memory.at_start(), stride, 1};
  uint16_t* const rounded = x.at_end ? bf16_memory.at_end() : bf16_memory.at_start();
  for (size_t i = 0; i < (x.m - 1) * stride + x.n; ++i) {
    c.data[i] = x.init == GemmInit::accumulate && i % stride < x.n ? float(init[i / stride * x.n + i % stride]) : NAN;
    rounded[i] = 0x7fab;  // a NaN that no product makes
  }
  if (x.bf16_result && x.init == GemmInit::overwrite) c.bf16 = rounded, c.bf16_row_stride = stride;
  struct Store {
    GemmOutput c;
    uint16_t* to;
  } store{c, rounded};
  const GemmEpilogue epilogue{[](void* context, Range rows, Range columns) {
                                const Store& s = *static_cast<Store*>(context);
                                for (size_t i = rows.begin; i < rows.end; ++i) {
                                  for (size_t j = columns.begin; j < columns.end; ++j) {
                                    const size_t at = i * s.c.row_stride + j;
                                    s.to[at] = float_to_bfloat16(s.c.data[at]);
                                  }
                                }
                              },
                              &store};
  const GemmProblem p{x.m, x.n, x.k, x.init};
  const size_t bytes = gemm_workspace_bytes(p, oa.lens, ob.lens, c, threads);
  GuardedBuffer<float> workspace(bytes / sizeof(float) + 1);
  float* const work = workspace.at_start();  // 64-byte aligned
  std::memset(work, 0xff, bytes);
  gemm(p, oa.lens, ob.lens, c, bias.data(), x.bf16_result ? epilogue : GemmEpilogue{}, bytes ? work : nullptr, threads);

  std::vector<float> result(x.m * x.n);
  for (size_t i = 0; i < (x.m - 1) * stride + x.n; ++i) {
    const bool named = i % stride < x.n;
    if (named) {
      result[i / stride * x.n + i % stride] = x.bf16_result ? bfloat16_to_float(rounded[i]) : c.data[i];
    } else if (!std::isnan(c.data[i]) || rounded[i] != 0x7fab) {
      ADD_FAILURE() << x.text() << ": gap written at " << i;
      break;
    }
  }
  return result;
}

std::vector<double> make_init(const Case& x) {
  std::vector<double> init(x.m * x.n, 0.0);
  for (size_t i = 0; i < x.m; ++i) {
    for (size_t j = 0; j < x.n; ++j) {
      if (x.init == GemmInit::accumulate) init[i * x.n + j] = double((i * 3 + j) % 9) - 4;
      if (x.init == GemmInit::bias_rows) init[i * x.n + j] = double(i % 9) - 4;
      if (x.init == GemmInit::bias_columns) init[i * x.n + j] = double(j % 9) - 4;
    }
  }
  return init;
}

std::vector<double> reference(const Case& x, const std::vector<double>& a, const std::vector<double>& b,
                              const std::vector<double>& init) {
  std::vector<double> columns(b.size());
  for (size_t j = 0; j < x.n; ++j) {
    for (size_t k = 0; k < x.k; ++k) columns[k * x.n + j] = b[j * x.k + k];
  }
  return ref::gemm(x.m, x.n, x.k, a, columns, init);
}

constexpr GemmInit kInits[] = {GemmInit::overwrite, GemmInit::accumulate, GemmInit::bias_rows, GemmInit::bias_columns};

// Shapes around tiles (14 and 32 rows), panels (32 columns), pairs and units of 16 pairs; thin, turned, sliced.
constexpr size_t kShapes[][3] = {{10, 1, 40},    {10, 10, 1},   {10, 15, 2},   {14, 32, 31},   {15, 33, 32},
                                 {17, 16, 33},   {31, 47, 64},  {32, 32, 65},  {33, 64, 127},  {29, 100, 9},
                                 {64, 31, 200},  {100, 65, 63}, {13, 300, 70}, {40, 700, 129}, {300, 20, 300},
                                 {16, 40, 9001}, {130, 530, 40}};

TEST(GemmBf16, SaysWhichKernelsRun) {
  for (const Isa isa : {Isa::avx512_bf16, Isa::amx}) {
    if (best_isa() < isa) {
      std::printf("%s: not tested, this machine has %s only\n", isa_name(isa), isa_name(best_isa()));
    } else {
      EXPECT_TRUE(has_pair_kernels(isa));
      EXPECT_EQ(pair_kernels(isa).tile.columns, 32u);
    }
  }
  EXPECT_FALSE(has_pair_kernels(Isa::avx512));
}

TEST(GemmBf16, ExactOnIntegers) {
  for_each_isa([] {
    unsigned i = 0;
    for (const auto& s : kShapes) {
      for (unsigned variant = 0; variant < 8; ++variant, ++i) {
        Case x{s[0], s[1], s[2], (variant & 1) != 0, (variant & 2) != 0, kInits[(i / 8 + variant / 2) % 4]};
        x.pad = i % 3, x.at_end = i % 2 == 0;
        const auto a = values(x.m * x.k, true, i), b = values(x.n * x.k, true, i + 7), init = make_init(x);
        const auto expected = reference(x, a, b, init);
        const auto got = run(x, a, b, init, 1 + i % 3);
        for (size_t e = 0; e < got.size(); ++e) {
          ASSERT_EQ(got[e], expected[e]) << x.text() << ": C[" << e / x.n << "," << e % x.n << "]";
        }
      }
    }
  });
}

// |error| <= 2 eps (k + 1) sum |a||b|, and half a unit of bf16's 2^-8 where the result is rounded.
TEST(GemmBf16, WithinBoundOnRealNumbers) {
  for_each_isa([] {
    unsigned i = 0;
    for (const auto& s : kShapes) {
      for (unsigned variant = 0; variant < 4; ++variant, ++i) {
        Case x{s[0], s[1], s[2], (variant & 1) != 0, (variant & 2) != 0, GemmInit::overwrite, i % 2 == 0};
        x.pad = i % 2, x.at_end = i % 3 == 0;
        auto a = values(x.m * x.k, false, i), b = values(x.n * x.k, false, i + 7);
        const auto init = make_init(x), expected = reference(x, a, b, init);
        const auto got = run(x, a, b, init, 2);
        for (double& v : a) v = std::abs(v);
        for (double& v : b) v = std::abs(v);
        const auto size = reference(x, a, b, init);
        for (size_t e = 0; e < got.size(); ++e) {
          const double bound = 2.0 * std::numeric_limits<float>::epsilon() * double(x.k + 1) * size[e] +
                               (x.bf16_result ? std::abs(expected[e]) * 0x1p-8 : 0);
          ASSERT_LE(std::abs(double(got[e]) - expected[e]), bound) << x.text() << ": " << e;
        }
      }
    }
  });
}

TEST(GemmBf16, SameBitsForAnyThreadCountAndPadding) {
  constexpr size_t shapes[][3] = {{32, 700, 900}, {128, 1030, 257}, {1100, 300, 33},
                                  {16, 40, 9000}, {300, 310, 1300}, {128, 768, 640}};
  for_each_isa([&] {
    for (const auto& s : shapes) {
      for (unsigned variant = 0; variant < 8; ++variant) {
        Case x{s[0], s[1], s[2], (variant & 1) != 0, (variant & 2) != 0, GemmInit::overwrite, (variant & 4) != 0};
        const auto a = values(x.m * x.k, false, 1), b = values(x.n * x.k, false, 2), init = make_init(x);
        const auto one = run(x, a, b, init, 1);
        for (const size_t threads : {2, 3, 7, 16}) {
          x.pad = threads - 2;
          ASSERT_EQ(std::memcmp(one.data(), run(x, a, b, init, threads).data(), one.size() * sizeof(float)), 0)
              << x.text() << " threads " << threads;
        }
      }
    }
  });
}

// Infinity and NaN come through where they are named, and nowhere else: padding is multiplied by zeros of both factors.
TEST(GemmBf16, NonFiniteNumbersStayInTheirRowsAndColumns) {
  for_each_isa([] {
    for (const size_t k : {size_t{1}, size_t{31}, size_t{64}, size_t{65}}) {
      Case x{37, 90, k};
      auto a = values(x.m * k, true, 3), b = values(x.n * k, true, 4);
      for (double& v : a) v = v == 0 ? 1 : v;
      for (double& v : b) v = v == 0 ? 1 : v;
      a[5 * k + k - 1] = std::numeric_limits<double>::infinity();
      b[7 * k + k - 1] = std::numeric_limits<double>::quiet_NaN();
      const auto got = run(x, a, b, make_init(x), 2);
      for (size_t i = 0; i < x.m; ++i) {
        for (size_t j = 0; j < x.n; ++j) {
          const float value = got[i * x.n + j];
          if (j == 7) {
            ASSERT_TRUE(std::isnan(value)) << i;
          } else if (i == 5) {
            ASSERT_TRUE(std::isinf(value)) << j;
          } else {
            ASSERT_TRUE(std::isfinite(value)) << i << "," << j;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace bnns

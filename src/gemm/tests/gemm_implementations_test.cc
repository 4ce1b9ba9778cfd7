// Every entry of the GEMM core's table, forced by leaving out those before it, against the reference: on every
// instruction set it exists for, with 1, 2, 3 and 7 threads, operands and C against inaccessible pages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "src/core/half.h"
#include "src/gemm/gemm_ref.h"
#include "src/gemm/implementations.h"
#include "src/simd/tests/simd_testing.h"
#include "tests/support/implementations.h"

namespace bnns {
namespace {

using detail::kGemmImplementations;
using test::GuardedBuffer;
using testing::names_before;
using testing::Skip;

enum class Order { depth, rows, scattered };

struct Case {
  size_t m, n, k;
  Order a, b;
  FloatType type_a, type_b;
  GemmInit init;
  bool c_transposed, at_end;

  std::string text() const {
    return "m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k) + " a" +
           std::to_string(int(a)) + std::to_string(int(type_a)) + " b" + std::to_string(int(b)) +
           std::to_string(int(type_b)) + " init" + std::to_string(int(init)) + (c_transposed ? " c^T" : "");
  }
};

// Numbers that f16 and bf16 hold, whose sums round.
std::vector<double> make_values(size_t count, uint32_t state) {
  std::vector<double> values(count);
  for (double& v : values) {
    state = state * 1664525 + 1013904223;
    v = std::ldexp(double(128 + (state >> 25)), -7 - int(state >> 23 & 3)) * (state >> 22 & 1 ? 1 : -1);
  }
  return values;
}

// A matrix of rows x depth whose memory ends or begins at an inaccessible page.
class Operand {
 public:
  Operand(const std::vector<double>& values, size_t rows, size_t depth, Order order, FloatType type, bool at_end)
      : row_stride_(order == Order::rows    ? 1
                    : order == Order::depth ? depth
                                            : 2 * depth + 3),
        depth_stride_(order == Order::rows    ? rows
                      : order == Order::depth ? 1
                                              : 2),
        memory_(((rows - 1) * row_stride_ + (depth - 1) * depth_stride_ + 1) * bytes_of(type)) {
    char* const data = at_end ? memory_.at_end() : memory_.at_start();
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < depth; ++k) {
        const float value = float(values[r * depth + k]);
        const uint16_t half = type == FloatType::bf16 ? float_to_bfloat16(value) : float_to_half(value);
        char* const to = data + (r * row_stride_ + k * depth_stride_) * bytes_of(type);
        type == FloatType::f32 ? std::memcpy(to, &value, 4) : std::memcpy(to, &half, 2);
      }
    }
    lens = strided_lens(data, type, ptrdiff_t(row_stride_), ptrdiff_t(depth_stride_));
  }
  Lens lens;

 private:
  size_t row_stride_, depth_stride_;
  GuardedBuffer<char> memory_;
};

// A shape with its values and sums; the layouts of its cases share them.
struct Shape {
  size_t m, n, k;
  std::vector<double> a, b, b_rows, init, bounds;  // b_rows: columns of B as rows

  Shape(size_t m_, size_t n_, size_t k_)
      : m(m_), n(n_), k(k_), a(make_values(m * k, 1)), b(make_values(k * n, 2)), init(make_values(m * n, 3)) {
    b_rows.resize(n * k);
    std::vector<double> magnitudes_a = a, magnitudes_b = b;
    for (double& v : magnitudes_a) v = std::fabs(v);
    for (double& v : magnitudes_b) v = std::fabs(v);
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < n; ++j) b_rows[j * k + i] = b[i * n + j];
    }
    bounds = ref::gemm(m, n, k, magnitudes_a, magnitudes_b, std::vector<double>(m * n, 8));
    for (double& v : bounds) v *= 2 * double(std::numeric_limits<float>::epsilon()) * double(k);
  }
  // What C has before the sum.
  std::vector<double> start(GemmInit kind) const {
    std::vector<double> c = init;
    for (size_t i = 0; i < m * n; ++i) {
      if (kind == GemmInit::overwrite) c[i] = 0;
      if (kind == GemmInit::bias_rows) c[i] = init[i / n];
      if (kind == GemmInit::bias_columns) c[i] = init[i % n];
    }
    return c;
  }
};

class Product {
 public:
  Product(const Shape& shape, const Case& x)
      : shape_(shape),
        case_(x),
        a_(shape.a, x.m, x.k, x.a, x.type_a, x.at_end),
        b_(shape.b_rows, x.n, x.k, x.b, x.type_b, x.at_end),
        c_(x.m * x.n),
        problem_{x.m, x.n, x.k, x.init},
        output_{x.at_end ? c_.at_end() : c_.at_start(), x.c_transposed ? 1 : x.n, x.c_transposed ? x.m : 1} {}

  const char* name() const { return gemm_implementation(problem_, a_.lens, b_.lens, output_); }

  // Row-major.
  std::vector<float> run(size_t threads) {
    const std::vector<double> start = shape_.start(case_.init);
    std::vector<float> bias(std::max(case_.m, case_.n)), result(case_.m * case_.n);
    for (size_t i = 0; i < result.size(); ++i) {
      at(i) = case_.init == GemmInit::accumulate ? float(start[i]) : std::numeric_limits<float>::quiet_NaN();
      if (case_.init == GemmInit::bias_rows) bias[i / case_.n] = float(start[i]);
      if (case_.init == GemmInit::bias_columns) bias[i % case_.n] = float(start[i]);
    }
    const size_t bytes = gemm_workspace_bytes(problem_, a_.lens, b_.lens, output_, threads);
    GuardedBuffer<char> workspace((bytes + 63) / 64 * 64 + 64);
    std::memset(workspace.at_end() + 64, 0xff, bytes);
    gemm(problem_, a_.lens, b_.lens, output_, bias.data(), {}, bytes ? workspace.at_end() + 64 : nullptr, threads);
    for (size_t i = 0; i < result.size(); ++i) result[i] = at(i);
    return result;
  }

 private:
  float& at(size_t i) { return output_.data[i / case_.n * output_.row_stride + i % case_.n * output_.column_stride]; }

  const Shape& shape_;
  const Case& case_;
  Operand a_, b_;
  GuardedBuffer<float> c_;
  GemmProblem problem_;
  GemmOutput output_;
};

// Runs a case with each number of threads where it takes entry `name`.
bool run_if_taken(const Shape& shape, const Case& x, const char* name) {
  Product product(shape, x);
  if (std::strcmp(product.name(), name) != 0) return false;
  SCOPED_TRACE(x.text());
  const std::vector<double> want = ref::gemm(x.m, x.n, x.k, shape.a, shape.b, shape.start(x.init));
  std::vector<float> first;
  for (const size_t threads : {1, 2, 3, 7}) {
    const CallRecord record;
    const std::vector<float> got = product.run(threads);
    EXPECT_TRUE(record.size() == 1 && record.has(name)) << "another one ran";
    if (first.empty()) first = got;
    EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * sizeof(float)), 0) << threads << " threads";
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::fabs(double(got[i]) - want[i]) <= shape.bounds[i]) continue;
      ADD_FAILURE() << "C[" << i / x.n << "," << i % x.n << "] is " << got[i] << ", expected " << want[i];
      return true;
    }
  }
  return true;
}

std::vector<Case> cases_of(const Shape& s) {
  std::vector<Case> cases;
  constexpr Order kOrders[] = {Order::depth, Order::rows, Order::scattered};
  constexpr FloatType kTypes[][2] = {{FloatType::f32, FloatType::f32},
                                     {FloatType::bf16, FloatType::bf16},
                                     {FloatType::f16, FloatType::f32},
                                     {FloatType::f32, FloatType::bf16}};
  unsigned i = 0;
  for (const Order a : kOrders) {
    for (const Order b : kOrders) {
      for (const auto& types : kTypes) {
        ++i;
        if (s.m * s.n * s.k > 1000000 && (a == Order::scattered || b == Order::scattered)) continue;
        cases.push_back({s.m, s.n, s.k, a, b, types[0], types[1], GemmInit(i / 3 % 4), i % 5 == 4, i % 2 == 0});
      }
    }
  }
  return cases;
}

TEST(GemmImplementations, EachIsForcedAgainstTheReference) {
  const size_t sizes[][3] = {{1, 300, 70}, {300, 1, 70},   {1, 4100, 41}, {4100, 1, 41}, {2, 33, 31},   {33, 2, 31},
                             {9, 50, 64},  {50, 9, 64},    {4, 20, 33},   {1, 1, 9},     {31, 47, 1},   {300, 260, 1},
                             {33, 65, 20}, {20, 300, 600}, {16, 130, 77}, {1, 700, 300}, {700, 1, 300}, {130, 70, 1100},
                             {7, 5, 2000}, {1, 6, 50},     {600, 90, 9}};
  std::vector<Shape> shapes;
  for (const auto& size : sizes) shapes.emplace_back(size[0], size[1], size[2]);
  for (size_t k = 0; k < std::size(kGemmImplementations); ++k) {
    const char* const name = kGemmImplementations[k].name;
    const Skip skip(names_before(kGemmImplementations, k));
    SCOPED_TRACE(name);
    size_t on_widest = 0;
    for (int i = 0; i <= int(best_isa()); ++i) {
      set_max_isa(Isa(i));
      SCOPED_TRACE(isa_name(Isa(i)));
      on_widest = 0;
      for (const Shape& shape : shapes) {
        for (const Case& x : cases_of(shape)) on_widest += run_if_taken(shape, x, name);
      }
    }
    set_max_isa(best_isa());
    if (std::strcmp(name, "gemm/amx") == 0 && best_isa() < Isa::amx) {
      std::printf("gemm/amx: not tested, this machine has %s only\n", isa_name(best_isa()));
    } else if (std::strcmp(name, "gemm/bf16") == 0 && best_isa() < Isa::avx512_bf16) {
      std::printf("gemm/bf16: not tested, this machine has %s only\n", isa_name(best_isa()));
    } else {
      EXPECT_GE(on_widest, 4u) << name << " ran hardly any problem on " << isa_name(best_isa());
    }
  }
}

TEST(GemmImplementations, ReadmeHasTheTable) {
  testing::expect_table_in_readme(kGemmImplementations, "products", "src/gemm/README.md");
}

}  // namespace
}  // namespace bnns

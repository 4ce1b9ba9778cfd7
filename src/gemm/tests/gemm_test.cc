// The product against its reference, for every instruction set of the machine. Every operand lies against an
// inaccessible page, C and the workspace start as NaN, and gaps between rows of C must keep their bits.
#include "src/gemm/gemm.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/core/isa.h"
#include "src/gemm/gemm_ref.h"

namespace bnns {
namespace {

constexpr uint32_t kPoison = 0x7fc0dead;  // a NaN nobody computes

// Memory between two inaccessible pages. An odd allocation ends at the upper one, an even one begins at the lower one.
class Arena {
 public:
  explicit Arena(size_t bytes) : bytes_((bytes + 4095) / 4096 * 4096) {
    base_ = static_cast<char*>(mmap(nullptr, bytes_ + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + 4096, bytes_, PROT_READ | PROT_WRITE);
  }
  Arena(const Arena&) = delete;
  ~Arena() { munmap(base_, bytes_ + 8192); }

  // `bytes` bytes of poison.
  void* take(size_t bytes, bool at_end) {
    EXPECT_LE(bytes, bytes_);
    char* data = base_ + 4096 + (at_end ? bytes_ - bytes : 0);
    for (size_t i = 0; i + 4 <= bytes; i += 4) std::memcpy(data + i, &kPoison, 4);
    return data;
  }

 private:
  size_t bytes_;
  char* base_;
};

enum class Order { depth_contiguous, rows_contiguous, scattered, lens };

struct Case {
  size_t m = 1, n = 1, k = 1;
  GemmInit init = GemmInit::overwrite;
  Order a = Order::depth_contiguous, b = Order::depth_contiguous;
  FloatType a_type = FloatType::f32, b_type = FloatType::f32;
  size_t pad = 0;  // elements between rows of A, B and C
  bool c_transposed = false;
  bool at_end = true;  // which guard page the operands touch

  std::string text() const {
    const char* orders[] = {"depth", "rows", "scattered", "lens"};
    const char* types[] = {"f32", "f16", "bf16", "i8", "u8"};
    return "m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k) + " init" +
           std::to_string(static_cast<int>(init)) + " a:" + orders[static_cast<int>(a)] + ":" +
           types[static_cast<int>(a_type)] + " b:" + orders[static_cast<int>(b)] + ":" +
           types[static_cast<int>(b_type)] + " pad" + std::to_string(pad) + (c_transposed ? " c^T" : "") + " " +
           isa_name(isa());
  }
};

uint16_t to_half(float value, FloatType type) {  // exact for the values used here
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (type == FloatType::bf16) return static_cast<uint16_t>(bits >> 16);
  if (value == 0.0f) return static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

// A matrix of rows x depth laid out as the case asks.
struct Operand {
  Lens lens, plain;

  Operand(Arena& arena, const std::vector<double>& values, size_t rows, size_t depth, Order order, FloatType type,
          size_t pad, bool at_end) {
    ptrdiff_t row_stride = static_cast<ptrdiff_t>(depth + pad), depth_stride = 1;
    if (order == Order::rows_contiguous) row_stride = 1, depth_stride = static_cast<ptrdiff_t>(rows + pad);
    if (order == Order::scattered) row_stride = 2 * static_cast<ptrdiff_t>(depth + pad) + 3, depth_stride = 2;
    const size_t size = bytes_of(type);
    const size_t last = rows && depth ? (rows - 1) * static_cast<size_t>(row_stride) +
                                            (depth - 1) * static_cast<size_t>(depth_stride) + 1
                                      : 0;
    char* data = static_cast<char*>(arena.take(last * size, at_end));
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < depth; ++k) {
        char* at = data + (r * static_cast<size_t>(row_stride) + k * static_cast<size_t>(depth_stride)) * size;
        const float value = static_cast<float>(values[r * depth + k]);
        if (size == 1) {
          *at = static_cast<char>(static_cast<int>(value));
          continue;
        }
        const uint16_t half = to_half(value, type);
        type == FloatType::f32 ? std::memcpy(at, &value, 4) : std::memcpy(at, &half, 2);
      }
    }
    plain = lens = strided_lens(data, type, row_stride, depth_stride);
    if (order == Order::lens) {
      lens = {};
      lens.pack = [](const void* context, Range block_rows, Range block_depth, const PackedBlock& out) {
        pack_strided(*static_cast<const Lens*>(context), block_rows, block_depth, out);
      };
      lens.context = &plain;
    }
  }
  Operand(const Operand&) = delete;
};

struct Counter {
  std::vector<std::atomic<int>> calls;
  const float* c;
  size_t n, row_stride, column_stride;
  std::atomic<bool> unfinished{false};
};

struct Memory {  // of one test
  Arena a{16 << 20}, b{16 << 20}, c{8 << 20}, bias{1 << 20}, work{32 << 20};
};

std::vector<double> random_values(size_t count, bool integers, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  std::normal_distribution<float> normal;
  for (double& v : values) {
    v = integers ? static_cast<int>(random() % 7) - 3 : normal(random);
  }
  return values;
}

// A float that f16 or bf16 can hold.
void round_to(std::vector<double>& values, FloatType type) {
  if (type == FloatType::f32) return;
  for (double& v : values) v = std::ldexp(std::nearbyint(std::ldexp(v, 4)), -4);  // 7 bits up to 8
}

struct Result {
  std::vector<float> c;  // dense, row-major
};

// Runs the case; checks everything around the elements; returns C.
Result run(Memory& memory, const Case& x, const std::vector<double>& av, const std::vector<double>& bv,
           const std::vector<double>& init, size_t threads) {
  Operand a(memory.a, av, x.m, x.k, x.a, x.a_type, x.pad, x.at_end);
  std::vector<double> bt(x.n * x.k);
  for (size_t k = 0; k < x.k; ++k) {
    for (size_t j = 0; j < x.n; ++j) bt[j * x.k + k] = bv[k * x.n + j];
  }
  Operand b(memory.b, bt, x.n, x.k, x.b, x.b_type, x.pad, x.at_end);

  GemmOutput c{nullptr, x.n + x.pad, 1};
  if (x.c_transposed) c = {nullptr, 1, x.m + x.pad};
  const size_t c_size = x.m && x.n ? (x.m - 1) * c.row_stride + (x.n - 1) * c.column_stride + 1 : 0;
  c.data = static_cast<float*>(memory.c.take(c_size * sizeof(float), x.at_end));
  if (x.init == GemmInit::accumulate) {
    for (size_t i = 0; i < x.m; ++i) {
      for (size_t j = 0; j < x.n; ++j)
        c.data[i * c.row_stride + j * c.column_stride] = static_cast<float>(init[i * x.n + j]);
    }
  }
  const size_t bias_size = x.init == GemmInit::bias_rows ? x.m : x.init == GemmInit::bias_columns ? x.n : 0;
  float* bias = static_cast<float*>(memory.bias.take(bias_size * sizeof(float), x.at_end));
  for (size_t i = 0; i < bias_size && c_size; ++i) {
    bias[i] = static_cast<float>(init[x.init == GemmInit::bias_rows ? i * x.n : i]);
  }

  const GemmProblem problem{x.m, x.n, x.k, x.init};
  const size_t bytes = gemm_workspace_bytes(problem, a.lens, b.lens, c, threads);
  EXPECT_EQ(bytes % 64, 0u);
  void* workspace = bytes ? memory.work.take(bytes, true) : nullptr;

  Counter counter{std::vector<std::atomic<int>>(x.m * x.n), c.data, x.n, c.row_stride, c.column_stride, {}};
  const GemmEpilogue epilogue{[](void* context, Range rows, Range columns) {
                                Counter& self = *static_cast<Counter*>(context);
                                for (size_t i = rows.begin; i < rows.end; ++i) {
                                  for (size_t j = columns.begin; j < columns.end; ++j) {
                                    self.calls[i * self.n + j].fetch_add(1);
                                    if (std::isnan(self.c[i * self.row_stride + j * self.column_stride]))
                                      self.unfinished = true;
                                  }
                                }
                              },
                              &counter};
  gemm(problem, a.lens, b.lens, c, bias, epilogue, workspace, threads);

  EXPECT_FALSE(counter.unfinished) << x.text();
  for (const auto& calls : counter.calls) {
    if (calls != 1) {
      ADD_FAILURE() << "epilogue called " << calls << " times: " << x.text();
      break;
    }
  }
  Result result{std::vector<float>(x.m * x.n)};
  std::vector<bool> named(c_size);
  for (size_t i = 0; i < x.m; ++i) {
    for (size_t j = 0; j < x.n; ++j) {
      named[i * c.row_stride + j * c.column_stride] = true;
      result.c[i * x.n + j] = c.data[i * c.row_stride + j * c.column_stride];
    }
  }
  for (size_t i = 0; i < c_size; ++i) {
    uint32_t bits;
    std::memcpy(&bits, c.data + i, 4);
    if (!named[i] && bits != kPoison) {
      ADD_FAILURE() << "gap written at " << i << ": " << x.text();
      break;
    }
  }
  return result;
}

std::vector<double> make_init(const Case& x, bool integers) {
  std::vector<double> init(x.m * x.n, 0.0), values = random_values(std::max(x.m, x.n) + x.m * x.n, integers, 3);
  for (size_t i = 0; i < x.m; ++i) {
    for (size_t j = 0; j < x.n; ++j) {
      switch (x.init) {
        case GemmInit::overwrite:
          break;
        case GemmInit::accumulate:
          init[i * x.n + j] = values[i * x.n + j];
          break;
        case GemmInit::bias_rows:
          init[i * x.n + j] = values[i];
          break;
        case GemmInit::bias_columns:
          init[i * x.n + j] = values[j];
          break;
      }
    }
  }
  return init;
}

void expect_exact(Memory& memory, const Case& x, size_t threads) {
  auto a = random_values(x.m * x.k, true, 1), b = random_values(x.k * x.n, true, 2);
  const auto init = make_init(x, true);
  for (double& v : a) v *= x.a_type == FloatType::i8 ? 42 : x.a_type == FloatType::u8 && v < 0 ? -80 : 1;
  for (double& v : b) v *= x.b_type == FloatType::i8 ? 42 : x.b_type == FloatType::u8 && v < 0 ? -80 : 1;
  const auto expected = ref::gemm(x.m, x.n, x.k, a, b, init);
  const Result got = run(memory, x, a, b, init, threads);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (got.c[i] != expected[i]) {
      ADD_FAILURE() << x.text() << " threads " << threads << ": C[" << i / x.n << "," << i % x.n << "] is " << got.c[i]
                    << ", expected " << expected[i];
      return;
    }
  }
}

class Gemm : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_max_isa(GetParam()); }
  void TearDown() override { set_max_isa(best_isa()); }
  Memory memory_;
};

std::vector<Isa> all_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}
INSTANTIATE_TEST_SUITE_P(Isas, Gemm, testing::ValuesIn(all_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

constexpr Order kOrders[] = {Order::depth_contiguous, Order::rows_contiguous, Order::scattered, Order::lens};
constexpr FloatType kTypes[] = {FloatType::f32, FloatType::f16, FloatType::bf16};
constexpr GemmInit kInits[] = {GemmInit::overwrite, GemmInit::accumulate, GemmInit::bias_rows, GemmInit::bias_columns};

TEST(GemmReference, HandWorked) {
  // [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50], plus 1.
  EXPECT_EQ(ref::gemm(2, 2, 2, {1, 2, 3, 4}, {5, 6, 7, 8}, {1, 1, 1, 1}), (std::vector<double>{20, 23, 44, 51}));
}

// Small integers: every order of summation gives the same sum, so the result must be equal, not close.
TEST_P(Gemm, ExactOnSmallShapes) {
  const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 13, 14, 15, 17, 33};
  unsigned i = 0;
  for (const size_t m : sizes) {
    for (const size_t n : sizes) {
      for (const size_t k : sizes) {
        ++i;
        Case x{m, n, k};
        x.a = kOrders[i % 4], x.b = kOrders[i / 4 % 4], x.init = kInits[i / 3 % 4];
        x.a_type = kTypes[i / 5 % 3], x.b_type = kTypes[i / 7 % 3];
        x.pad = i % 3, x.c_transposed = i % 5 == 0, x.at_end = i % 2;
        expect_exact(memory_, x, 1 + i % 3);
      }
    }
  }
}

TEST_P(Gemm, ExactOnEveryLayout) {
  const size_t shapes[][3] = {{1, 100, 70}, {100, 1, 70},  {3, 49, 31},   {49, 4, 64},   {40, 1, 1},
                              {31, 47, 1},  {16, 100, 48}, {47, 33, 300}, {64, 129, 17}, {8, 8, 128},
                              {2, 32, 128}, {5, 256, 6},   {256, 5, 6},   {8, 8, 129}};  // small, or not
  for (const auto& s : shapes) {
    unsigned i = 0;
    for (const Order a : kOrders) {
      for (const Order b : kOrders) {
        for (const FloatType a_type : kTypes) {
          for (const FloatType b_type : kTypes) {
            ++i;
            Case x{s[0], s[1], s[2], kInits[i % 4], a, b, a_type, b_type, i % 3, i / 4 % 2 == 0, i / 2 % 2 == 0};
            expect_exact(memory_, x, 1 + i % 2);
          }
        }
      }
    }
  }
}

// Weights of 8 bits: bytes from -126 to 126, or from 0 to 240, in every order, against a few vectors and tiles of them.
TEST_P(Gemm, ExactOnBytes) {
  const size_t shapes[][3] = {{1, 100, 70}, {3, 49, 31}, {9, 17, 40}, {31, 47, 1}, {20, 100, 48}, {47, 33, 300}};
  unsigned i = 0;
  for (const auto& s : shapes) {
    for (const Order order : kOrders) {
      for (const FloatType type : {FloatType::i8, FloatType::u8}) {
        ++i;
        expect_exact(memory_, {s[0], s[1], s[2], kInits[i % 4], kOrders[i % 3], order, kTypes[i % 3], type, i % 3}, 2);
        expect_exact(memory_, {s[1], s[0], s[2], kInits[i % 4], order, kOrders[i % 3], type, kTypes[i % 3], i % 3}, 1);
      }
    }
  }
}

TEST_P(Gemm, ExactOnLargerShapes) {
  const size_t shapes[][3] = {{32, 1000, 200}, {1000, 32, 200}, {500, 520, 40}, {130, 1100, 64}, {600, 40, 300},
                              {40, 1030, 260}, {20, 1024, 300}, {11, 900, 300}, {14, 32, 3000},  {5, 3, 5000},
                              {28, 64, 2048},  {2, 700, 900},   {300, 2, 900},  {1, 5000, 300},  {1, 300, 5000}};
  unsigned i = 0;
  for (const auto& s : shapes) {
    for (int variant = 0; variant < 4; ++variant, ++i) {
      Case x{s[0], s[1], s[2]};
      x.a = kOrders[variant % 2], x.b = kOrders[variant / 2], x.init = kInits[i % 4], x.pad = i % 2,
      x.c_transposed = i % 3 == 0;
      expect_exact(memory_, x, 1 + i % 4);
    }
  }
}

// C is far away: it is asked for while the depth is walked, in chunks that depend on the tile's rows. Depths around
// them, last columns of every kind, B in place and copied panel by panel.
TEST_P(Gemm, ExactOnFarResults) {
  const size_t shapes[][3] = {{400, 350, 11}, {400, 353, 12},  {390, 351, 13},   {390, 368, 25},
                              {380, 369, 27}, {380, 383, 28},  {370, 384, 29},   {370, 361, 41},
                              {360, 479, 43}, {130, 1030, 40}, {128, 1100, 300}, {32, 4200, 70}};
  unsigned i = 0;
  for (const auto& s : shapes) {
    for (int variant = 0; variant < 4; ++variant, ++i) {
      Case x{s[0], s[1], s[2]};
      x.a = kOrders[variant % 2], x.b = kOrders[variant / 2], x.init = kInits[i % 4], x.pad = i % 2;
      expect_exact(memory_, x, 1 + i % 3);
    }
  }
}

// |error| <= 2 eps K sum |a||b| for any order of summation.
TEST_P(Gemm, WithinBoundOnNormalData) {
  const size_t shapes[][3] = {{1, 37, 1000},  {3, 65, 777},   {33, 65, 129},
                              {70, 90, 1500}, {200, 8, 2500}, {17, 500, 31}};
  unsigned i = 0;
  for (const auto& s : shapes) {
    for (const Order order : kOrders) {
      ++i;
      Case x{s[0], s[1], s[2]};
      x.a = order, x.b = kOrders[i % 3], x.a_type = kTypes[i % 3], x.b_type = kTypes[i / 3 % 3],
      x.init = kInits[i % 2 * 3];
      auto a = random_values(x.m * x.k, false, i), b = random_values(x.k * x.n, false, i + 100),
           init = make_init(x, false);
      round_to(a, x.a_type), round_to(b, x.b_type);
      std::vector<double> a_abs = a, b_abs = b, init_abs = init;
      for (auto* v : {&a_abs, &b_abs, &init_abs})
        for (double& e : *v) e = std::abs(e);
      const auto expected = ref::gemm(x.m, x.n, x.k, a, b, init),
                 size = ref::gemm(x.m, x.n, x.k, a_abs, b_abs, init_abs);
      const Result got = run(memory_, x, a, b, init, 2);
      const double eps = std::numeric_limits<float>::epsilon();
      for (size_t e = 0; e < expected.size(); ++e) {
        ASSERT_LE(std::abs(got.c[e] - expected[e]), 2 * eps * static_cast<double>(x.k + 1) * size[e])
            << x.text() << " at " << e;
      }
    }
  }
}

TEST_P(Gemm, SameBitsForAnyThreadCount) {
  const size_t shapes[][3] = {
      {1, 3000, 900},  {1, 900, 3000},  {3, 1500, 700},  {32, 700, 900},  {128, 1030, 257},
      {300, 1, 900},   {1100, 700, 33}, {16, 40, 20000}, {600, 600, 600}, {40, 2000, 1},
      {32, 479, 1024}, {500, 479, 128}, {128, 256, 512}, {128, 128, 784}};  // cut for many threads
  for (const auto& s : shapes) {
    for (int variant = 0; variant < 4; ++variant) {
      Case x{s[0], s[1], s[2]};
      x.a = kOrders[variant % 2], x.b = kOrders[variant / 2], x.init = kInits[variant];
      const auto a = random_values(x.m * x.k, false, 5), b = random_values(x.k * x.n, false, 6),
                 init = make_init(x, false);
      const Result one = run(memory_, x, a, b, init, 1);
      for (const size_t threads : {2, 3, 7, 16}) {
        const Result many = run(memory_, x, a, b, init, threads);
        ASSERT_EQ(std::memcmp(one.c.data(), many.c.data(), one.c.size() * sizeof(float)), 0)
            << x.text() << " threads " << threads;
      }
    }
  }
}

// Padded rows do not change a bit: the path depends on which stride is 1, not on the other.
TEST_P(Gemm, SameBitsForPaddedLayouts) {
  for (const size_t m : {1, 20}) {
    Case x{m, 130, 555};
    const auto a = random_values(x.m * x.k, false, 5), b = random_values(x.k * x.n, false, 6),
               init = make_init(x, false);
    const Result dense = run(memory_, x, a, b, init, 1);
    for (const size_t pad : {1, 5, 213}) {
      x.pad = pad;
      EXPECT_EQ(run(memory_, x, a, b, init, 1).c, dense.c) << x.text();
    }
  }
}

// Both operands packed ahead in chunks, several depth blocks: too much for the reference, so elements are picked at
// random.
TEST_P(Gemm, ChunksOfLargeOperands) {
  const size_t shapes[][3] = {{530, 4800, 520}, {4800, 530, 520}};
  for (const auto& s : shapes) {
    const size_t m = s[0], n = s[1], k = s[2];
    const auto av = random_values(m * k, true, 1), bv = random_values(k * n, true, 2);
    const std::vector<float> af(av.begin(), av.end()), bf(bv.begin(), bv.end());
    const Lens a = strided_lens(af.data(), FloatType::f32, static_cast<ptrdiff_t>(k), 1);
    const Lens b = strided_lens(bf.data(), FloatType::f32, 1, static_cast<ptrdiff_t>(n));
    std::vector<float> c(m * n, NAN);
    const GemmOutput out{c.data(), n, 1};
    const size_t bytes = gemm_workspace_bytes({m, n, k, {}}, a, b, out, 2);
    gemm({m, n, k, {}}, a, b, out, nullptr, {}, memory_.work.take(bytes, true), 2);
    std::mt19937 random(4);
    for (int pick = 0; pick < 3000; ++pick) {
      const size_t i = random() % m, j = random() % n;
      double expected = 0;
      for (size_t d = 0; d < k; ++d) expected += av[i * k + d] * bv[d * n + j];
      ASSERT_EQ(c[i * n + j], expected) << "C[" << i << "," << j << "]";
    }
    for (const float value : c) ASSERT_FALSE(std::isnan(value));
  }
}

// Streaming stores: a C far larger than the caches, 64-byte aligned and not, no epilogue.
TEST_P(Gemm, LargeOutputIsWritten) {
  const size_t m = 1030, n = 4112, shift[] = {0, 3};
  for (const size_t k : {size_t{1}, size_t{9}}) {
    const auto a = random_values(m * k, true, 7), b = random_values(n * k, true, 8);
    const std::vector<float> af(a.begin(), a.end()), bf(b.begin(), b.end());
    for (const size_t offset : shift) {
      std::vector<float> memory(m * n + 32, NAN);
      float* c = memory.data();
      while (reinterpret_cast<uintptr_t>(c) % 64 != 0) ++c;
      c += offset;
      const Lens la = strided_lens(af.data(), FloatType::f32, 1, static_cast<ptrdiff_t>(m));
      const Lens lb = strided_lens(bf.data(), FloatType::f32, 1, static_cast<ptrdiff_t>(n));
      const GemmOutput out{c, n, 1};
      const size_t bytes = gemm_workspace_bytes({m, n, k, {}}, la, lb, out, 2);
      gemm({m, n, k, {}}, la, lb, out, nullptr, {}, bytes ? memory_.work.take(bytes, true) : nullptr, 2);
      for (size_t i = 0; i < m * n; ++i) {
        float expected = 0;
        for (size_t kk = 0; kk < k; ++kk) expected += af[kk * m + i / n] * bf[kk * n + i % n];
        ASSERT_EQ(c[i], expected) << i;
      }
    }
  }
}

// A stride of 0 repeats a row or a column; a negative one walks backwards.
TEST_P(Gemm, UnusualStrides) {
  const std::vector<double> values = random_values(4000, true, 9);
  const std::vector<float> data(values.begin(), values.end());
  const ptrdiff_t strides[][2] = {{0, 1}, {1, 0}, {0, 0}, {-37, 1}, {1, -37}, {-1, 60}, {60, -1}, {3, 1}, {1, 1}};
  const auto at = [&](const ptrdiff_t* s, size_t r, size_t k) {
    return values[static_cast<size_t>(2000 + static_cast<ptrdiff_t>(r) * s[0] + static_cast<ptrdiff_t>(k) * s[1])];
  };
  for (const auto& sa : strides) {
    for (const auto& sb : strides) {
      for (const size_t m : {size_t{1}, size_t{3}, size_t{30}}) {
        const size_t n = 33, k = 21;
        const Lens a = strided_lens(data.data() + 2000, FloatType::f32, sa[0], sa[1]);
        const Lens b = strided_lens(data.data() + 2000, FloatType::f32, sb[0], sb[1]);
        std::vector<float> c(m * n, NAN);
        const GemmOutput out{c.data(), n, 1};
        const size_t bytes = gemm_workspace_bytes({m, n, k, {}}, a, b, out, 2);
        gemm({m, n, k, {}}, a, b, out, nullptr, {}, bytes ? memory_.work.take(bytes, true) : nullptr, 2);
        for (size_t i = 0; i < m * n; ++i) {
          double expected = 0;
          for (size_t d = 0; d < k; ++d) expected += at(sa, i / n, d) * at(sb, i % n, d);
          ASSERT_EQ(c[i], expected) << "a " << sa[0] << "," << sa[1] << " b " << sb[0] << "," << sb[1] << " m" << m;
        }
      }
    }
  }
}

TEST_P(Gemm, InfinityInUnusedPaddingDoesNotLeak) {
  // Operands next to infinities: a packer that multiplied what it padded with would make NaN.
  std::vector<float> a(20 * 40, INFINITY), b(40 * 40, INFINITY), c(20 * 40, NAN);
  for (size_t i = 0; i < 5; ++i)
    for (size_t k = 0; k < 9; ++k) a[i * 40 + k] = 1;
  for (size_t k = 0; k < 9; ++k)
    for (size_t j = 0; j < 19; ++j) b[k * 40 + j] = 2;
  const Lens la = strided_lens(a.data(), FloatType::f32, 40, 1), lb = strided_lens(b.data(), FloatType::f32, 1, 40);
  const GemmOutput out{c.data(), 40, 1};
  const size_t bytes = gemm_workspace_bytes({5, 19, 9, {}}, la, lb, out, 1);
  gemm({5, 19, 9, {}}, la, lb, out, nullptr, {}, bytes ? memory_.work.take(bytes, true) : nullptr, 1);
  for (size_t i = 0; i < 5; ++i)
    for (size_t j = 0; j < 19; ++j) EXPECT_EQ(c[i * 40 + j], 18);
}

// The sizes of a LeNet or a small perceptron at batch 1 need no workspace at all, at batch 32 little.
TEST_P(Gemm, SmallProblemsNeedLittleWorkspace) {
  const auto plain = [](ptrdiff_t row, ptrdiff_t depth) { return strided_lens(nullptr, FloatType::f32, row, depth); };
  EXPECT_EQ(gemm_workspace_bytes({1, 128, 784, {}}, plain(784, 1), plain(784, 1), {nullptr, 128, 1}, 4), 0u);
  EXPECT_EQ(gemm_workspace_bytes({1, 784, 128, {}}, plain(128, 1), plain(1, 784), {nullptr, 784, 1}, 4), 0u);
  EXPECT_EQ(gemm_workspace_bytes({128, 784, 1, {}}, plain(1, 128), plain(1, 784), {nullptr, 784, 1}, 4), 0u);
  EXPECT_LE(gemm_workspace_bytes({32, 10, 128, {}}, plain(128, 1), plain(128, 1), {nullptr, 10, 1}, 4), 65536u);
  EXPECT_EQ(gemm_workspace_bytes({20, 20, 20, {}}, plain(20, 1), plain(20, 1), {nullptr, 20, 1}, 4), 0u);
  EXPECT_EQ(gemm_workspace_bytes({20, 20, 20, {}}, plain(1, 20), plain(1, 20), {nullptr, 1, 20}, 4), 0u);
}

}  // namespace
}  // namespace bnns

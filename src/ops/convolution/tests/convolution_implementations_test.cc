// Every entry of the tables of implementations.h, by name: with the entries before it left out it runs the problems
// that it accepts, on every instruction set and for several numbers of threads, against the reference and with guard
// pages. A table whose entry no problem reached on the widest instruction set fails. The README's tables are those of
// the code.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "src/gemm/bf16.h"
#include "src/ops/convolution/implementations.h"
#include "src/ops/convolution/tests/convolution_forms_testing.h"
#include "tests/support/implementations.h"

namespace bnns {
namespace {

using namespace bnns::testing;

constexpr size_t kEnough = 3;  // problems for each entry

// The data of a problem, its exact results, and the largest sum of |terms| of each of them.
struct Values {
  IntegerData data;
  double y = 0, dx = 0, dw = 0;

  explicit Values(const ConvolutionShape& s) : data(s, 21) {
    const auto absolute = [](const std::vector<float>& v) {
      std::vector<double> a = widen(v);
      for (double& x : a) x = std::fabs(x);
      return a;
    };
    const auto largest = [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); };
    const auto x = absolute(data.x), w = absolute(data.w);
    const auto gradients = ref::convolution_backward(s, x, w, absolute(data.dy));
    y = largest(ref::convolution_forward(s, x, w, absolute(data.b)));
    dx = largest(gradients.dx), dw = largest(gradients.dw);
  }
};

struct Case {
  ConvolutionShape shape;
  bool bf16 = false;
  mutable std::shared_ptr<Values> made = nullptr;

  const Values& values() const {  // made at the first use
    if (!made) made = std::make_shared<Values>(shape);
    return *made;
  }
};

// n, i, height, width, o, kernel, stride, pad, groups, dilation, transposed: at the edges of the blocks of each.
std::vector<Case> make_cases() {
  std::vector<Case> all = {
      // fill
      {make_shape(2, 3, 1, 1, 4, 3, 1, 6, 1, 6)},
      {make_shape(2, 3, 6, 7, 5, 1, 2, 0, 1, 1, true)},
      // depthwise
      {make_shape(3, 9, 14, 15, 9, 3, 1, 1, 9)},
      {make_shape(2, 9, 15, 16, 9, 3, 2, 1, 9)},
      {make_shape(2, 5, 13, 12, 5, 5, 1, 2, 5)},
      {make_shape(2, 5, 13, 12, 5, 4, 3, 1, 5)},
      // Winograd: 3x3, 4x4, 5x5, four phases; where the target of up is larger than its source
      {make_shape(3, 33, 13, 14, 37, 3, 1, 1)},
      {make_shape(2, 20, 17, 16, 24, 5, 1, 2)},
      {make_shape(2, 20, 18, 17, 24, 4, 1, 1)},
      {make_shape(2, 5, 33, 32, 32, 7, 2, 3)},
      {make_shape(8, 12, 31, 30, 40, 8, 2, 0)},
      {make_shape(8, 24, 18, 17, 40, 5, 1, 0)},
      {make_shape(2, 33, 14, 15, 40, 3, 1, 0)},
      {make_shape(2, 40, 12, 13, 33, 3, 1, 0, 1, 1, true)},
      {make_shape(3, 40, 9, 11, 13, 8, 2, 1, 1, 1, true)},
      // few channels, channels as lanes
      {make_shape(3, 3, 15, 13, 30, 5, 1, 2)},
      {make_shape(2, 9, 23, 31, 32, 3, 2, 1)},
      {make_shape(2, 4, 20, 26, 7, 3, 1, 1)},
      {make_shape(9, 4, 9, 9, 7, 3, 1, 1)},
      {make_shape(3, 6, 13, 17, 1, 5, 1, 2)},
      {make_shape(3, 2, 13, 17, 6, 5, 1, 2)},
      {make_shape(16, 6, 14, 14, 16, 5, 1, 0)},
      {make_shape(8, 12, 9, 9, 4, 5, 1, 0, 1, 1, true)},
      {make_shape(2, 3, 21, 22, 12, 5, 2, 2)},
      {make_shape(2, 12, 15, 16, 8, 4, 2, 1, 1, 1, true)},
      {make_shape(2, 24, 11, 11, 16, 3, 1, 1, 4)},
      // products; phases of a stride, in whole rows and not
      {make_shape(2, 30, 9, 28, 41, 1, 1, 0)},
      {make_shape(2, 26, 17, 18, 31, 3, 2, 1)},
      {make_shape(2, 26, 12, 13, 31, 3, 3, 1)},
      {make_shape(1, 14, 12, 17, 15, 3, 2, 2, 1, 2)},
      {make_shape(2, 64, 14, 14, 40, 1, 2, 0)},
  };
  const size_t count = all.size();
  for (size_t k = 0; k < count; ++k) {
    if (!all[k].shape.transposed) all.push_back({all[k].shape, true, nullptr});
  }
  return all;
}
const std::vector<Case>& cases() {
  static const std::vector<Case> all = make_cases();
  return all;
}

// The problems that a case brings to each table.
PatchMap patch_map(const Case& c, bool up) {
  PatchMap p = make_patch_map(map_of(c.shape), up, c.shape.n);
  p.bf16 = c.bf16 && has_pair_kernels(isa());
  return p;
}
std::vector<PatchMap> single_maps(const Case& c) {
  std::vector<PatchMap> maps = {patch_map(c, false)};
  const PatchMap up = patch_map(c, true);
  if (!up.is_strided()) {
    maps.push_back(up);
  } else if (!is_depthwise(up.map)) {
    for (size_t k = 0; k < up.phases_y() * up.phases_x(); ++k) {
      maps.push_back(up.phase(k / up.phases_x(), k % up.phases_x()));
    }
  }
  return maps;
}
std::vector<PatchMap> strided_maps(const Case& c) {
  const PatchMap up = patch_map(c, true);
  return up.is_strided() ? std::vector<PatchMap>{up} : std::vector<PatchMap>{};
}
std::vector<WeightMap> weight_maps(const Case& c) {
  WeightMap p = make_weight_map(map_of(c.shape), c.shape.n);
  p.bf16 = c.bf16 && has_pair_kernels(isa());
  return p.y.taps && p.x.taps ? std::vector<WeightMap>{p} : std::vector<WeightMap>{};
}

// Exact on integers, but where Winograd's algorithm ran: there the error is small beside the sum of |terms|.
void expect_results(const Case& c, const FormResults& got, const CallRecord& record) {
  char names[512];
  record.join(names, sizeof names);
  SCOPED_TRACE(names);
  const bool winograd = std::strstr(names, "winograd") != nullptr;
  const auto check = [&](const std::vector<double>& values, const std::vector<double>& want, double terms,
                         const char* what) {
    const auto bound = [&](size_t i) { return 256 * 0x1p-24 * terms + (c.bf16 ? std::fabs(want[i]) / 128 : 0); };
    if (winograd) {
      EXPECT_TRUE(within(values, want, want.size(), bound)) << what;
    } else {
      const BNNSDataType type = c.bf16 ? BNNSDataTypeBFloat16 : BNNSDataTypeFloat32;
      EXPECT_TRUE(within(values, rounded(type, want), want.size(), kExact)) << what;
    }
  };
  const Values& v = c.values();
  check(got.y, v.data.y, v.y, "y");
  check(got.dx, v.data.gradients.dx, v.dx, "dx");
  check(got.dw, v.data.gradients.dw, v.dw, "dw");
  EXPECT_TRUE(got.gaps_untouched);
}

bool runs_here(const std::string& name) {
  if (name.find("/bf16/") == std::string::npos) return true;
  return best_isa() >= (name.find("amx") == std::string::npos ? Isa::avx512_bf16 : Isa::amx);
}

template <class Entry, size_t N, class Problems>
void force_each(const Entry (&table)[N], Problems&& problems_of) {
  for (size_t k = 0; k < N; ++k) {
    SCOPED_TRACE(table[k].name);
    const Skip skip(names_before(table, k));
    size_t ran = 0;
    for_each_isa([&] {
      ran = 0;
      for (const Case& c : cases()) {
        bool accepted = false;
        for (const auto& p : problems_of(c)) accepted |= &find(table, p) == &table[k];
        if (!accepted || ran == kEnough) continue;
        SCOPED_TRACE(text(c.shape) + (c.bf16 ? " bf16" : ""));
        ++ran;
        const IntegerData& data = c.values().data;
        for (const size_t threads : kThreadCounts) {
          Form f;
          if (c.bf16) f.x_type = f.w_type = f.y_type = BNNSDataTypeBFloat16;
          f.threads = threads;
          const CallRecord record;
          const FormResults got = run_form(c.shape, f, data.x, data.w, data.b, data.dy);
          EXPECT_TRUE(record.has(table[k].name)) << threads << " threads";
          expect_results(c, got, record);
        }
      }
    });
    if (!runs_here(table[k].name)) {
      std::printf("%s: not on this CPU, which has no %s\n", table[k].name,
                  std::strstr(table[k].name, "amx") ? "AMX" : "AVX-512 BF16");
      continue;
    }
    EXPECT_GT(ran, 0u) << "no problem of this test reaches it";
  }
}

TEST(ConvolutionImplementations, EachMap) {
  force_each(kMaps, single_maps);
}

TEST(ConvolutionImplementations, EachMapOverAStride) {
  force_each(kStridedMaps, strided_maps);
}

TEST(ConvolutionImplementations, EachWeightGradient) {
  force_each(kWeightGradients, weight_maps);
}

TEST(ConvolutionImplementations, Integer) {
  const ConvolutionShape s = make_shape(2, 3, 6, 7, 4, 3, 1, 1);
  const IntegerData data(s, 22);
  ImageBatch x(s.n, s.i, s.ih, s.iw, BNNSDataTypeInt8), y(s.n, s.o, s.oh, s.ow, BNNSDataTypeInt32);
  Weights w(BNNSDataLayoutConvolutionWeightsOIHW, s, BNNSDataTypeInt8);
  x.fill(widen(data.x)), w.fill(widen(data.w));
  ConvolutionLayer layer(s, nullptr, nullptr, BNNSActivationFunctionIntegerLinearSaturate);
  layer.parameters.i_desc = x.descriptor(), layer.parameters.o_desc = y.descriptor();
  layer.parameters.w_desc = w.descriptor(), layer.parameters.activation.iscale = 1;
  for (const size_t threads : kThreadCounts) {
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    const CallRecord record;
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, x.data(), x.batch_stride(), y.data(), y.batch_stride()), 0);
    EXPECT_TRUE(record.has(kIntegerMaps[0].name));
    EXPECT_EQ(y.values(), ref::convolution_forward(s, widen(data.x), widen(data.w), {}));
    EXPECT_STREQ(BNNSExtImplementation(filter.get(), BNNSExtPassForward, s.n), "convolution/integer");
  }
}

// BNNSExtImplementation names what a call then records.
TEST(ConvolutionImplementations, AskedAndRun) {
  for_each_isa([&] {
    for (const Case& c : cases()) {
      const ConvolutionShape& s = c.shape;
      SCOPED_TRACE(text(s) + (c.bf16 ? " bf16" : ""));
      Form f;
      if (c.bf16) f.x_type = f.w_type = f.y_type = BNNSDataTypeBFloat16;
      const IntegerData& data = c.values().data;
      const CallRecord record;
      run_form(s, f, data.x, data.w, data.b, data.dy);
      ConvolutionLayer layer(s, data.w.data(), nullptr);
      layer.parameters.i_desc.data_type = layer.parameters.w_desc.data_type = layer.parameters.o_desc.data_type =
          f.x_type;
      const auto filter = layer.make();
      for (const auto pass : {BNNSExtPassForward, BNNSExtPassInputGradient, BNNSExtPassWeightsGradient}) {
        if (pass == BNNSExtPassWeightsGradient && weight_maps(c).empty()) continue;
        const char* name = BNNSExtImplementation(filter.get(), pass, s.n);
        ASSERT_TRUE(name) << BNNSExtLastError();
        EXPECT_TRUE(record.has(name)) << name << ", pass " << pass;
      }
    }
  });
}

TEST(ConvolutionImplementations, ReadmeHasTheTables) {
  const char* file = "src/ops/convolution/README.md";
  expect_table_in_readme(kMaps, "maps", file);
  expect_table_in_readme(kStridedMaps, "maps up over a stride", file);
  expect_table_in_readme(kIntegerMaps, "integer maps", file);
  expect_table_in_readme(kWeightGradients, "weight gradients", file);
}

}  // namespace
}  // namespace bnns

// Convolution: what goes wrong in other libraries, one test per class, named by its number. BC11 (adjoint identity) is
// in convolution_test.cc.

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// The values that memory may hold before a call: results must not depend on them.
const float kOld[] = {poison(), 0.0f, 1e30f};

// Scratch that holds a known value when it is handed out.
struct FilledScratch {
  static inline float value = 0;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    const int status = posix_memalign(memory, alignment, bytes);
    if (status == 0) std::fill_n(static_cast<float*>(*memory), bytes / sizeof(float), value);
    return status;
  }
  static void install(BNNSFilterParameters* options) {
    options->alloc_memory = alloc;
    options->free_memory = std::free;
  }
};

// Both passes into memory, and with scratch, that held `old`.
ConvolutionResults run_over(float old, const ConvolutionShape& s, const std::vector<float>& xs,
                            const std::vector<float>& ws, const std::vector<float>& bs, const std::vector<float>& dys) {
  FilledScratch::value = old;
  Guarded<float> x(xs), w(ws), b(bs), dy(dys), y(s.y_count()), dx(s.x_count()), dw(s.w_count()), db(s.o);
  for (auto* v : {&y, &dx, &dw, &db}) std::fill_n(v->data(), v->size(), old);
  ConvolutionLayer layer(s, w.data(), b.data());
  FilledScratch::install(&layer.options);
  const auto filter = layer.make();
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
  auto dx_desc = image(s.iw, s.ih, s.i, dx.data()), dy_desc = image(s.ow, s.oh, s.o, dy.data());
  auto dw_desc = layer.parameters.w_desc, db_desc = vector_descriptor(s.o, db.data());
  dw_desc.data = dw.data();
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                         &dw_desc, &db_desc),
            0)
      << BNNSExtLastError();
  const auto copy = [](Guarded<float>& v) { return std::vector<float>(v.data(), v.data() + v.size()); };
  return {copy(y), copy(dx), copy(dw), copy(db)};
}

void expect_same(const ConvolutionResults& a, const ConvolutionResults& b) {
  EXPECT_TRUE(same_bits(a.y, b.y)) << "y";
  EXPECT_TRUE(same_bits(a.dx, b.dx)) << "dx";
  EXPECT_TRUE(same_bits(a.dw, b.dw)) << "dw";
  EXPECT_TRUE(same_bits(a.db, b.db)) << "db";
}

struct NormalData {
  std::vector<float> x, w, b, dy;
  explicit NormalData(const ConvolutionShape& s, uint64_t seed = 5) {
    Random random(seed);
    x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o),
    dy = random.normals(s.y_count());
  }
};

// Input positions that no window reads get exactly +0.
TEST(ConvolutionBugClasses, BC12_PositionsNoWindowReadsAreZero) {
  ConvolutionShape surplus = make_shape(2, 3, 12, 13, 4, 3, 1, 0);
  surplus.oh = 5, surplus.ow = 6;
  ConvolutionShape dropped = make_shape(2, 3, 9, 8, 4, 2, 2, 0, 1, 1, true);  // contributions beyond the output
  dropped.oh = 7, dropped.ow = 5, dropped.top = 3;
  const NamedShape cases[] = {{"stride remainder", make_shape(2, 3, 12, 14, 4, 3, 4, 0)},
                              {"stride beyond the kernel", make_shape(2, 3, 11, 12, 4, 1, 3, 0)},
                              {"surplus pixels", surplus},
                              {"depthwise", make_shape(2, 5, 11, 12, 5, 2, 3, 0, 5)},
                              {"dilation with stride", make_shape(1, 2, 15, 16, 3, 2, 4, 0, 1, 2)},
                              {"transposed", dropped}};
  for_each_isa([&] {
    for (const NamedShape& c : cases) {
      const ConvolutionShape& s = c.shape;
      SCOPED_TRACE(c.name + std::string(" ") + text(s));
      std::vector<bool> read(s.x_count());
      ref::for_each_product(s, [&](size_t x, size_t, size_t) { read[x] = true; });
      size_t unread = 0;
      const NormalData d(s);
      for (const float old : kOld) {
        const auto got = run_over(old, s, d.x, d.w, d.b, d.dy);
        for (size_t j = 0; j < s.x_count(); ++j) {
          if (read[j]) continue;
          ++unread;
          ASSERT_EQ(bits(got.dx[j]), 0u) << j << " over " << old;
        }
      }
      EXPECT_GT(unread, 0u) << "the case has such positions";
    }
  });
}

// Overwrite never looks at what was there, in results or scratch, whole tiles or edges.
TEST(ConvolutionBugClasses, BC13_OldMemoryDoesNotLeakIn) {
  for_each_isa([&] {
    const auto same_over_all = [](const ConvolutionShape& s) {
      SCOPED_TRACE(text(s));
      const NormalData d(s);
      const auto zero = run_over(0.0f, s, d.x, d.w, d.b, d.dy);
      expect_same(zero, run_over(poison(), s, d.x, d.w, d.b, d.dy));
      expect_same(zero, run_over(1e30f, s, d.x, d.w, d.b, d.dy));
    };
    for (size_t o = 1; o <= 31; o += 2) same_over_all(make_shape(1, 3, 5, 6, o, 3, 1, 1));
    for (size_t i = 1; i <= 35; i += 2) same_over_all(make_shape(1, i, 5, 6, 5, 3, 1, 1));
    for (size_t width = 1; width <= 67; width += 3) same_over_all(make_shape(2, 3, 4, width, 5, 3, 1, 1));
    same_over_all(make_shape(1, 130, 6, 7, 33, 3, 1, 1));       // several depth blocks
    same_over_all(make_shape(2, 2, 30, 31, 3, 25, 1, 3));       // parts of a channel's taps
    same_over_all(make_shape(9, 16, 20, 20, 24, 3, 1, 1));      // slices
    same_over_all(make_shape(2, 19, 12, 35, 19, 3, 1, 1, 19));  // depthwise
    same_over_all(make_shape(2, 7, 15, 37, 7, 3, 2, 1, 7));     // depthwise, phases
    same_over_all(make_shape(2, 3, 20, 22, 5, 2, 3, 0));        // phases, some without taps
    same_over_all(make_shape(1, 2, 4, 5, 3, 2, 1, 5));          // idle taps
    same_over_all(make_shape(2, 10, 7, 8, 9, 4, 2, 1, 1, 1, true));
  });
}

// Accumulate is old + new, once, for every thread count; overwrite does not see old.
TEST(ConvolutionBugClasses, BC14_AccumulateAddsOnce) {
  const NamedShape cases[] = {{"slices of dW", make_shape(9, 16, 20, 20, 24, 3, 1, 2, 1, 2)},
                              {"several depth blocks", make_shape(3, 130, 9, 9, 30, 3, 1, 1)},
                              {"phases", make_shape(3, 8, 21, 22, 12, 3, 2, 1)},
                              {"stride beyond the kernel", make_shape(2, 8, 20, 22, 5, 2, 3, 0)},
                              {"depthwise", make_shape(4, 19, 32, 35, 19, 3, 1, 1, 19)},
                              {"depthwise phases", make_shape(4, 19, 32, 35, 19, 3, 2, 1, 19)},
                              {"idle taps", make_shape(1, 2, 2, 2, 3, 5, 1, 4)},
                              {"transposed", make_shape(3, 10, 9, 8, 9, 4, 2, 1, 1, 1, true)}};
  for (const NamedShape& c : cases) {
    const ConvolutionShape& s = c.shape;
    SCOPED_TRACE(c.name);
    Random random(6);
    const auto x = random.integers(s.x_count(), 2), w = random.integers(s.w_count(), 2), b = random.integers(s.o),
               dy = random.integers(s.y_count(), 2);
    const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
    for (const size_t threads : kThreadCounts) {
      for (const bool accumulate : {true, false}) {
        Form form;
        form.threads = threads, form.accumulate = accumulate, form.old = 1000;
        const double old = accumulate ? 1000 : 0;
        const auto got = run_form(s, form, x, w, b, dy);
        const auto plus_old = [&](std::vector<double> v) {
          for (double& e : v) e += old;
          return v;
        };
        EXPECT_EQ(got.dx, plus_old(want.dx)) << threads;
        EXPECT_EQ(got.dw, plus_old(want.dw)) << threads;
        EXPECT_EQ(got.db, plus_old(want.db)) << threads;
      }
    }
  }
}

// One logical problem through many layouts: equal bits, and gaps keep what they held.
TEST(ConvolutionBugClasses, BC15_EveryLayoutGivesTheSameBits) {
  const NamedShape cases[] = {{"rows", make_shape(3, 6, 19, 23, 20, 3, 1, 1)},
                              {"merged samples", make_shape(7, 9, 7, 7, 17, 3, 1, 1)},
                              {"merged samples, stride 2", make_shape(5, 5, 9, 9, 33, 3, 2, 1)},
                              {"long rows", make_shape(2, 3, 4, 300, 4, 3, 1, 1)},
                              {"weights in place", make_shape(1, 70, 5, 5, 31, 3, 1, 1)},
                              {"one by one", make_shape(3, 40, 13, 13, 37, 1, 1, 0)},
                              {"groups", make_shape(2, 12, 9, 10, 15, 3, 1, 1, 3)},
                              {"winograd, few tiles", make_shape(2, 33, 7, 9, 34, 3, 1, 1)},
                              {"winograd, many tiles", make_shape(9, 32, 15, 13, 33, 3, 1, 1)},
                              {"winograd, transposed", make_shape(1, 35, 6, 9, 32, 3, 1, 1, 1, 1, true)},
                              {"winograd 5x5", make_shape(4, 17, 9, 11, 23, 5, 1, 2)},
                              {"winograd 4x4", make_shape(4, 17, 10, 11, 23, 4, 1, 1)},
                              {"winograd, stride 2", make_shape(8, 3, 33, 30, 32, 7, 2, 3)},
                              {"winograd, from the small side", make_shape(8, 13, 11, 12, 33, 5, 1, 0)},
                              {"one by one, stride 2", make_shape(2, 12, 14, 14, 9, 1, 2, 0)},
                              {"depthwise", make_shape(2, 7, 12, 35, 7, 3, 1, 1, 7)},
                              {"depthwise, stride 2", make_shape(2, 7, 15, 37, 7, 3, 2, 1, 7)},
                              {"transposed", make_shape(3, 10, 7, 8, 9, 4, 2, 1, 1, 1, true)}};
  for_each_isa([&] {
    for (const NamedShape& c : cases) {
      const ConvolutionShape& s = c.shape;
      const NormalData d(s);
      for (const auto& [function, accumulate] : {std::pair{BNNSActivationFunctionIdentity, false},
                                                 {BNNSActivationFunctionTanh, true},
                                                 {BNNSActivationFunctionSiLU, false}}) {
        Form dense(function);
        dense.accumulate = accumulate, dense.old = 0.75;
        const auto want = run_form(s, dense, d.x, d.w, d.b, d.dy);
        std::vector<Form> forms(8, dense);
        forms[0].x = forms[0].dx = {1, 1};  // padded rows, channels and samples
        forms[1].y = forms[1].dy = {1, 5};
        forms[2].w = forms[2].dw = {1, 3};
        forms[3].x = forms[3].y = forms[3].w = {2, 0};  // every second element
        forms[4].dx = forms[4].dy = forms[4].dw = {3, 1};
        forms[5].dy = {1, 2}, forms[5].y = {2, 1}, forms[5].dx = {2, 0};  // y and dy differ
        forms[6].x = forms[6].y = forms[6].w = forms[6].dx = forms[6].dy = forms[6].dw = {1, 64};
        forms[7].w_layout = BNNSDataLayoutConvolutionWeightsOIHrWr;  // the same weights, turned
        if (s.groups == 1) {
          forms.push_back(dense);
          forms.back().w_layout = BNNSDataLayoutConvolutionWeightsIOHrWr;  // and transposed
          forms.push_back(dense);
          forms.back().w_layout = BNNSDataLayoutConvolutionWeightsOIHW_Pack32;
        }
        for (size_t f = 0; f < forms.size(); ++f) {
          SCOPED_TRACE(c.name + std::string(", layout ") + std::to_string(f) + ", activation " +
                       std::to_string(function));
          const auto got = run_form(s, forms[f], d.x, d.w, d.b, d.dy);
          EXPECT_EQ(got.y, want.y);
          EXPECT_EQ(got.dx, want.dx);
          EXPECT_EQ(got.dw, want.dw);
          EXPECT_EQ(got.db, want.db);
          EXPECT_TRUE(got.gaps_untouched);
        }
      }
    }
  });
}

// ---- BC16 ---------------------------------------------------------------------------------------------------------

// Sums of products in f32, in the order of the reference: the direct path that others are measured against.
ConvolutionResults direct_f32(const ConvolutionShape& s, const NormalData& d) {
  ConvolutionResults r{std::vector<float>(s.y_count()), std::vector<float>(s.x_count()),
                       std::vector<float>(s.w_count()), std::vector<float>(s.o)};
  for (size_t j = 0; j < r.y.size(); ++j) r.y[j] = d.b[j / (s.oh * s.ow) % s.o];
  ref::for_each_product(s, [&](size_t x, size_t w, size_t y) {
    r.y[y] += d.w[w] * d.x[x];
    r.dx[x] += d.w[w] * d.dy[y];
    r.dw[w] += d.x[x] * d.dy[y];
  });
  return r;
}

// The largest error of y, dx and dw, each in eps * sum|terms|.
struct Errors {
  double y = 0, dx = 0, dw = 0;
};

// A problem with its exact results, the sums of |terms|, and how far plain f32 sums are off.
struct Measure {
  ConvolutionShape s;
  NormalData d;
  std::vector<double> y, y_terms;
  ref::ConvolutionGradients gradients, terms;
  Errors direct;

  explicit Measure(const ConvolutionShape& shape) : s(shape), d(shape, shape.i) {
    const auto absolute = [](std::vector<double> v) {
      for (double& e : v) e = std::fabs(e);
      return v;
    };
    const auto x = widen(d.x), w = widen(d.w), b = widen(d.b), dy = widen(d.dy);
    y = ref::convolution_forward(s, x, w, b);
    y_terms = ref::convolution_forward(s, absolute(x), absolute(w), absolute(b));
    gradients = ref::convolution_backward(s, x, w, dy);
    terms = ref::convolution_backward(s, absolute(x), absolute(w), absolute(dy));
    direct = errors(direct_f32(s, d));
  }
  Errors errors(const ConvolutionResults& got) const {
    const auto largest = [](const auto& values, const auto& exact, const auto& size) {
      double result = 0;
      for (size_t j = 0; j < values.size(); ++j) {
        if (size[j] > 0) result = std::max(result, std::fabs(double(values[j]) - exact[j]) / (0x1p-24 * size[j]));
      }
      return result;
    };
    return {largest(got.y, y, y_terms), largest(got.dx, gradients.dx, terms.dx),
            largest(got.dw, gradients.dw, terms.dw)};
  }
  // Our errors, which are at most four times those of plain sums.
  Errors run() const {
    SCOPED_TRACE(text(s));
    const Errors ours = errors(run_convolution(s, d.x, d.w, d.b, d.dy));
    EXPECT_LE(ours.y, 4 * direct.y);
    EXPECT_LE(ours.dx, 4 * direct.dx);
    EXPECT_LE(ours.dw, 4 * direct.dw);
    return ours;
  }
};

// No path has more than 4 times the error of plain sums, and no channel count is much worse than its neighbours.
TEST(ConvolutionBugClasses, BC16_NoPathIsLessAccurate) {
  for (const size_t middle : {32, 64}) {
    for (const size_t kernel : {1, 3}) {
      std::vector<Measure> sweep;
      for (size_t c = middle - 2; c <= middle + 2; ++c)
        sweep.emplace_back(make_shape(1, c, 9, 10, c, kernel, 1, kernel / 2));
      for_each_isa([&] {
        Errors least = {1e9, 1e9, 1e9}, most;
        for (const Measure& m : sweep) {
          const Errors e = m.run();
          least = {std::min(least.y, e.y), std::min(least.dx, e.dx), std::min(least.dw, e.dw)};
          most = {std::max(most.y, e.y), std::max(most.dx, e.dx), std::max(most.dw, e.dw)};
        }
        // Each is the largest of thousands of errors of the same kind: 4 between neighbours would be a jump. From 32
        // channels on 3x3 layers use Winograd's algorithm, which may cost 4 times the error of plain sums (above),
        // while blocked sums have down to half of it: 8.
        const double jump = kernel == 3 && middle == 32 ? 8 : 4;
        EXPECT_LE(most.y, jump * least.y);
        EXPECT_LE(most.dx, jump * least.dx);
        EXPECT_LE(most.dw, jump * least.dw);
      });
    }
  }
  for (const ConvolutionShape& s :
       {make_shape(2, 9, 21, 40, 9, 3, 1, 1, 9),  make_shape(2, 9, 21, 40, 9, 5, 2, 2, 9),
        make_shape(8, 16, 12, 12, 12, 3, 2, 1),   make_shape(2, 3, 40, 41, 8, 7, 2, 3),
        make_shape(2, 12, 9, 10, 15, 3, 1, 1, 3), make_shape(2, 8, 12, 12, 8, 4, 2, 1, 1, 1, true),
        make_shape(4, 20, 12, 14, 50, 5, 1, 0),   make_shape(4, 16, 12, 14, 32, 4, 1, 0),
        make_shape(4, 3, 40, 41, 64, 7, 2, 0),    make_shape(4, 16, 20, 21, 16, 9, 2, 0),
        make_shape(4, 16, 12, 14, 32, 5, 1, 2),   make_shape(8, 3, 40, 41, 64, 7, 2, 3),
        make_shape(8, 3, 33, 30, 32, 7, 2, 5),    make_shape(8, 3, 33, 30, 32, 7, 2, 6),
        make_shape(8, 3, 33, 30, 32, 8, 2, 6),    make_shape(4, 16, 12, 14, 32, 4, 1, 3),
        make_shape(4, 16, 12, 14, 32, 5, 1, 4),   make_shape(4, 16, 12, 14, 32, 9, 2, 7),
        make_shape(4, 32, 12, 14, 32, 3, 1, 2),   make_shape(8, 32, 12, 14, 32, 3, 1, 0),
        make_shape(8, 32, 26, 26, 64, 3, 1, 0),   make_shape(8, 32, 12, 14, 32, 3, 1, 1),
        make_shape(4, 16, 12, 14, 32, 4, 1, 2),   make_shape(8, 3, 33, 30, 32, 8, 2, 3),
        make_shape(8, 20, 12, 12, 50, 5, 1, 0),   make_shape(1, 36, 11, 16, 64, 3, 1, 0),
        make_shape(2, 37, 12, 15, 32, 3, 1, 0),   make_shape(8, 32, 11, 16, 32, 3, 1, 0),
        make_shape(1, 40, 15, 18, 32, 3, 1, 0),   make_shape(3, 65, 14, 19, 40, 3, 1, 0),
        make_shape(1, 32, 79, 29, 32, 3, 1, 0),   make_shape(1, 200, 14, 15, 150, 3, 1, 0),
        make_shape(1, 28, 13, 15, 33, 4, 1, 0),   make_shape(2, 33, 12, 15, 32, 5, 1, 0),
        make_shape(1, 8, 24, 27, 32, 7, 2, 1),    make_shape(1, 8, 21, 24, 32, 9, 2, 1)}) {
    const Measure m(s);
    for_each_isa([&] { m.run(); });
  }
}

// Sums of extreme 8-bit products are exact on every instruction set: no 16-bit saturation, -128 is a number.
TEST(ConvolutionBugClasses, BC17_ExtremeBytesSumExactly) {
  const ConvolutionShape s = make_shape(2, 24, 6, 7, 5, 3, 1, 1);  // 216 products, each at most 32640: below 2^24
  for_each_isa([&] {
    for (const bool unsigned_x : {false, true}) {
      for (const bool integer : {true, false}) {
        for (const bool all_extreme : {true, false}) {
          Random random(7);
          constexpr double kSigned[] = {-128, -127, 0, 127}, kUnsigned[] = {0, 255};
          std::vector<double> x(s.x_count()), w(s.w_count());
          for (double& v : x)
            v = unsigned_x ? (all_extreme ? 255 : kUnsigned[random.below(2)])
                           : (all_extreme ? -128 : kSigned[random.below(4)]);
          for (double& v : w) v = all_extreme ? -128 : kSigned[random.below(4)];
          ImageBatch xs(s.n, s.i, s.ih, s.iw, unsigned_x ? BNNSDataTypeUInt8 : BNNSDataTypeInt8);
          ImageBatch ys(s.n, s.o, s.oh, s.ow, BNNSDataTypeInt32);
          Weights ws(BNNSDataLayoutConvolutionWeightsOIHW, s, BNNSDataTypeInt8);
          xs.fill(x), ws.fill(w);
          ConvolutionLayer layer(s, nullptr, nullptr);
          layer.parameters.i_desc = xs.descriptor(), layer.parameters.w_desc = ws.descriptor();
          layer.parameters.o_desc = ys.descriptor();
          if (integer) {
            layer.parameters.activation.function = BNNSActivationFunctionIntegerLinearSaturate;
            layer.parameters.activation.iscale = 1;
          }
          ASSERT_EQ(BNNSFilterApplyBatch(layer.make().get(), s.n, xs.data(), 0, ys.data(), 0), 0) << BNNSExtLastError();
          EXPECT_EQ(ys.values(), ref::convolution_forward(s, x, w, {}));
        }
      }
    }
  });
}

// Whole numbers through all passes, against the reference.
template <class Bound>
void check_all_passes(const ConvolutionShape& s, unsigned seed, const Bound& bound) {
  SCOPED_TRACE(text(s));
  Random random(seed);
  const auto x = random.integers(s.x_count()), w = random.integers(s.w_count()), b = random.integers(s.o),
             dy = random.integers(s.y_count());
  const auto got = run_convolution(s, x, w, b, dy);
  EXPECT_TRUE(within(got.y, ref::convolution_forward(s, widen(x), widen(w), widen(b)), s.y_count(), bound)) << "y";
  const auto r = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
  EXPECT_TRUE(within(got.dx, r.dx, s.x_count(), bound)) << "dx";
  EXPECT_TRUE(within(got.dw, r.dw, s.w_count(), bound)) << "dw";
  EXPECT_TRUE(within(got.db, r.db, s.o, bound)) << "db";
}

// Every extent over 1 .. 2 tiles + 1, one at a time; groups of 3, 5 and 7 channels.
TEST(ConvolutionBugClasses, BC18_EveryRemainder) {
  for_each_isa([&] {
    const auto exact = [](const ConvolutionShape& s) { check_all_passes(s, 8, kExact); };
    for (const size_t stride : {1, 2}) {
      for (size_t v = 1; v <= 65; ++v) exact(make_shape(1, 2, 3, v, 3, 3, stride, 1));          // width
      for (size_t v = 1; v <= 33; ++v) exact(make_shape(1, 2, v, 9, 3, 3, stride, 1));          // height
      for (size_t v = 1; v <= 65; ++v) exact(make_shape(1, v, 4, 5, 3, 3, stride, 1));          // inputs
      for (size_t v = 1; v <= 65; ++v) exact(make_shape(1, 3, 4, 5, v, 3, stride, 1));          // outputs
      for (size_t v = 1; v <= 33; ++v) exact(make_shape(v, 2, 3, 4, 3, 3, stride, 1));          // batch
      for (size_t v = 1; v <= 17; ++v) exact(make_shape(1, 2, 17, 18, 3, v, stride, v / 2));    // kernel
      for (size_t v = 1; v <= 65; ++v) exact(make_shape(1, 3, 3, v, 3, 3, stride, 1, 3));       // depthwise width
      for (size_t v = 1; v <= 9; ++v) exact(make_shape(1, 3, 12, 13, 3, v, stride, v / 2, 3));  // depthwise kernel
      for (size_t v = 1; v <= 33; ++v) exact(make_shape(1, 2, 3, v, 3, 3, stride, 1, 1, 1, true));
      for (const size_t g : {3, 5, 7}) {
        for (size_t v = 1; v <= 7; ++v) exact(make_shape(2, 3 * g, 5, 6, v * g, 3, stride, 1, g));
        for (size_t v = 1; v <= 7; ++v) exact(make_shape(2, v * g, 5, 6, 2 * g, 3, stride, 1, g));
        exact(make_shape(2, 2 * g, 5, 6, 3 * g, 3, stride, 1, g, 1, true));
      }
    }
    for (size_t v = 1; v <= 9; ++v) exact(make_shape(1, 2, 20, 21, 3, 3, 1, 2, 1, v));  // dilation
    for (size_t v = 1; v <= 9; ++v) exact(make_shape(1, 2, 20, 21, 3, 3, v, 2, 1, 2));  // stride
  });
}

// A table of algorithms, or a remembered size, that does not look at a field of the problem serves the wrong one. Every
// field in turn is changed alone, and the two problems take turns.
TEST(ConvolutionBugClasses, BC56_ProblemsThatDifferInOneField) {
  const ConvolutionShape bases[] = {make_shape(2, 8, 12, 14, 16, 3, 1, 1), make_shape(2, 16, 12, 14, 16, 3, 1, 1, 16),
                                    make_shape(2, 8, 13, 14, 16, 3, 2, 1), make_shape(1, 32, 9, 10, 32, 3, 1, 1),
                                    make_shape(2, 8, 12, 14, 16, 4, 2, 1, 1, 1, true)};
  size_t ConvolutionShape::*const fields[] = {&ConvolutionShape::n,   &ConvolutionShape::ih,  &ConvolutionShape::iw,
                                              &ConvolutionShape::kh,  &ConvolutionShape::kw,  &ConvolutionShape::sy,
                                              &ConvolutionShape::sx,  &ConvolutionShape::dy,  &ConvolutionShape::dx,
                                              &ConvolutionShape::top, &ConvolutionShape::left};
  const auto kWhole = [](size_t) { return 0.25; };  // Winograd's sums of whole numbers are not exact
  for_each_isa([&] {
    for (const ConvolutionShape& base : bases) {
      const auto beside = [&](ConvolutionShape other) {
        other = fitted(other);
        for (const auto& s : {other, base}) check_all_passes(s, 9, kWhole);
      };
      for (const auto field : fields) {
        ConvolutionShape other = base;
        ++(other.*field);
        beside(other);
      }
      ConvolutionShape twice = base;  // channels and groups
      twice.i *= 2, twice.o *= base.groups == 1 ? 1 : 2;
      beside(twice);
      twice.groups *= 2;
      beside(twice);
      twice = base, twice.o *= 2;
      beside(twice);
    }
  });
}

}  // namespace
}  // namespace bnns

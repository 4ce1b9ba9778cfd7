// Convolution in all its forms: weight layouts, optional arguments, geometry, memory. Types are in
// convolution_types_test.cc, activations in convolution_activation_test.cc.

#include <gtest/gtest.h>

#include <thread>

#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// ---- weights ------------------------------------------------------------------------------------------------------

// An asymmetric kernel and extents that differ: a wrong axis or a missing rotation shows. dW comes in the same layout.
TEST(ConvolutionForms, FourWeightLayouts) {
  ConvolutionShape s;
  s.n = 3, s.i = 5, s.o = 35, s.ih = 7, s.iw = 9, s.kh = 3, s.kw = 2, s.sy = 2, s.top = 1;  // O: 32 and 3 of Pack32
  std::vector<ConvolutionShape> shapes = {fitted(s)};
  s.transposed = true;
  shapes.push_back(fitted(s));
  s.o = 64;
  shapes.push_back(fitted(s));
  s.o = 4, s.i = 2, s.n = 1;
  shapes.push_back(fitted(s));
  for_each_isa([&] {
    for (const auto& shape : shapes) {
      const IntegerData data(shape, 1);
      for (const auto layout : kWeightLayouts) {
        for (const auto type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16}) {
          SCOPED_TRACE(text(shape) + " layout " + std::to_string(layout) + " type " + std::to_string(type));
          Form form;
          form.w_layout = layout, form.w_type = type;
          expect_exact(data, run_form(shape, form, data.x, data.w, data.b, data.dy));
        }
      }
    }
  });
}

TEST(ConvolutionForms, RotatedWeightsWithGroups) {
  for (const ConvolutionShape& s : {make_shape(2, 6, 8, 9, 9, 3, 1, 1, 3), make_shape(2, 5, 9, 8, 5, 3, 2, 1, 5)}) {
    const IntegerData data(s, 2);
    Form form;
    form.w_layout = BNNSDataLayoutConvolutionWeightsOIHrWr;
    for (const Spacing spacing : {Spacing{1, 0}, Spacing{2, 3}}) {
      form.w = form.dw = spacing;
      expect_exact(data, run_form(s, form, data.x, data.w, data.b, data.dy));
    }
  }
}

// ---- optional arguments -------------------------------------------------------------------------------------------

TEST(ConvolutionForms, EveryCombinationOfGradients) {
  for (const ConvolutionShape& s : {make_shape(3, 4, 9, 8, 5, 3, 1, 1), make_shape(2, 6, 9, 8, 6, 3, 2, 1, 6),
                                    make_shape(2, 3, 6, 5, 4, 3, 2, 1, 1, 1, true)}) {
    Random random(9);
    const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o),
               dy = random.normals(s.y_count());
    for (const auto function :
         {BNNSActivationFunctionIdentity, BNNSActivationFunctionTanh, BNNSActivationFunctionSiLU}) {
      Form form(function);
      const auto all = run_form(s, form, x, w, b, dy);
      for (unsigned mask = 0; mask < 8; ++mask) {
        form.use_dx = mask & 1, form.use_dw = mask & 2, form.use_db = mask & 4;
        const auto some = run_form(s, form, x, w, b, dy);
        const auto want = [](bool used, const std::vector<double>& v) {
          return used ? v : std::vector<double>(v.size(), kUntouched);
        };
        EXPECT_EQ(some.dx, want(form.use_dx, all.dx)) << mask;
        EXPECT_EQ(some.dw, want(form.use_dw, all.dw)) << mask;
        EXPECT_EQ(some.db, want(form.use_db, all.db)) << mask;
      }
    }
  }
}

TEST(ConvolutionForms, VectorDescriptorsForDeltas) {
  for (const auto layout : kWeightLayouts) {
    const ConvolutionShape s = make_shape(2, 3, 7, 6, 32, 3, 1, 1);  // Pack32 without padding
    const IntegerData data(s, 10);
    Form form;
    form.w_layout = layout, form.vectors = true;
    expect_exact(data, run_form(s, form, data.x, data.w, data.b, data.dy));
  }
}

// in is needed for dW alone, out for no gradient of an identity layer.
TEST(ConvolutionForms, DataThatIsNotNeededMayBeNull) {
  const ConvolutionShape s = make_shape(2, 3, 7, 6, 4, 3, 1, 1);
  IntegerData data(s, 11);
  const auto filter = ConvolutionLayer(s, data.w.data(), data.b.data()).make();
  std::vector<float> dx(s.x_count()), db(s.o);
  auto dx_desc = image(s.iw, s.ih, s.i, dx.data()), dy_desc = image(s.ow, s.oh, s.o, data.dy.data());
  auto db_desc = vector_descriptor(s.o, db.data());
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                         &db_desc),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(within(dx, data.gradients.dx, dx.size(), kExact));
  EXPECT_TRUE(within(db, data.gradients.db, db.size(), kExact));
}

// K6: nothing is written, but a parameter gradient that is not accumulated becomes 0.
TEST(ConvolutionForms, BatchZero) {
  for (const auto layout : kWeightLayouts) {
    for (const bool accumulate : {false, true}) {
      const ConvolutionShape s = make_shape(1, 3, 5, 5, 4, 3, 1, 1);
      const IntegerData data(s, 12);
      Weights ws(layout, s), dws(layout, s);
      ws.fill(widen(data.w)), dws.fill(std::vector<double>(s.w_count(), 7));
      ConvolutionLayer layer(s, nullptr, data.b.data(), BNNSActivationFunctionSiLU);
      layer.parameters.w_desc = ws.descriptor();
      const auto filter = layer.make();
      float y = 7, dx = 7;
      std::vector<float> db(s.o, 7), dy(s.y_count());
      ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, &y, 0), 0) << BNNSExtLastError();
      auto dx_desc = image(s.iw, s.ih, s.i, &dx), dy_desc = image(s.ow, s.oh, s.o, dy.data());
      auto dw_desc = dws.descriptor(), db_desc = vector_descriptor(s.o, db.data());
      if (accumulate) dx_desc.flags = dw_desc.flags = db_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 0, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                             &dw_desc, &db_desc),
                0)
          << BNNSExtLastError();
      const double left = accumulate ? 7 : 0;
      EXPECT_EQ(y, 7);
      EXPECT_EQ(dx, 7);
      EXPECT_EQ(dws.values(), std::vector<double>(s.w_count(), left));
      EXPECT_EQ(widen(db), std::vector<double>(s.o, left));
      EXPECT_TRUE(dws.gaps_untouched());
    }
  }
}

// Samples of an input may overlap: the batch stride is the caller's.
TEST(ConvolutionForms, OverlappingInputSamples) {
  const ConvolutionShape s = make_shape(3, 2, 6, 7, 4, 3, 1, 1);
  Random random(13);
  const size_t stride = 5, sample = s.i * s.ih * s.iw;
  const auto memory = random.integers(sample + 2 * stride), w = random.integers(s.w_count());
  std::vector<double> x;
  for (size_t n = 0; n < s.n; ++n) x.insert(x.end(), &memory[n * stride], &memory[n * stride] + sample);
  std::vector<float> y(s.y_count());
  ASSERT_EQ(BNNSFilterApplyBatch(ConvolutionLayer(s, w.data(), nullptr).make().get(), s.n, memory.data(), stride,
                                 y.data(), 0),
            0);
  EXPECT_TRUE(within(y, ref::convolution_forward(s, x, widen(w), {}), y.size(), kExact));
}

// dX is the last result, so it may take the place of X.
TEST(ConvolutionForms, InputGradientMayReplaceInput) {
  for (const auto function : {BNNSActivationFunctionTanh, BNNSActivationFunctionSiLU}) {
    const ConvolutionShape s = make_shape(3, 4, 9, 8, 5, 3, 1, 1);
    IntegerData data(s, 19);
    const Form form(function);
    const auto want = run_form(s, form, data.x, data.w, data.b, data.dy);
    const auto filter = ConvolutionLayer(s, data.w.data(), data.b.data(), function).make();
    std::vector<float> y(s.y_count()), dw(s.w_count()), db(s.o);
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, data.x.data(), 0, y.data(), 0), 0);
    auto dx_desc = image(s.iw, s.ih, s.i, data.x.data()), dy_desc = image(s.ow, s.oh, s.o, data.dy.data());
    auto dw_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {s.kw, s.kh, s.i, s.o}, dw.data());
    auto db_desc = vector_descriptor(s.o, db.data());
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, data.x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                           &dw_desc, &db_desc),
              0)
        << BNNSExtLastError();
    EXPECT_EQ(widen(data.x), want.dx);
    EXPECT_EQ(widen(dw), want.dw);
    EXPECT_EQ(widen(db), want.db);
  }
}

// Anything with anything: random geometry, layouts, strides, types, flags and threads, exact on integers.
TEST(ConvolutionForms, RandomForms) {
  Random random(20);
  constexpr BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  const Isa isas[] = {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};
  for (size_t round = 0; round < 1000; ++round) {
    set_max_isa(std::min(isas[round % 5], best_isa()));
    const ConvolutionShape s = random_shape(random, random.below(3) == 0);
    const IntegerData data(s, round);
    Form f;
    const auto spacing = [&] {
      return Spacing{1 + random.below(2) * random.below(3), random.below(2) * random.below(5)};
    };
    f.x = spacing(), f.w = spacing(), f.y = spacing(), f.dx = spacing(), f.dw = spacing(), f.dy = spacing();
    f.w_layout = kWeightLayouts[random.below(s.groups > 1 ? 2 : 4)];
    if (!s.transposed)
      f.x_type = types[random.below(3)], f.w_type = types[random.below(3)], f.y_type = types[random.below(3)];
    f.threads = 1 + random.below(4);
    f.accumulate = random.below(2), f.old = f.accumulate ? 2 : 12345;
    SCOPED_TRACE("round " + std::to_string(round) + ": " + text(s));
    const auto got = run_form(s, f, data.x, data.w, data.b, data.dy);
    const auto plus_old = [&](BNNSDataType type, std::vector<double> v) {
      for (double& e : v) e += f.accumulate ? 2 : 0;
      return rounded(type, v);
    };
    ASSERT_EQ(got.y, rounded(f.y_type, data.y));
    ASSERT_EQ(got.dx, plus_old(f.x_type, data.gradients.dx));
    ASSERT_EQ(got.dw, plus_old(f.w_type, data.gradients.dw));
    ASSERT_EQ(got.db, plus_old(BNNSDataTypeFloat32, data.gradients.db));
    ASSERT_TRUE(got.gaps_untouched);
  }
  set_max_isa(best_isa());
}

// ---- geometry -----------------------------------------------------------------------------------------------------

// The fields of the struct: x_padding and y_padding, or pad = left, right, up, down; 0 means 1 in steps and groups.
TEST(ConvolutionForms, PaddingFieldsAndDefaults) {
  ConvolutionShape s;
  s.i = 2, s.o = 3, s.ih = 6, s.iw = 5, s.kh = 3, s.kw = 2, s.left = 1, s.top = 2;
  s = fitted(s, 2, 1);
  const IntegerData data(s, 14);
  const auto apply = [&](auto change) {
    ConvolutionLayer layer(s, data.w.data(), data.b.data());
    change(layer.parameters);
    std::vector<float> y(s.y_count());
    EXPECT_EQ(BNNSFilterApply(layer.make().get(), data.x.data(), y.data()), 0) << BNNSExtLastError();
    return y;
  };
  const auto symmetric = [](BNNSLayerParametersConvolution& p) {
    p.x_padding = 1, p.y_padding = 2;
    for (size_t& side : p.pad) side = 99;  // not looked at
    p.x_stride = p.y_stride = p.x_dilation_stride = p.y_dilation_stride = p.groups = 0;
  };
  EXPECT_TRUE(within(apply(symmetric), data.y, data.y.size(), kExact));

  ConvolutionShape sided = s;  // as many pixels, other sides
  sided.left = 2, sided.top = 1;
  const auto want = ref::convolution_forward(sided, widen(data.x), widen(data.w), widen(data.b));
  const auto four = [](BNNSLayerParametersConvolution& p) { p.pad[0] = 2, p.pad[1] = 0, p.pad[2] = 1, p.pad[3] = 3; };
  EXPECT_TRUE(within(apply(four), want, want.size(), kExact));
  // One symmetric field is enough to switch pad off: y_padding alone leaves no columns.
  ConvolutionShape rows = s;
  rows.left = 0;
  rows.ow = 4, rows.top = 2;
  const IntegerData row_data(rows, 15);
  ConvolutionLayer layer(rows, row_data.w.data(), row_data.b.data());
  layer.parameters.y_padding = 2, layer.parameters.pad[0] = 1;
  std::vector<float> y(rows.y_count());
  ASSERT_EQ(BNNSFilterApply(layer.make().get(), row_data.x.data(), y.data()), 0) << BNNSExtLastError();
  EXPECT_TRUE(within(y, row_data.y, y.size(), kExact));
}

// Geometry at its limits: padding, kernel, step or dilation larger than the image, windows that see nothing, steps that
// are never made. Right results, in bounded memory.
TEST(ConvolutionForms, ExtremeGeometry) {
  const auto shape = [](size_t size, size_t k, size_t stride, size_t dilation, size_t pad, size_t out, size_t c = 2,
                        size_t groups = 1) {
    ConvolutionShape s;
    s.n = 2, s.i = s.o = c, s.groups = groups, s.ih = s.iw = size, s.kh = s.kw = k, s.sy = s.sx = stride,
    s.dy = s.dx = dilation, s.top = s.left = pad, s.oh = s.ow = out;
    return s;
  };
  const NamedShape cases[] = {
      {"padding hides the image", shape(3, 2, 1, 1, 50, 20)},
      {"padding far beyond", shape(3, 3, 7, 1, 1000, 290)},
      {"kernel larger than the image", shape(2, 9, 1, 1, 5, 4)},
      {"one pixel", shape(1, 3, 1, 1, 1, 1)},
      {"stride larger than the image", shape(5, 2, 11, 1, 13, 3)},
      {"a stride that is never made", shape(4, 3, size_t{1} << 60, 1, 0, 1)},
      {"a dilation that is never made", shape(4, 1, 1, size_t{1} << 60, 0, 4)},
      {"a wide dilation, one tap inside", shape(9, 3, 1, 100000, 100000, 9)},
      {"a wide dilation, no tap inside", shape(9, 2, 1, 100000, 50000, 9)},
      {"first or last tap inside", shape(9, 2, 300, 300, 300, 2)},
      {"depthwise, one tap inside", shape(9, 3, 1, 100000, 100000, 9, 4, 4)},
      {"depthwise, no tap inside", shape(9, 2, 1, 100000, 50000, 9, 4, 4)},
      {"depthwise, large stride", shape(5, 2, 11, 1, 13, 3, 3, 3)},
  };
  for (const NamedShape& c : cases) {
    for (const bool transposed : {false, true}) {
      ConvolutionShape s = c.shape;
      s.transposed = transposed;
      if (transposed) std::swap(s.ih, s.oh), std::swap(s.iw, s.ow);
      SCOPED_TRACE(c.name + std::string(" ") + text(s));
      const IntegerData data(s, 16);
      for (const auto layout : {BNNSDataLayoutConvolutionWeightsOIHW, BNNSDataLayoutConvolutionWeightsOIHrWr}) {
        for (const auto type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16}) {
          Form form;
          form.w_layout = layout, form.w_type = type;
          expect_exact(data, run_form(s, form, data.x, data.w, data.b, data.dy));
          form.accumulate = true, form.old = 0;
          expect_exact(data, run_form(s, form, data.x, data.w, data.b, data.dy));
        }
      }
    }
  }
}

TEST(ConvolutionForms, LegacyConstructor) {
  ConvolutionShape s;
  s.i = 3, s.o = 4, s.ih = 6, s.iw = 7, s.kh = 2, s.kw = 3, s.sx = 2, s.left = 1, s.top = 2;
  s = fitted(s);
  const IntegerData data(s, 17);
  ImageBatch x(1, s.i, s.ih, s.iw, BNNSDataTypeFloat32, {1, 3}), y(1, s.o, s.oh, s.ow, BNNSDataTypeFloat32, {1, 2});
  x.fill(widen(data.x));
  const auto stack = [](ImageBatch& b) {
    const auto d = b.descriptor();
    BNNSImageStackDescriptor result;
    std::memset(&result, 0, sizeof result);
    result.width = d.size[0], result.height = d.size[1], result.channels = d.size[2];
    result.row_stride = d.stride[1], result.image_stride = d.stride[2];
    result.data_type = BNNSDataTypeFloat32;
    return result;
  };
  BNNSImageStackDescriptor in = stack(x), out = stack(y);
  BNNSConvolutionLayerParameters p;
  std::memset(&p, 0, sizeof p);
  p.x_stride = 2, p.x_padding = 1, p.y_padding = 2;  // y_stride 0 means 1
  p.k_width = s.kw, p.k_height = s.kh, p.in_channels = s.i, p.out_channels = s.o;
  p.weights.data = data.w.data(), p.weights.data_type = BNNSDataTypeFloat32;
  p.bias.data = data.b.data(), p.bias.data_type = BNNSDataTypeFloat32;
  p.activation.function = BNNSActivationFunctionRectifiedLinear;
  FilterHandle filter(BNNSFilterCreateConvolutionLayer(&in, &out, &p, nullptr), &BNNSFilterDestroy);
  ASSERT_TRUE(filter) << BNNSExtLastError();
  ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
  std::vector<double> want = data.y;
  for (double& v : want) v = std::max(0.0, v);
  EXPECT_EQ(y.values(), want);
  EXPECT_TRUE(y.gaps_untouched());
  p.in_channels = 2;
  EXPECT_EQ(BNNSFilterCreateConvolutionLayer(&in, &out, &p, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"2 to 4 channels, expected 3 to 4"}));
  EXPECT_EQ(BNNSFilterCreateConvolutionLayer(nullptr, &out, &p, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"in_desc", "NULL"}));
}

// ---- memory and threads -------------------------------------------------------------------------------------------

// An optimizer's update is seen through BNNSFlagsUseClientPtr, and only there; forward, dX and recomputed activations.
TEST(ConvolutionForms, ClientPointerSeesNewWeights) {
  float w[] = {2}, b[] = {1}, x[] = {3}, y[1], dx[1], dy[] = {1};
  ConvolutionShape s;
  ConvolutionLayer layer(s, w, b, BNNSActivationFunctionAbs);
  const auto copies = layer.make();
  layer.options.flags = BNNSFlagsUseClientPtr;
  const auto reads = layer.make();
  auto dx_desc = image(1, 1, 1, dx), dy_desc = image(1, 1, 1, dy);
  const auto run = [&](const FilterHandle& f) {
    EXPECT_EQ(BNNSFilterApply(f.get(), x, y), 0);
    EXPECT_EQ(BNNSFilterApplyBackwardBatch(f.get(), 1, x, 0, &dx_desc, 0, y, 0, &dy_desc, 0, nullptr, nullptr), 0)
        << BNNSExtLastError();
  };
  w[0] = -5, b[0] = 10;
  run(copies);
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(dx[0], 2);
  run(reads);
  EXPECT_EQ(y[0], 5);   // |-15 + 10|
  EXPECT_EQ(dx[0], 5);  // sign(-5) * -5
}

TEST(ConvolutionForms, ManyThreadsOneFilter) {
  for (const ConvolutionShape& s :
       {make_shape(2, 8, 14, 14, 12, 3, 1, 1), make_shape(2, 16, 14, 14, 16, 3, 2, 1, 16)}) {
    Random random(18);
    const auto x = random.normals(s.x_count()), w = random.normals(s.w_count());
    auto dy = random.normals(s.y_count());
    const auto filter = ConvolutionLayer(s, w.data(), nullptr, BNNSActivationFunctionSiLU).make();
    struct Result {
      std::vector<float> y, dx, dw;
    };
    const auto once = [&](Result& r) {
      r.y.resize(s.y_count()), r.dx.resize(s.x_count()), r.dw.resize(s.w_count());
      auto dx_desc = image(s.iw, s.ih, s.i, r.dx.data()), dy_desc = image(s.ow, s.oh, s.o, dy.data());
      auto dw_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {s.kw, s.kh, s.i / s.groups, s.o}, r.dw.data());
      return BNNSFilterApplyBatch(filter.get(), s.n, x.data(), 0, r.y.data(), 0) == 0 &&
             BNNSFilterApplyBackwardBatch(filter.get(), s.n, x.data(), 0, &dx_desc, 0, r.y.data(), 0, &dy_desc, 0,
                                          &dw_desc, nullptr) == 0;
    };
    Result want;
    ASSERT_TRUE(once(want)) << BNNSExtLastError();
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 12; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          Result r;
          wrong += !once(r) || !same_bits(r.y, want.y) || !same_bits(r.dx, want.dx) || !same_bits(r.dw, want.dw);
        }
      });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(wrong.load(), 0);
  }
}

}  // namespace
}  // namespace bnns

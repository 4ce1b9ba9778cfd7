// The same numbers through any layout, type, alignment and place: equal bits, exact bounds, gaps untouched.

#include <gtest/gtest.h>

#include "src/ops/normalization/tests/normalization_images_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

std::vector<NormCase> shapes() {
  return {{Norm::batch, 3, 3, 5, 7},        {Norm::batch, 2, 2, 40, 41},  {Norm::batch, 66, 5, 1, 1},
          {Norm::batch, 3, 7, 1, 3},        {Norm::instance, 2, 3, 5, 7}, {Norm::group, 2, 6, 5, 7, 2},
          {Norm::group, 2, 6, 1, 2, 3},     {Norm::layer, 3, 2, 5, 7},    {Norm::layer, 3, 2, 5, 7, 1, 1},
          {Norm::layer, 3, 2, 5, 19, 1, 2}, {Norm::layer, 2, 3, 45, 40},  {Norm::instance, 64, 1, 1, 16},
          {Norm::group, 70, 1, 1, 19, 1}};
}

struct Everything {
  std::vector<float> y, dx, dbeta, dgamma;
};

// A training pass and its gradients on these four batches.
Everything run(NormLayer layer, Images& x, Images& y, Images& dy, Images& dx) {
  const NormCase& c = layer.c;
  Guarded<float> dbeta(c.parameters()), dgamma(c.parameters());
  std::fill_n(dbeta.data(), dbeta.size(), poison()), std::fill_n(dgamma.data(), dgamma.size(), poison());
  layer.parameters.i_desc = x.descriptor(), layer.parameters.o_desc = y.descriptor();
  const auto filter = layer.make();
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), x.batch_stride(), y.data(), y.batch_stride(),
                                              true),
            0)
      << BNNSExtLastError();
  auto dx_desc = dx.descriptor(), dy_desc = dy.descriptor();
  auto dbeta_desc = layer.affine_descriptor(dbeta.data()), dgamma_desc = layer.affine_descriptor(dgamma.data());
  EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, dx.batch_stride(), y.data(),
                                                      y.batch_stride(), &dy_desc, dy.batch_stride(), &dbeta_desc,
                                                      &dgamma_desc),
            0)
      << BNNSExtLastError();
  return {y.dense(),
          dx.dense(),
          {dbeta.data(), dbeta.data() + dbeta.size()},
          {dgamma.data(), dgamma.data() + dgamma.size()}};
}

bool equal(const Everything& a, const Everything& b) {
  return bool(same_bits(a.y, b.y)) && bool(same_bits(a.dx, b.dx)) && bool(same_bits(a.dbeta, b.dbeta)) &&
         bool(same_bits(a.dgamma, b.dgamma));
}

// BC15, BC33: every stride padded, guard pages before and behind, three activations (in the kernel, from y, from x^).
TEST(NormalizationLayouts, BC15_BC33_StridesDoNotChangeABit) {
  for_each_isa([] {
    for (const NormCase& c : shapes()) {
      for (auto function :
           {BNNSActivationFunctionRectifiedLinear, BNNSActivationFunctionTanh, BNNSActivationFunctionSiLU}) {
        SCOPED_TRACE(c.text() + " activation " + std::to_string(function));
        Random random(3);
        const auto xs = random.normals(c.count()), dys = random.normals(c.count());
        const auto gamma = random.normals(c.parameters()), beta = random.normals(c.parameters());
        const NormLayer layer(c, &gamma, &beta, function);
        const auto want = train(layer, xs, dys);
        const Images::Form forms[] = {{1, 0, 0, 0}, {1, 0, 0, 5}, {1, 0, 3, 0},
                                      {1, 2, 0, 1}, {2, 1, 1, 1}, {1, 0, 16, 64}};
        for (const auto& form : forms) {
          for (auto side : {Guarded<unsigned char>::Side::end, Guarded<unsigned char>::Side::begin}) {
            Images x(c, form, xs, side), y(c, form, side), dy(c, form, dys, side), dx(c, form, side);
            ASSERT_TRUE(equal(run(layer, x, y, dy, dx), {want.y, want.dx, want.dbeta, want.dgamma}));
            ASSERT_TRUE(y.gaps_untouched() && dx.gaps_untouched());
            ASSERT_TRUE(same_bits(x.dense(), xs) && same_bits(dy.dense(), dys)) << "inputs changed";
          }
        }
        // Each operand its own form.
        Images x(c, forms[3], xs), y(c, forms[1]), dy(c, forms[4], dys), dx(c, forms[2]);
        ASSERT_TRUE(equal(run(layer, x, y, dy, dx), {want.y, want.dx, want.dbeta, want.dgamma}));
      }
    }
  });
}

// f16 and bf16: computed in f32 on what is stored, rounded once.
TEST(NormalizationLayouts, HalfTypesRoundOnce) {
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  const auto rounded = [](BNNSDataType type, std::vector<float> v) {
    for (float& f : v) {
      if (type == BNNSDataTypeFloat16) f = half_to_float(float_to_half(f));
      if (type == BNNSDataTypeBFloat16) f = bfloat16_to_float(float_to_bfloat16(f));
    }
    return v;
  };
  for_each_isa([&] {
    for (const NormCase& c : shapes()) {
      for (auto tx : types)
        for (auto ty : types)
          for (auto tg : types) {
            Random random(5);
            const auto xs = rounded(tx, random.normals(c.count())), dys = rounded(ty, random.normals(c.count()));
            const auto gamma = rounded(tg, random.normals(c.parameters())),
                       beta = rounded(tg, random.normals(c.parameters()));
            const auto want = train(NormLayer(c, &gamma, &beta), xs, dys);
            Images x(c, {1, 0, 0, 0, tx}, xs), y(c, {1, 0, 0, 2, ty}), dy(c, {1, 0, 0, 0, ty}, dys),
                dx(c, {1, 1, 0, 0, tx});
            NormLayer layer(c, &gamma, &beta);
            std::vector<uint16_t> gamma_half, beta_half;
            if (tg != BNNSDataTypeFloat32) {
              for (float v : gamma)
                gamma_half.push_back(tg == BNNSDataTypeFloat16 ? float_to_half(v) : float_to_bfloat16(v));
              for (float v : beta)
                beta_half.push_back(tg == BNNSDataTypeFloat16 ? float_to_half(v) : float_to_bfloat16(v));
              layer.parameters.gamma_desc = vector_descriptor(c.parameters(), gamma_half.data(), tg);
              layer.parameters.beta_desc = vector_descriptor(c.parameters(), beta_half.data(), tg);
            }
            const auto got = run(layer, x, y, dy, dx);
            ASSERT_TRUE(equal(got, {rounded(ty, want.y), rounded(tx, want.dx), want.dbeta, want.dgamma})) << c.text();
            ASSERT_TRUE(y.gaps_untouched() && dx.gaps_untouched());
          }
    }
  });
}

// BC41: in place, forward in both modes and backward, for lengths around the vector width, and for rows that stream
// past the cache, aligned and not.
TEST(NormalizationLayouts, BC41_InPlaceGivesTheSameBits) {
  for_each_isa([] {
    std::vector<NormCase> all = shapes();
    for (size_t n = 1; n <= 67; ++n) all.push_back({Norm::layer, 2, 1, 1, n});
    for (size_t n = 1; n <= 67; ++n) all.push_back({Norm::batch, 2, 2, 1, n});
    for (size_t n : {704, 705}) all.push_back({Norm::layer, 1200, 1, 1, n});
    for (const NormCase& c : all) {
      Random random(7);
      const auto xs = random.normals(c.count());
      auto dys = random.normals(c.count());
      const NormLayer layer(c);
      const auto want = train(layer, xs, dys);
      const auto filter = layer.make();
      auto inference = xs, out = xs;
      ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, inference.data(), 0, inference.data(), 0, false),
                0)
          << BNNSExtLastError();
      ASSERT_TRUE(same_bits(inference, want.y)) << c.text();
      ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, out.data(), 0, out.data(), 0, true), 0);
      ASSERT_TRUE(same_bits(out, want.y)) << c.text();
      std::fill(out.begin(), out.end(), poison());  // the filter needs neither x nor y any more
      auto delta = layer.data_descriptor(dys.data());
      std::vector<float> dbeta(c.parameters()), dgamma(c.parameters());
      auto dbeta_desc = layer.affine_descriptor(dbeta.data()), dgamma_desc = layer.affine_descriptor(dgamma.data());
      ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &delta, 0, nullptr, 0, &delta, 0,
                                                          &dbeta_desc, &dgamma_desc),
                0)
          << BNNSExtLastError();
      ASSERT_TRUE(same_bits(dys, want.dx)) << c.text();
      ASSERT_TRUE(same_bits(dbeta, want.dbeta) && same_bits(dgamma, want.dgamma)) << c.text();
    }
  });
}

// BC40: pointers 1, 2 and 3 elements off a vector's alignment; large enough to stream past the cache too.
TEST(NormalizationLayouts, BC40_UnalignedPointersAndStreaming) {
  for_each_isa([] {
    for (const NormCase& c : {NormCase{Norm::batch, 3, 2, 9, 9}, NormCase{Norm::layer, 2, 1, 1, 100},
                              NormCase{Norm::batch, 2, 3, 591, 593}, NormCase{Norm::layer, 600, 1, 1, 3501}}) {
      Random random(9);
      std::vector<float> xs(c.count() + 4), dys(c.count() + 4), y(c.count() + 4), dx(c.count() + 4);
      for (float& v : xs) v = float(random.uniform(-1, 1));
      for (float& v : dys) v = float(random.uniform(-1, 1));
      TrainingResult first;
      for (size_t off : {0, 1, 2, 3}) {
        const NormLayer layer(c, nullptr, nullptr, BNNSActivationFunctionRectifiedLinear);
        const auto filter = layer.make();
        std::copy_n(xs.begin(), c.count(), dx.begin());  // the same values at every offset
        std::vector<float> x(c.count() + 4), dy(c.count() + 4);
        std::copy_n(xs.begin(), c.count(), x.begin() + off), std::copy_n(dys.begin(), c.count(), dy.begin() + 3 - off);
        ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, &x[off], 0, &y[off], 0, true), 0);
        auto dx_desc = layer.data_descriptor(&dx[3 - off]), dy_desc = layer.data_descriptor(&dy[3 - off]);
        ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, 0, &y[off], 0, &dy_desc, 0,
                                                            nullptr, nullptr),
                  0);
        const std::vector<float> got_y(y.begin() + long(off), y.begin() + long(off + c.count()));
        const std::vector<float> got_dx(dx.begin() + long(3 - off), dx.begin() + long(3 - off + c.count()));
        if (off == 0) {
          first.y = got_y, first.dx = got_dx;
        } else {
          ASSERT_TRUE(same_bits(got_y, first.y)) << c.text() << " off " << off;
          ASSERT_TRUE(same_bits(got_dx, first.dx)) << c.text() << " off " << off;
        }
      }
    }
  });
}

// BC14: accumulate adds to what is there, set does not read it; each gradient alone equals all together.
TEST(NormalizationLayouts, BC14_SetAndAccumulate) {
  for (const NormCase& c : shapes()) {
    for (auto type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16}) {
      Random random(11);
      const auto xs = random.normals(c.count()), dys = random.normals(c.count()), before = random.integers(c.count());
      const NormLayer layer(c);
      const auto want = train(layer, xs, dys);
      const auto filter = layer.make();
      std::vector<float> y(c.count());
      ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, xs.data(), 0, y.data(), 0, true), 0);
      Images dx(c, {1, 0, 0, 1, type}, before);
      std::vector<float> dbeta(c.parameters(), 3), dgamma(c.parameters(), -2);
      auto dy = dys;
      auto dx_desc = dx.descriptor(), dy_desc = layer.data_descriptor(dy.data());
      auto dbeta_desc = layer.affine_descriptor(dbeta.data()), dgamma_desc = layer.affine_descriptor(dgamma.data());
      dx_desc.flags = dbeta_desc.flags = dgamma_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
      const auto backward = [&](BNNSNDArrayDescriptor* a, BNNSNDArrayDescriptor* b, BNNSNDArrayDescriptor* g) {
        ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, a, dx.batch_stride(), nullptr, 0,
                                                            &dy_desc, 0, b, g),
                  0)
            << BNNSExtLastError();
      };
      backward(&dx_desc, nullptr, nullptr);
      backward(nullptr, &dbeta_desc, nullptr);
      backward(nullptr, nullptr, &dgamma_desc);
      backward(nullptr, nullptr, nullptr);  // nothing wanted is no mistake
      for (size_t e = 0; e < c.count(); ++e) {
        const float sum = before[e] + want.dx[e];
        ASSERT_EQ(dx.get(e), type == BNNSDataTypeFloat32 ? sum : bfloat16_to_float(float_to_bfloat16(sum))) << c.text();
      }
      for (size_t p = 0; p < c.parameters(); ++p) {
        ASSERT_EQ(dbeta[p], 3 + want.dbeta[p]) << c.text();
        ASSERT_EQ(dgamma[p], -2 + want.dgamma[p]) << c.text();
      }
      ASSERT_TRUE(same_bits(dy, dys)) << "out_delta changed";
    }
  }
}

// A Vector where the layer has CHW, for data and gradients; gamma of a layer norm as CHW or as a Vector (K19).
TEST(NormalizationLayouts, VectorsOfAsManyElements) {
  const NormCase c{Norm::layer, 2, 3, 4, 5, 1, 1};
  Random random(13);
  const auto xs = random.normals(c.count()), gamma = random.normals(c.parameters()),
             beta = random.normals(c.parameters());
  auto dy = random.normals(c.count());
  const auto want = train(NormLayer(c, &gamma, &beta), xs, dy);
  NormLayer layer(c, &gamma, &beta);
  layer.parameters.gamma_desc = descriptor(BNNSDataLayoutImageCHW, {5, 4, 1}, const_cast<float*>(gamma.data()));
  layer.parameters.o_desc = vector_descriptor(60, nullptr);
  const auto filter = layer.make();
  std::vector<float> y(c.count()), dx(c.count()), dgamma(c.parameters());
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 2, xs.data(), 0, y.data(), 0, true), 0)
      << BNNSExtLastError();
  auto dx_desc = vector_descriptor(60, dx.data()), dy_desc = vector_descriptor(60, dy.data());
  auto dgamma_desc = descriptor(BNNSDataLayoutImageCHW, {5, 4, 1}, dgamma.data());
  ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), 2, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                                      &dgamma_desc),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(same_bits(y, want.y) && same_bits(dx, want.dx) && same_bits(dgamma, want.dgamma));
}

// The C functions refuse nothing and invent nothing where one of gamma and beta is absent.
TEST(NormalizationLayouts, AbsentGammaIsOneAbsentBetaIsZero) {
  Random random(23);
  for (const NormCase& c : {NormCase{Norm::batch, 3, 4, 5, 5}, NormCase{Norm::batch, 3, 4, 1, 1},
                            NormCase{Norm::group, 2, 4, 1, 3, 2}, NormCase{Norm::layer, 2, 3, 4, 5}}) {
    const auto x = random.normals(c.count()), dy = random.normals(c.count()), some = random.normals(c.parameters());
    const std::vector<float> ones(c.parameters(), 1.0f), zeros(c.parameters(), 0.0f);
    const auto compare = [&](const NormLayer& absent, const NormLayer& given) {
      const auto a = train(absent, x, dy), b = train(given, x, dy);
      EXPECT_TRUE(same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dbeta, b.dbeta) &&
                  same_bits(a.dgamma, b.dgamma))
          << c.text();
    };
    compare(NormLayer(c), NormLayer(c, &ones, &zeros));
    compare(NormLayer(c, &some), NormLayer(c, &some, &zeros));
    compare(NormLayer(c, nullptr, &some), NormLayer(c, &ones, &some));
  }
}

}  // namespace
}  // namespace bnns

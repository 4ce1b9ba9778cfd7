// Dropout through any layout, type, alignment and place: the same decisions, exact bounds, gaps untouched.

#include <gtest/gtest.h>

#include "src/core/half.h"
#include "src/ops/dropout/dropout_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// Strides, types, in place, accumulate: the same decisions; guard pages on every buffer, gaps keep their poison.
TEST(DropoutLayouts, BC15_BC33_BC41_LayoutsTypesInPlace) {
  for_each_isa([] {
    const size_t W = 13, H = 5, C = 3, batch = 2, count = W * H * C, s1 = W + 2, s2 = H * s1 + 1, s3 = C * s2 + 4;
    Random random(9);
    const auto dense = random.integers(batch * count);
    const DropoutLayer plain(BNNSDataLayoutImageCHW, {W, H, C}, 0.5f, 31, 2);
    std::vector<float> want(batch * count);
    ASSERT_EQ(BNNSFilterApplyBatch(plain.make().get(), batch, dense.data(), 0, want.data(), 0), 0);
    const auto offset = [&](size_t e) { return e / count * s3 + e / (W * H) % C * s2 + e / W % H * s1 + e % W; };

    Guarded<float> x(offset(batch * count - 1) + 1), y(x.size());
    std::fill_n(x.data(), x.size(), poison()), std::fill_n(y.data(), y.size(), poison());
    for (size_t e = 0; e < dense.size(); ++e) x[offset(e)] = dense[e];
    DropoutLayer strided = plain;
    for (auto* d : {&strided.parameters.i_desc, &strided.parameters.o_desc})
      d->stride[0] = 1, d->stride[1] = s1, d->stride[2] = s2;
    ASSERT_EQ(BNNSFilterApplyBatch(strided.make().get(), batch, x.data(), s3, y.data(), s3), 0) << BNNSExtLastError();
    std::vector<bool> used(y.size());
    for (size_t e = 0; e < dense.size(); ++e) {
      ASSERT_EQ(y[offset(e)], want[e]);
      used[offset(e)] = true;
    }
    for (size_t i = 0; i < y.size(); ++i) ASSERT_TRUE(used[i] || is_poison(y[i]));
    ASSERT_EQ(BNNSFilterApplyBatch(strided.make().get(), batch, x.data(), s3, x.data(), s3), 0);  // in place
    for (size_t e = 0; e < dense.size(); ++e) ASSERT_EQ(x[offset(e)], want[e]);

    // f16 in, bf16 out: small integers times 2 are exact in both.
    Guarded<uint16_t> half(dense.size()), brain(dense.size());
    for (size_t e = 0; e < dense.size(); ++e) half[e] = float_to_half(dense[e]);
    DropoutLayer types = plain;
    types.parameters.i_desc.data_type = BNNSDataTypeFloat16, types.parameters.o_desc.data_type = BNNSDataTypeBFloat16;
    const auto filter = types.make();
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, half.data(), 0, brain.data(), 0), 0);
    for (size_t e = 0; e < dense.size(); ++e) ASSERT_EQ(bfloat16_to_float(brain[e]), want[e]);

    // Gradients: a Vector where the layer has CHW; accumulate adds.
    auto dy = dense;
    std::vector<float> dx(dense.size(), 10);
    auto dx_desc = vector_descriptor(count, dx.data()), dy_desc = plain.parameters.i_desc;
    dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
    dy_desc.data = dy.data();
    ASSERT_EQ(backward(filter.get(), batch, &dx_desc, &dy_desc), 0) << BNNSExtLastError();
    for (size_t e = 0; e < dx.size(); ++e) ASSERT_EQ(dx[e], 10 + want[e]);
    dy_desc.data = dx_desc.data = dy.data();
    dx_desc.flags = BNNSNDArrayFlagBackpropSet;
    ASSERT_EQ(backward(filter.get(), batch, &dx_desc, &dy_desc), 0) << BNNSExtLastError();  // in place
    ASSERT_TRUE(same_bits(dy, want));
  });
}

TEST(DropoutLayouts, BC33_BC40_GuardPagesAndUnalignedPointers) {
  for_each_isa([] {
    for (size_t n = 1; n <= 67; ++n) {
      for (size_t off : {0, 1, 2, 3}) {
        Guarded<float> x(n + off), y(n + off);
        for (size_t i = 0; i < n; ++i) x[off + i] = float(i + 1);
        y[0] = poison();
        ASSERT_EQ(BNNSFilterApply(DropoutLayer(n, 0.5f, 3).make().get(), x.data() + off, y.data() + off), 0);
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(y[off + i], double(ref::dropout_word(3, 1, i)) < 0x1p31 ? 0 : 2 * float(i + 1));
        ASSERT_TRUE(off == 0 || is_poison(y[0]));
      }
    }
  });
}

}  // namespace
}  // namespace bnns

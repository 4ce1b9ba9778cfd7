#include "fuzz/kernels/kernels.h"
#include "src/ops/fully_connected/fully_connected_ref.h"
#include "src/ops/fully_connected/fully_connected_testing.h"

namespace bnns::fuzz {

using namespace bnns::testing;

// Whole numbers: every sum is exact. The products are those of src/gemm: rows, columns and tiles of any size.
void fully_connected(Bytes& bytes) {
  const size_t n = bytes.chance(64) ? 1 : bytes.from(1, 70), in = bytes.from(1, 200), out = bytes.from(1, 90);
  if (n * in * out > 1u << 17) return;
  const bool bias = bytes.chance(192);
  Random random(bytes.byte());
  const auto x = random.integers(n * in), w = random.integers(in * out), dy = random.integers(n * out),
             b = bias ? random.integers(out) : std::vector<float>{};
  Guarded<float> gx(x), gw(w), gb(b), gdy(dy), y(n * out), dx(n * in), dw(in * out), db(out);
  for (auto* each : {&y, &dx, &dw, &db}) std::fill_n(each->data(), each->size(), poison());
  Layer layer(in, out, gw.data(), bias ? gb.data() : nullptr);
  layer.options.n_threads = bytes.from(1, 3);
  const auto filter = layer.make();
  SCOPED_TRACE("n " + std::to_string(n) + " in " + std::to_string(in) + " out " + std::to_string(out));
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), n, gx.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
  auto dx_desc = vector_descriptor(in, dx.data()), dy_desc = vector_descriptor(out, gdy.data());
  auto dw_desc = layer.parameters.w_desc, db_desc = vector_descriptor(out, db.data());
  dw_desc.data = dw.data();
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), n, gx.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0, &dw_desc,
                                         bias ? &db_desc : nullptr),
            0)
      << BNNSExtLastError();
  const auto widen = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
  const auto exact = [](size_t) { return 0.0; };
  const auto want = ref::fully_connected_backward(n, in, out, widen(x), widen(w), widen(dy));
  EXPECT_TRUE(within(y, ref::fully_connected_forward(n, in, out, widen(x), widen(w), widen(b)), y.size(), exact))
      << "y";
  EXPECT_TRUE(within(dx, want.dx, dx.size(), exact)) << "dx";
  EXPECT_TRUE(within(dw, want.dw, dw.size(), exact)) << "dw";
  if (bias) {
    EXPECT_TRUE(within(db, want.db, db.size(), exact)) << "db";
  }
}

}  // namespace bnns::fuzz

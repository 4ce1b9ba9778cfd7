#include "fuzz/kernels/kernels.h"
#include "src/ops/convolution/tests/convolution_testing.h"

namespace bnns::fuzz {

using namespace bnns::testing;

// Whole numbers: sums are exact, and so is every algorithm but Winograd's for dW.
void convolution(Bytes& bytes) {
  ConvolutionShape s;
  s.transposed = bytes.chance(96);
  s.n = bytes.from(1, 3);
  s.groups = bytes.chance(64) ? bytes.from(1, 8) : 1;
  s.i = s.groups * bytes.from(1, s.groups > 1 ? 3 : 20), s.o = s.groups * bytes.from(1, s.groups > 1 ? 3 : 20);
  s.kh = bytes.from(1, 5), s.kw = bytes.chance(128) ? s.kh : bytes.from(1, 5);
  s.sy = bytes.from(1, 3), s.sx = bytes.chance(192) ? s.sy : bytes.from(1, 3);
  s.dy = bytes.chance(48) ? bytes.from(1, 3) : 1, s.dx = bytes.chance(192) ? s.dy : bytes.from(1, 3);
  s.top = bytes.below(4), s.left = bytes.below(4);
  const size_t bottom = bytes.below(4), right = bytes.below(4), fewer = bytes.byte();
  s.ih = bytes.from(1, 18), s.iw = bytes.from(1, 40);
  const size_t ky = (s.kh - 1) * s.dy + 1, kx = (s.kw - 1) * s.dx + 1;
  if (s.transposed) {
    if ((s.ih - 1) * s.sy + ky <= s.top + bottom || (s.iw - 1) * s.sx + kx <= s.left + right) return;
  } else if (s.ih + s.top + bottom < ky || s.iw + s.left + right < kx) {
    return;
  }
  s = fitted(s, bottom, right);
  if (fewer % 4 == 0 && s.transposed) s.oh += fewer % 3, s.ow += fewer % 5;
  if (fewer % 4 == 0 && !s.transposed) s.oh = 1 + fewer % s.oh, s.ow = 1 + fewer % s.ow;
  // The reference is slow.
  if (s.w_count() * s.n * (s.transposed ? s.ih * s.iw : s.oh * s.ow) > 1u << 18) return;
  const bool bias = bytes.chance(192);
  Random random(bytes.byte());
  const auto x = random.integers(s.x_count()), w = random.integers(s.w_count()),
             b = bias ? random.integers(s.o) : std::vector<float>{}, dy = random.integers(s.y_count());
  SCOPED_TRACE(text(s));
  const auto got = run_convolution(s, x, w, b, dy, bytes.from(1, 3));
  const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
  EXPECT_TRUE(within(got.y, ref::convolution_forward(s, widen(x), widen(w), widen(b)), s.y_count(), kExact)) << "y";
  EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), kExact)) << "dx";
  if (has_exact_weights(s)) {
    EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), kExact)) << "dw";
  }
  EXPECT_TRUE(within(got.db, want.db, s.o, kExact)) << "db";
}

}  // namespace bnns::fuzz

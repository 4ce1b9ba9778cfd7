#include "fuzz/kernels/kernels.h"
#include "src/ops/pooling/tests/pooling_testing.h"

namespace bnns::fuzz {

using namespace bnns::testing;

// Anything that the rule about sizes allows, on whole numbers and on real ones.
void pooling(Bytes& bytes) {
  const auto from = [&](size_t low, size_t high) { return static_cast<long>(bytes.from(low, high)); };
  PoolShape s;
  s.C = from(1, 20), s.H = from(1, 24), s.W = from(1, 40), s.kw = from(1, 6), s.sx = from(1, 4);
  s.kh = bytes.chance(128) ? s.kw : from(1, 6), s.sy = bytes.chance(192) ? s.sx : from(1, 4);
  if (bytes.chance(48)) s.dx = from(1, 3), s.dy = from(1, 3);
  if (bytes.chance(128)) s.left = from(0, 4), s.right = from(0, 4), s.top = from(0, 4), s.bottom = from(0, 4);
  if (bytes.chance(24)) s.kw = s.W, s.kh = s.H;
  const long most_x = (s.W + s.left + s.right - 1) / s.sx + 1, most_y = (s.H + s.top + s.bottom - 1) / s.sy + 1;
  s.OW = bytes.chance(128) ? most_x : 1 + bytes.byte() % most_x;
  s.OH = bytes.chance(128) ? most_y : 1 + bytes.byte() % most_y;
  const size_t batch = bytes.from(1, 3);
  if (batch * s.small() * static_cast<size_t>(s.kw * s.kh) > 1u << 17) return;
  const Pool f = kPools[bytes.below(4)];
  const bool exact = bytes.chance(128) && s.kw <= 5 && s.kh <= 5;
  Random random(bytes.byte());
  const auto x = exact ? random.integers(batch * s.large()) : random.normals(batch * s.large());
  const auto g = exact ? exact_gradients(random, batch * s.small()) : random.normals(batch * s.small());
  SCOPED_TRACE(text(s));
  expect_reference(f, s, batch, x, g, exact, run(f, s, batch, x, g, bytes.from(1, 3)));
}

}  // namespace bnns::fuzz

#include "fuzz/kernels/kernels.h"
#include "src/ops/normalization/tests/normalization_bounds_testing.h"

namespace bnns::fuzz {

using namespace bnns::testing;

// Real numbers around 3, as the test has them: a training pass and its gradients.
void normalization(Bytes& bytes) {
  NormCase c;
  c.kind = static_cast<Norm>(bytes.below(4));
  c.groups = c.kind == Norm::group ? bytes.from(1, 4) : 1;
  c.N = bytes.from(1, 5), c.C = c.groups * bytes.from(1, 12), c.H = bytes.from(1, 12), c.W = bytes.from(1, 40);
  c.axis = c.kind == Norm::layer ? bytes.below(3) : 0;
  if (bytes.chance(24)) c.C = c.groups, c.H = 1, c.W = 1024 + bytes.byte();
  if (c.count() > 1u << 14) return;
  Random random(bytes.byte());
  auto x = random.normals(c.count(), 2);
  for (float& v : x) v += 3;
  const auto gamma = random.normals(c.parameters()), beta = random.normals(c.parameters()),
             dy = random.normals(c.count());
  NormLayer layer(c, &gamma, &beta);
  layer.options.n_threads = bytes.from(1, 3);
  SCOPED_TRACE(c.text());
  check(c, train(layer, x, dy), expect(c, x, gamma, beta, dy), gamma, beta, dy);
}

}  // namespace bnns::fuzz

// Sets that lie side by side are worked on together where the data is dense: vectors reach across channels, whole rows
// stream past the cache, columns are cut at cache lines. All of it must give the bits of the same sets one by one,
// which is how they go where channels are padded.

#include "src/ops/normalization/tests/normalization_images_testing.h"

namespace bnns::testing {
namespace {

void expect_same(const TrainingResult& got, const TrainingResult& want, const NormCase& c, const char* what) {
  EXPECT_TRUE(same_bits(got.y, want.y)) << c.text() << " y " << what;
  EXPECT_TRUE(same_bits(got.dx, want.dx)) << c.text() << " dx " << what;
  EXPECT_TRUE(same_bits(got.dbeta, want.dbeta) && same_bits(got.dgamma, want.dgamma)) << c.text() << " " << what;
}

// Every case has more sets than a bundle, or more channels than a group's run; planes that are no multiple of a vector,
// one longer than a block; 43 x 1000 x 7 x 7 streams. Rows of a layer: aligned and not, longer than a block; 400 x 704
// streams x^, 2300 x 354 y too, in rows that begin anywhere in a vector.
TEST(NormalizationBundles, BitsAreThoseOfSetsOneByOne) {
  const NormCase cases[] = {
      {Norm::batch, 5, 70, 5, 5},      {Norm::batch, 33, 130, 7, 7},   {Norm::batch, 1, 67, 4, 4},
      {Norm::batch, 3, 9, 33, 35},     {Norm::batch, 43, 1000, 7, 7},  {Norm::batch, 70, 331, 1, 1},
      {Norm::batch, 5, 90, 1, 3},      {Norm::instance, 3, 70, 1, 17}, {Norm::instance, 2, 40, 20, 19},
      {Norm::group, 2, 144, 1, 19, 2}, {Norm::group, 3, 24, 5, 7, 4},  {Norm::group, 2, 4, 33, 35, 2},
      {Norm::layer, 7, 2, 1, 384},     {Norm::layer, 5, 2, 8, 65},     {Norm::layer, 3, 2, 5, 37, 1, 2},
      {Norm::layer, 400, 2, 1, 352},   {Norm::layer, 2300, 2, 1, 177}, {Norm::layer, 2, 2, 3, 48, 1, 1}};
  for_each_isa([&] {
    for (const NormCase& c : cases) {
      for (auto activation : {BNNSActivationFunctionIdentity, BNNSActivationFunctionRectifiedLinear}) {
        const bool streams = c.count() > 2000000;
        if (streams && activation == BNNSActivationFunctionIdentity) continue;  // once is slow enough
        Random random(21);
        const auto xs = random.normals(c.count()), dys = random.normals(c.count());
        const auto gamma = random.normals(c.parameters()), beta = random.normals(c.parameters());
        const NormLayer layer(c, &gamma, &beta, activation);
        const TrainingResult want = train_images(layer, {1, 0, 3, 0}, 1, xs, dys);
        expect_same(train_images(layer, {}, 1, xs, dys), want, c, "dense");
        expect_same(train_images(layer, {}, 3, xs, dys), want, c, "dense, 3 threads");
        if (streams) continue;
        expect_same(train_images(layer, {1, 0, 0, 1}, 2, xs, dys), want, c, "padded samples");
      }
    }
  });
}

}  // namespace
}  // namespace bnns::testing

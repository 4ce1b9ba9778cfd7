// Every entry of normalization's tables, forced by leaving out those before it, against the reference: on every
// instruction set, with 1, 2, 3 and 7 threads, data against inaccessible pages, dense and padded.

#include "src/ops/normalization/implementations.h"
#include "src/ops/normalization/tests/normalization_bounds_testing.h"
#include "src/ops/normalization/tests/normalization_images_testing.h"
#include "tests/support/implementations.h"

namespace bnns::testing {
namespace {

// Cases that every entry finds some problem in: short planes, rows, groups, sets of several segments.
const NormCase kCases[] = {
    {Norm::batch, 5, 21, 1, 1},       {Norm::batch, 70, 67, 1, 3},      {Norm::batch, 5, 70, 5, 5},
    {Norm::batch, 3, 9, 33, 35},      {Norm::batch, 2, 2, 260, 270},    {Norm::instance, 3, 70, 1, 17},
    {Norm::instance, 2, 3, 1, 3},     {Norm::group, 3, 24, 5, 7, 4},    {Norm::group, 2, 144, 1, 19, 2},
    {Norm::group, 2, 6, 2, 3, 2},     {Norm::group, 1, 4, 270, 260, 2}, {Norm::layer, 7, 2, 1, 384},
    {Norm::layer, 5, 2, 3, 37, 1, 2}, {Norm::layer, 1, 3, 260, 270},    {Norm::layer, 3, 5, 30, 30},
    {Norm::layer, 4, 3, 5, 6, 1, 1}};

struct Data {
  std::vector<float> x, dy, gamma, beta;
  Want want;

  explicit Data(const NormCase& c) {
    Random random(c.count());
    x = random.normals(c.count(), 2), dy = random.normals(c.count());
    gamma = random.normals(c.parameters()), beta = random.normals(c.parameters());
    want = expect(c, x, gamma, beta, dy);
  }
};

// Training, inference and gradients of every case, in which entry `name` of a table may run. How often it did.
size_t run_cases(const std::vector<Data>& data, const char* name, bool forward) {
  size_t count = 0;
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const NormCase& c = kCases[i];
    const Data& d = data[i];
    const NormLayer layer(c, &d.gamma, &d.beta);
    TrainingResult first[2];
    bool taken = false;
    for (const size_t threads : {7, 3, 2, 1}) {  // what seven threads do not take, fewer do not either
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(c.text() + ", " + std::to_string(threads) + " threads" + (padded ? ", padded" : ""));
        const CallRecord record;
        const TrainingResult got =
            train_images(layer, padded ? Images::Form{1, 0, 3, 1} : Images::Form{}, threads, d.x, d.dy);
        if (first[padded].y.empty()) {
          first[padded] = got;
        } else {
          EXPECT_TRUE(same_bits(got.y, first[padded].y) && same_bits(got.dx, first[padded].dx) &&
                      same_bits(got.dbeta, first[padded].dbeta) && same_bits(got.dgamma, first[padded].dgamma));
        }
        if (!record.has(name)) continue;
        ++count, taken = true;
        check(c, got, d.want, d.gamma, d.beta, d.dy);
      }
      if (!taken) break;
      if (!forward) continue;
      // Inference, which takes the same table.
      NormLayer inference(layer);
      inference.options.n_threads = threads;
      const auto filter = inference.make();
      Images x(c, {}, d.x), y(c, {});
      const CallRecord record;
      EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, false), 0);
      EXPECT_TRUE(same_bits(y.dense(), first[0].y)) << c.text() << ": inference";
      EXPECT_TRUE(record.size() == 1 && record.has(BNNSExtImplementation(filter.get(), BNNSExtPassForward, c.N)));
    }
    if (::testing::Test::HasFailure()) return count;
  }
  return count;
}

template <class Entry, size_t N>
void force_each(const Entry (&table)[N], bool forward) {
  std::vector<Data> data;
  for (const NormCase& c : kCases) data.emplace_back(c);
  for (size_t k = 0; k < N; ++k) {
    const Skip skip(names_before(table, k));
    size_t on_widest = 0;
    for_each_isa([&] {
      SCOPED_TRACE(table[k].name);
      on_widest = run_cases(data, table[k].name, forward);
    });
    EXPECT_GE(on_widest, 3u) << table[k].name << " ran hardly any problem on " << BNNSExtGetISA();
  }
}

TEST(NormalizationImplementations, EachForwardIsForcedAgainstTheReference) {
  force_each(kNormalizationForward, true);
}

TEST(NormalizationImplementations, EachBackwardIsForcedAgainstTheReference) {
  force_each(kNormalizationBackward, false);
}

TEST(NormalizationImplementations, ReadmeHasTheTables) {
  expect_table_in_readme(kNormalizationForward, "forward", "src/ops/normalization/README.md");
  expect_table_in_readme(kNormalizationBackward, "backward", "src/ops/normalization/README.md");
}

}  // namespace
}  // namespace bnns::testing

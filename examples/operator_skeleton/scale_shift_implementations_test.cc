// Every entry of both tables: problems that it accepts, on every instruction set and with 1, 2, 3 and 7 threads,
// between guard pages, against the reference. And the README's tables, which are the code's.

#include "examples/operator_skeleton/implementations.h"
#include "examples/operator_skeleton/scale_shift_testing.h"
#include "tests/support/implementations.h"

namespace bnns::testing {
namespace {

constexpr const char* kReadme = "examples/operator_skeleton/README.md";

// `ran` is the pass that the table is of.
void force_each(const ScaleShiftImplementation (&table)[2], std::string ScaleShiftResults::*ran) {
  for (size_t k = 0; k < std::size(table); ++k) {
    const Skip skip(names_before(table, k));
    SCOPED_TRACE(table[k].name);
    for_each_isa([&] {
      uint64_t seed = 1;
      for (ScaleShiftCase one : scale_shift_cases()) {
        SCOPED_TRACE(one.text());
        for (bool integers : {true, false}) {
          integers ? one.fill_integers(++seed) : one.fill_normals(++seed);
          const ScaleShiftResults first = one.run(1);
          EXPECT_EQ(first.*ran, table[k].name) << "another algorithm ran";
          one.expect_reference(first, integers ? 0 : 1);
          for (size_t threads : kThreadCounts) {
            const ScaleShiftResults again = one.run(threads, Guarded<float>::Side::begin);
            EXPECT_TRUE(same_bits(first.y, again.y) && same_bits(first.dx, again.dx)) << threads << " threads";
            EXPECT_TRUE(same_bits(first.da, again.da) && same_bits(first.db, again.db)) << threads << " threads";
          }
        }
      }
    });
  }
}

TEST(ScaleShiftImplementations, EachForwardAgainstTheReference) {
  force_each(kScaleShiftForward, &ScaleShiftResults::forward);
}

TEST(ScaleShiftImplementations, EachBackwardAgainstTheReference) {
  force_each(kScaleShiftBackward, &ScaleShiftResults::backward);
}

TEST(ScaleShiftImplementations, TheFilterNamesThem) {
  float one[3] = {1, 1, 1};
  ScaleShiftCase image{1, 4, 4, 3, {}, {}, {}, {}};
  BNNSExtLayerParametersScaleShift layer = image.layer(one, one);
  const auto dense = own(BNNSExtFilterCreateLayerScaleShift(&layer, nullptr));
  EXPECT_STREQ(BNNSExtImplementation(dense.get(), BNNSExtPassForward, 8), "scale_shift/planes");
  EXPECT_STREQ(BNNSExtImplementation(dense.get(), BNNSExtPassWeightsGradient, 8), "scale_shift/planes");
  {
    const Skip skip("scale_shift/planes");
    EXPECT_STREQ(BNNSExtImplementation(dense.get(), BNNSExtPassForward, 8), "scale_shift/elements");
  }
  layer.o_desc.data_type = BNNSDataTypeBFloat16;
  const auto converted = own(BNNSExtFilterCreateLayerScaleShift(&layer, nullptr));
  EXPECT_STREQ(BNNSExtImplementation(converted.get(), BNNSExtPassForward, 8), "scale_shift/elements");
  EXPECT_STREQ(BNNSExtImplementation(converted.get(), BNNSExtPassInputGradient, 8), "scale_shift/elements");
}

TEST(ScaleShiftImplementations, TablesOfTheReadme) {
  expect_table_in_readme(kScaleShiftForward, "forward", kReadme);
  expect_table_in_readme(kScaleShiftBackward, "backward", kReadme);
}

}  // namespace
}  // namespace bnns::testing

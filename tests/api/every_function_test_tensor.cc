// The walk: calls without a filter that copy, compare, repeat, gather and scatter.

#include "tests/api/every_function_testing.h"

namespace bnns::testing {
namespace {

Array first_major(size_t rows, size_t columns, Floats& data) {
  return descriptor(BNNSDataLayout2DFirstMajor, {rows, columns}, data.data());
}
Array index_vector(std::vector<int32_t>& indices) {
  return vector_descriptor(indices.size(), indices.data(), BNNSDataTypeInt32);
}
Array index_rows(size_t rows, size_t columns, std::vector<int32_t>& indices) {
  return descriptor(BNNSDataLayout2DFirstMajor, {rows, columns}, indices.data(), BNNSDataTypeInt32);
}
constexpr int kIndexOutOfRange = -1005, kShapeMismatch = -1003;  // the codes of the original

// ---- copy, transpose ------------------------------------------------------------------------------------------------

void copy_good() {
  Floats x = {1, 2, 3, 4, 5, 6}, y(6);
  const Array src = row_major(3, 2, x.data());
  Array dest = descriptor(BNNSDataLayoutColumnMajorMatrix, {2, 3}, y.data());  // the same matrix, columns contiguous
  EXPECT_EQ(BNNSCopy(&dest, &src, nullptr), 0);
  EXPECT_EQ(y, (Floats{1, 4, 2, 5, 3, 6}));
  std::vector<uint16_t> halves(2);
  Floats few = {1, -2};
  const Array few_desc = vec(few);
  Array half_desc = vector_descriptor(2, halves.data(), BNNSDataTypeFloat16);
  EXPECT_EQ(BNNSCopy(&half_desc, &few_desc, nullptr), 0);
  EXPECT_EQ(halves, (std::vector<uint16_t>{0x3c00, 0xc000}));
}
void copy_bad() {
  Floats x = {1, 2, 3}, y = untouched(4);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSCopy(&dest, &src, nullptr), -1);  // 3 into 4
  EXPECT_TRUE(is_untouched(y));
}

void transpose_good() {
  Floats x = {1, 2, 3, 4, 5, 6}, y(6);
  const Array src = first_major(2, 3, x);
  Array dest = first_major(3, 2, y);
  EXPECT_EQ(BNNSTranspose(&dest, &src, 0, 1, nullptr), 0);
  EXPECT_EQ(y, (Floats{1, 4, 2, 5, 3, 6}));
}
void transpose_bad() {
  Floats x = {1, 2, 3, 4, 5, 6}, y = untouched(6);
  const Array src = first_major(2, 3, x);
  Array dest = first_major(3, 2, y);
  EXPECT_EQ(BNNSTranspose(&dest, &src, 0, 2, nullptr), -1);  // no axis 2
  EXPECT_TRUE(is_untouched(y));
}

// ---- compare, tile, band, shuffle -----------------------------------------------------------------------------------

void compare_good() {
  Floats a = {1, 5, 3}, b = {2, 2, 3};
  std::vector<uint8_t> y(3, 9);
  const Array a_desc = vec(a), b_desc = vec(b);
  Array out = vector_descriptor(3, y.data(), BNNSDataTypeBoolean);
  EXPECT_EQ(BNNSCompareTensor(&a_desc, &b_desc, BNNSRelationalOperatorLess, &out), 0);
  EXPECT_EQ(y, (std::vector<uint8_t>{1, 0, 0}));
  EXPECT_EQ(BNNSCompareTensor(&a_desc, &b_desc, BNNSRelationalOperatorGreaterEqual, &out), 0);
  EXPECT_EQ(y, (std::vector<uint8_t>{0, 1, 1}));
}
void compare_bad() {
  Floats a = {1, 5, 3}, b = {2, 2, 3}, y = untouched(3);
  const Array a_desc = vec(a), b_desc = vec(b);
  Array out = vec(y);  // must be Boolean
  EXPECT_EQ(BNNSCompareTensor(&a_desc, &b_desc, BNNSRelationalOperatorLess, &out), -1);
  EXPECT_TRUE(is_untouched(y));
}

void tile_good() {
  Floats x = {1, 2, 3}, y(6);
  const Array in = vec(x);
  Array out = vec(y);
  EXPECT_EQ(BNNSTile(&in, &out, nullptr), 0);
  EXPECT_EQ(y, (Floats{1, 2, 3, 1, 2, 3}));
}
void tile_bad() {
  Floats x = {1, 2, 3}, y = untouched(5);
  const Array in = vec(x);
  Array out = vec(y);
  EXPECT_EQ(BNNSTile(&in, &out, nullptr), -1);  // 5 is no multiple of 3
  EXPECT_TRUE(is_untouched(y));
}

void tile_backward_good() {
  Floats dy = {1, 2, 3, 10, 20, 30}, dx(3);
  const Array dy_desc = vec(dy);
  Array dx_desc = vec(dx);
  EXPECT_EQ(BNNSTileBackward(&dx_desc, &dy_desc, nullptr), 0);
  EXPECT_EQ(dx, (Floats{11, 22, 33}));
}
void tile_backward_bad() {
  Floats dy = {1, 2, 3, 10}, dx = untouched(3);
  const Array dy_desc = vec(dy);
  Array dx_desc = vec(dx);
  EXPECT_EQ(BNNSTileBackward(&dx_desc, &dy_desc, nullptr), -1);
  EXPECT_TRUE(is_untouched(dx));
}

void band_good() {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y(9);
  const Array in = first_major(3, 3, x);
  Array out = first_major(3, 3, y);
  EXPECT_EQ(BNNSBandPart(1, 0, &in, &out, nullptr), 0);  // the diagonal and one below it
  EXPECT_EQ(y, (Floats{1, 0, 0, 4, 5, 0, 0, 8, 9}));
  EXPECT_EQ(BNNSBandPart(0, -1, &in, &out, nullptr), 0);  // the whole upper triangle
  EXPECT_EQ(y, (Floats{1, 2, 3, 0, 5, 6, 0, 0, 9}));
}
void band_bad() {
  Floats x = {1, 2, 3}, y = untouched(3);
  const Array in = vec(x);  // no matrix
  Array out = vec(y);
  EXPECT_EQ(BNNSBandPart(0, 0, &in, &out, nullptr), -1);
  EXPECT_TRUE(is_untouched(y));
}

// Four channels of 1 x 2 become one channel of 2 x 4.
void shuffle_good() {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
  const Array in = descriptor(BNNSDataLayout4DFirstMajor, {1, 4, 1, 2}, x.data());
  Array out = descriptor(BNNSDataLayout4DFirstMajor, {1, 1, 2, 4}, y.data());
  EXPECT_EQ(BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, &in, &out, nullptr), 0);
  EXPECT_EQ(y, (Floats{1, 3, 2, 4, 5, 7, 6, 8}));
}
void shuffle_bad() {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8}, y = untouched(8);
  const Array in = descriptor(BNNSDataLayout4DLastMajor, {2, 1, 4, 1}, x.data());  // only 4DFirstMajor
  Array out = descriptor(BNNSDataLayout4DLastMajor, {4, 2, 1, 1}, y.data());
  EXPECT_EQ(BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, &in, &out, nullptr), -1);
  EXPECT_TRUE(is_untouched(y));
}

// ---- gather and scatter ---------------------------------------------------------------------------------------------

void gather_good() {
  Floats x = {1, 2, 3, 4, 5, 6}, y(6);
  std::vector<int32_t> rows = {2, 0, 2};
  const Array in = first_major(3, 2, x), indices = index_vector(rows);
  Array out = first_major(3, 2, y);
  EXPECT_EQ(BNNSGather(0, &in, &indices, &out, nullptr), 0);
  EXPECT_EQ(y, (Floats{5, 6, 1, 2, 5, 6}));
}
void gather_bad() {
  Floats x = {1, 2, 3, 4, 5, 6}, y = untouched(6);
  std::vector<int32_t> rows = {2, 0, 3};  // 3 rows
  const Array in = first_major(3, 2, x), indices = index_vector(rows);
  Array out = first_major(3, 2, y);
  EXPECT_EQ(BNNSGather(0, &in, &indices, &out, nullptr), kIndexOutOfRange);
  EXPECT_TRUE(is_untouched(y));
}

void scatter_good() {
  Floats x = {1, 2, 3, 4}, y = {10, 20, 30, 40, 50, 60};
  std::vector<int32_t> rows = {2, 2};
  const Array in = first_major(2, 2, x), indices = index_vector(rows);
  Array out = first_major(3, 2, y);
  EXPECT_EQ(BNNSScatter(0, BNNSReduceFunctionSum, &in, &indices, &out, nullptr), 0);
  EXPECT_EQ(y, (Floats{10, 20, 30, 40, 54, 66}));  // both rows go to the last, the others stay
}
void scatter_bad() {
  Floats x = {1, 2, 3, 4}, y = untouched(6);
  std::vector<int32_t> rows = {0, -1};
  const Array in = first_major(2, 2, x), indices = index_vector(rows);
  Array out = first_major(3, 2, y);
  EXPECT_EQ(BNNSScatter(0, BNNSReduceFunctionSum, &in, &indices, &out, nullptr), kIndexOutOfRange);
  EXPECT_TRUE(is_untouched(y));
}

void gather_nd_good() {
  Floats x = {1, 2, 3, 4, 5, 6}, y(2);
  std::vector<int32_t> places = {2, 1, 0, 0};
  const Array in = first_major(3, 2, x), indices = index_rows(2, 2, places);
  Array out = vec(y);
  EXPECT_EQ(BNNSGatherND(&in, &indices, &out, nullptr), 0);
  EXPECT_EQ(y, (Floats{6, 1}));
}
void gather_nd_bad() {
  Floats x = {1, 2, 3, 4, 5, 6}, y = untouched(3);
  std::vector<int32_t> places = {2, 1, 0, 0};
  const Array in = first_major(3, 2, x), indices = index_rows(2, 2, places);
  Array out = vec(y);  // two lookups give 2
  EXPECT_EQ(BNNSGatherND(&in, &indices, &out, nullptr), kShapeMismatch);
  EXPECT_TRUE(is_untouched(y));
}

void scatter_nd_good() {
  Floats x = {7, 8}, y = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> places = {2, 1, 0, 0};
  const Array in = vec(x), indices = index_rows(2, 2, places);
  Array out = first_major(3, 2, y);
  EXPECT_EQ(BNNSScatterND(BNNSReduceFunctionNone, &in, &indices, &out, nullptr), 0);
  EXPECT_EQ(y, (Floats{8, 2, 3, 4, 5, 7}));
}
void scatter_nd_bad() {
  Floats x = {7, 8}, y = untouched(6);
  std::vector<int32_t> places = {2, 2, 0, 0};  // 2 columns
  const Array in = vec(x), indices = index_rows(2, 2, places);
  Array out = first_major(3, 2, y);
  EXPECT_EQ(BNNSScatterND(BNNSReduceFunctionNone, &in, &indices, &out, nullptr), kIndexOutOfRange);
  EXPECT_TRUE(is_untouched(y));
}

}  // namespace

std::vector<Entry> tensor_entries() {
  return {
      {"BNNSCopy", copy_good, copy_bad},
      {"BNNSTranspose", transpose_good, transpose_bad},
      {"BNNSCompareTensor", compare_good, compare_bad},
      {"BNNSTile", tile_good, tile_bad},
      {"BNNSTileBackward", tile_backward_good, tile_backward_bad},
      {"BNNSBandPart", band_good, band_bad},
      {"BNNSShuffle", shuffle_good, shuffle_bad},
      {"BNNSGather", gather_good, gather_bad},
      {"BNNSScatter", scatter_good, scatter_bad},
      {"BNNSGatherND", gather_nd_good, gather_nd_bad},
      {"BNNSScatterND", scatter_nd_good, scatter_nd_bad},
  };
}

}  // namespace bnns::testing

// The walk: reduction, embedding, top-K, crop-resize.

#include "tests/api/every_function_testing.h"

namespace bnns::testing {
namespace {

// ---- reduction ------------------------------------------------------------------------------------------------------

// The sums of the rows, of the columns and of all elements.
struct ReductionCase {
  Floats x = {1, 4, 7, 2, 5, 8, 3, 6, 9}, y = untouched(3);
  BNNSLayerParametersReduction layer = {};
  ReductionCase(size_t columns, size_t rows) {
    layer.i_desc = row_major(3, 3, x.data());
    layer.o_desc = row_major(columns, rows, y.data());
    layer.reduce_func = BNNSReduceFunctionSum;
  }
  ReductionCase(const ReductionCase&) = delete;
};

void reduction_filter_good() {
  const ReductionCase c(1, 3);
  const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&c.layer, nullptr));
  Floats y(3);
  EXPECT_EQ(BNNSFilterApply(filter.get(), c.x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{12, 15, 18}));
}
void reduction_filter_bad() {
  const ReductionCase c(2, 3);  // 2 of 3 columns: neither kept nor reduced
  expect_no_filter(BNNSFilterCreateLayerReduction(&c.layer, nullptr));
}

void reduction_good() {
  ReductionCase rows(1, 3), columns(3, 1), all(1, 1);
  EXPECT_EQ(BNNSDirectApplyReduction(&rows.layer, nullptr), 0);
  EXPECT_EQ(rows.y, (Floats{12, 15, 18}));
  EXPECT_EQ(BNNSDirectApplyReduction(&columns.layer, nullptr), 0);
  EXPECT_EQ(columns.y, (Floats{6, 15, 24}));
  EXPECT_EQ(BNNSDirectApplyReduction(&all.layer, nullptr), 0);
  EXPECT_EQ(all.y, (Floats{45, kUntouched, kUntouched}));
}
void reduction_bad() {
  ReductionCase c(1, 3);
  c.layer.reduce_func = BNNSReduceFunctionNone;  // of scatter only
  EXPECT_EQ(BNNSDirectApplyReduction(&c.layer, nullptr), -1);
  EXPECT_TRUE(is_untouched(c.y));
}

// ---- embedding ------------------------------------------------------------------------------------------------------

// Seven items of five: item k is 10 k, 10 k + 1, ...
struct EmbeddingCase {
  Floats dictionary;
  BNNSLayerParametersEmbedding layer = {};
  EmbeddingCase() {
    for (int item = 0; item < 7; ++item) {
      for (int i = 0; i < 5; ++i) dictionary.push_back(float(10 * item + i));
    }
    layer.i_desc = vector_descriptor(3, nullptr, BNNSDataTypeUInt32);
    layer.dictionary = descriptor(BNNSDataLayout2DLastMajor, {5, 7}, dictionary.data());
    layer.o_desc = descriptor(BNNSDataLayout2DLastMajor, {5, 3}, nullptr);
    layer.padding_idx = SIZE_MAX;
  }
  EmbeddingCase(const EmbeddingCase&) = delete;
};

void embedding_good() {
  const EmbeddingCase c;
  const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&c.layer, nullptr));
  const uint32_t indices[] = {1, 5, 2};
  Floats y(15);
  EXPECT_EQ(BNNSFilterApply(filter.get(), indices, y.data()), 0);
  EXPECT_EQ(y, (Floats{10, 11, 12, 13, 14, 50, 51, 52, 53, 54, 20, 21, 22, 23, 24}));
}
void embedding_bad() {
  EmbeddingCase c;
  c.layer.i_desc.data_type = BNNSDataTypeFloat32;  // indices are integers
  expect_no_filter(BNNSFilterCreateLayerEmbedding(&c.layer, nullptr));
}

// ---- top-K ----------------------------------------------------------------------------------------------------------

struct TopKCase {
  Floats x = {3, 9, 1, 7, 5}, values = untouched(2);
  std::vector<int32_t> indices = {-77, -77};
  Array x_desc = vec(x), values_desc = vec(values);
  Array indices_desc = vector_descriptor(2, indices.data(), BNNSDataTypeInt32);
  int run(size_t k) { return BNNSDirectApplyTopK(k, 0, 1, &x_desc, 0, &values_desc, 0, &indices_desc, 0, nullptr); }
};

void top_k_good() {
  TopKCase c;
  EXPECT_EQ(c.run(2), 0);
  EXPECT_EQ(c.values, (Floats{9, 7}));
  EXPECT_EQ(c.indices, (std::vector<int32_t>{1, 3}));
  // The documented matrix, along its rows' index: the best two of each column.
  Floats x = {1, 2, 3, 9, 1, 6, 7, 1, 9, 0, 1, 3, 4, 5, 8, 1}, best(8);
  std::vector<int32_t> where(8);
  const Array x_desc = row_major(4, 4, x.data());
  Array best_desc = row_major(4, 2, best.data());
  Array where_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 2}, where.data(), BNNSDataTypeInt32);
  EXPECT_EQ(BNNSDirectApplyTopK(2, 0, 1, &x_desc, 0, &best_desc, 0, &where_desc, 0, nullptr), 0);
  EXPECT_EQ(best, (Floats{9, 6, 8, 9, 4, 5, 7, 3}));
  EXPECT_EQ(where, (std::vector<int32_t>{2, 1, 3, 0, 3, 3, 1, 2}));
}
void top_k_bad() {
  TopKCase c;
  EXPECT_EQ(c.run(6), -1);  // of 5
  EXPECT_TRUE(is_untouched(c.values));
  EXPECT_EQ(c.indices, (std::vector<int32_t>{-77, -77}));
}

// The same five values twice; are elements 3 and 4 among the best two?
struct InTopKCase {
  Floats x = {3, 9, 1, 7, 5, 3, 9, 1, 7, 5};
  std::vector<int32_t> tested = {3, 4};
  std::vector<uint8_t> y = {9, 9};
  int run() {
    const Array x_desc = vector_descriptor(5, x.data());
    const Array tested_desc = vector_descriptor(1, tested.data(), BNNSDataTypeInt32);
    Array y_desc = vector_descriptor(1, y.data(), BNNSDataTypeBoolean);
    return BNNSDirectApplyInTopK(2, 0, 2, &x_desc, 5, &tested_desc, 1, &y_desc, 1, nullptr);
  }
};

void in_top_k_good() {
  InTopKCase c;
  EXPECT_EQ(c.run(), 0);
  EXPECT_EQ(c.y, (std::vector<uint8_t>{1, 0}));
}
void in_top_k_bad() {
  InTopKCase c;
  c.tested[1] = 5;  // of 5
  EXPECT_NE(c.run(), 0);
  EXPECT_EQ(c.y, (std::vector<uint8_t>{9, 9}));
}

// ---- crop-resize ----------------------------------------------------------------------------------------------------

// A 6 x 5 image whose pixel (x, y) is 10 y + x, and two boxes of 3 x 3 around (1, 1) and (2, 3): with these modes the
// samples fall on pixels.
struct CropCase {
  BNNSLayerParametersCropResize layer = {};
  Floats image, boxes = {1, 1, 3, 3, 2, 3, 3, 3}, crops = untouched(18);
  Array image_desc, boxes_desc, crops_desc;
  CropCase() {
    layer.spatial_scale = 1;
    layer.sampling_mode = BNNSLinearSamplingOffsetCorners;
    layer.box_coordinate_mode = BNNSCenterSizeWidthFirst;
    layer.method = BNNSInterpolationMethodLinear;
    for (int y = 0; y < 5; ++y) {
      for (int x = 0; x < 6; ++x) image.push_back(float(10 * y + x));
    }
    image_desc = descriptor(BNNSDataLayout4DLastMajor, {6, 5, 1, 1}, image.data());
    boxes_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 2}, boxes.data());
    crops_desc = descriptor(BNNSDataLayout5DLastMajor, {3, 3, 1, 1, 2}, crops.data());
  }
  CropCase(const CropCase&) = delete;
};

void crop_good() {
  CropCase c;
  EXPECT_EQ(BNNSCropResize(&c.layer, &c.image_desc, &c.boxes_desc, &c.crops_desc, nullptr), 0);
  EXPECT_EQ(c.crops, (Floats{0, 1, 2, 10, 11, 12, 20, 21, 22, 21, 22, 23, 31, 32, 33, 41, 42, 43}));
}
void crop_bad() {
  CropCase c;
  c.layer.method = BNNSInterpolationMethodNearest;  // linear only
  EXPECT_EQ(BNNSCropResize(&c.layer, &c.image_desc, &c.boxes_desc, &c.crops_desc, nullptr), -1);
  EXPECT_TRUE(is_untouched(c.crops));
}

// 1 for every pixel of the first box, 10 for the second; they share (1, 2) and (2, 2).
void crop_backward_good() {
  CropCase c;
  for (size_t i = 0; i < 18; ++i) c.crops[i] = i < 9 ? 1 : 10;
  c.image.assign(30, kUntouched);
  EXPECT_EQ(BNNSCropResizeBackward(&c.layer, &c.image_desc, &c.boxes_desc, &c.crops_desc, nullptr), 0);
  EXPECT_EQ(c.image, (Floats{1, 1,  1,  0,  0, 0,  //
                             1, 1,  1,  0,  0, 0,  //
                             1, 11, 11, 10, 0, 0,  //
                             0, 10, 10, 10, 0, 0,  //
                             0, 10, 10, 10, 0, 0}));
}
void crop_backward_bad() {
  CropCase c;
  c.image.assign(30, kUntouched);
  c.boxes_desc.size[0] = 3;  // a box has 4 numbers
  EXPECT_EQ(BNNSCropResizeBackward(&c.layer, &c.image_desc, &c.boxes_desc, &c.crops_desc, nullptr), -1);
  EXPECT_TRUE(is_untouched(c.image));
}

}  // namespace

std::vector<Entry> search_entries() {
  return {
      {"BNNSFilterCreateLayerReduction", reduction_filter_good, reduction_filter_bad},
      {"BNNSDirectApplyReduction", reduction_good, reduction_bad},
      {"BNNSFilterCreateLayerEmbedding", embedding_good, embedding_bad},
      {"BNNSDirectApplyTopK", top_k_good, top_k_bad},
      {"BNNSDirectApplyInTopK", in_top_k_good, in_top_k_bad},
      {"BNNSCropResize", crop_good, crop_bad},
      {"BNNSCropResizeBackward", crop_backward_good, crop_backward_bad},
  };
}

}  // namespace bnns::testing

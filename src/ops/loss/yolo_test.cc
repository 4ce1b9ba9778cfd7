// Yolo: a hand-worked box, the reference's gradient by differences with overlaps held, the library against the
// reference, and what its parameters may be.

#include <atomic>
#include <cstdlib>
#include <functional>

#include "src/ops/loss/loss_testing.h"
#include "src/ops/loss/yolo_ref.h"

namespace bnns::testing {
namespace {

using ref::YoloCase;

// MPS's default scales; labels replicated over the anchors of a cell; about half of the cells hold an object.
YoloCase random_yolo(Random& random, size_t rows, size_t columns, size_t anchors, size_t classes, bool rescore) {
  YoloCase c;
  c.rows = rows;
  c.columns = columns;
  c.anchors = anchors;
  c.box = 5 + classes;
  c.rescore = rescore;
  c.huber_delta = 0.75;
  c.xy = c.wh = 10;
  c.object = 100;
  c.no_object = 5;
  c.classification = 2;
  for (size_t k = 0; k < 2 * anchors; ++k) c.sizes.push_back(coarse(random.uniform(0.5, 4)));
  for (size_t cell = 0; cell < rows * columns; ++cell) {
    Numbers label(c.box, 0.0);
    if (random.below(2)) {
      label[0] = coarse(random.uniform()), label[1] = coarse(random.uniform());
      label[2] = coarse(random.uniform(0.5, 4)), label[3] = coarse(random.uniform(0.5, 4));
      label[4] = 1;
      if (classes) label[5 + random.below(classes)] = 1;
    }
    for (size_t a = 0; a < anchors; ++a) {
      c.labels.insert(c.labels.end(), label.begin(), label.end());
      for (size_t j = 0; j < c.box; ++j) c.x.push_back(coarse(random.normal() * (j == 2 || j == 3 ? 0.4 : 1)));
    }
  }
  return c;
}

struct YoloLayer {
  std::vector<float> sizes;
  BNNSLayerParametersLossYolo p;

  explicit YoloLayer(const YoloCase& c, BNNSDataType type = BNNSDataTypeFloat32)
      : sizes(c.sizes.begin(), c.sizes.end()) {
    std::memset(&p, 0, sizeof p);
    p.function = BNNSLossFunctionYolo;
    p.reduction = BNNSLossReductionSum;
    p.i_desc = vector_descriptor(c.x.size(), nullptr, type);
    p.o_desc = vector_descriptor(1, nullptr);
    p.huber_delta = float(c.huber_delta);
    p.number_of_grid_columns = c.columns;
    p.number_of_grid_rows = c.rows;
    p.number_of_anchor_boxes = c.anchors;
    p.anchor_box_size = c.box;
    p.rescore = c.rescore;
    p.scale_xy = float(c.xy);
    p.scale_wh = float(c.wh);
    p.scale_object = float(c.object);
    p.scale_no_object = float(c.no_object);
    p.scale_classification = float(c.classification);
    p.object_minimum_iou = float(c.object_min_iou);
    p.no_object_maximum_iou = float(c.no_object_max_iou);
    p.anchors_data = sizes.data();
  }
};

// One cell, one anchor of size 1 x 1 with an object of size 1 x 2 at its centre, two classes.
YoloCase one_box() {
  YoloCase c;
  c.box = 7;
  c.xy = 10, c.wh = 8, c.object = 100, c.no_object = 5, c.classification = 2;
  c.sizes = {1, 1};
  c.x = {0, 0, 0, 0, 0, 0, 0};
  c.labels = {0.5, 0.75, 1, 2, 1, 0, 1};
  return c;
}

// Prediction: centre (1/2, 1/2), size 1 x 1. Its rows run from 0 to 1, the label's from -1/4 to 7/4: all of it is
// inside, IOU 1/2. xy 10 (1/4)^2, wh 8 (log 2)^2 / 2, confidence 100 log 2, class 2 log 2.
TEST(YoloReference, WorkedExample) {
  YoloCase c = one_box();
  Numbers g;
  const double ln2 = std::log(2.0);
  EXPECT_NEAR(ref::yolo_loss(c, c.x, c.x, &g), 0.625 + 4 * ln2 * ln2 + 102 * ln2, 1e-12);
  // 10 * 2 * (-1/4) * 1/4; 8 (0 - log 2); 100 (1/2 - 1); 2 (1/2), 2 (1/2 - 1)
  EXPECT_TRUE(near(g, {0, -1.25, 0, -8 * ln2, -50, 1, -1}, Numbers(7, 1e-12)));
  c.rescore = true;  // confidence target 1/2
  EXPECT_NEAR(ref::yolo_loss(c, c.x, c.x, &g), 0.625 + 4 * ln2 * ln2 + 102 * ln2, 1e-12);
  EXPECT_EQ(g[4], 0);
  c.labels[4] = 0;  // empty: 5 log 2
  EXPECT_NEAR(ref::yolo_loss(c, c.x, c.x, &g), 5 * ln2, 1e-12);
  EXPECT_TRUE(near(g, {0, 0, 0, 0, 2.5, 0, 0}, Numbers(7, 1e-12)));
}

TEST(YoloGradient, ReferenceAgainstCentralDifferences) {
  Random random(21);
  for (int k = 0; k < 12; ++k) {
    const YoloCase c = random_yolo(random, 2, 2, 1 + size_t(k % 3), size_t(k % 4), k % 2);
    Numbers analytic;
    ref::yolo_loss(c, c.x, c.x, &analytic);
    const Numbers numeric = central_differences(c.x, [&](const Numbers& x) { return ref::yolo_loss(c, x, c.x); });
    EXPECT_LE(gradient_error(analytic, numeric), 1e-7) << "case " << k;
  }
}

// A batch of two samples against the reference; gradients are double until they are stored, so only storage rounds.
void check_library(const YoloCase& a, const YoloCase& b, BNNSDataType type, BNNSDataType delta_type, size_t gap,
                   size_t threads) {
  YoloLayer layer(a, type);
  TestFilter filter(&layer.p, threads);
  for (float& size : layer.sizes) size = -1;  // copied at creation
  const size_t n = a.x.size();
  Numbers x = a.x, labels = a.labels, ga, gb;
  x.insert(x.end(), b.x.begin(), b.x.end());
  labels.insert(labels.end(), b.labels.begin(), b.labels.end());
  const double want = ref::yolo_loss(a, a.x, a.x, &ga) + ref::yolo_loss(b, b.x, b.x, &gb);
  ga.insert(ga.end(), gb.begin(), gb.end());
  TestTensor tx(type, x, 2, n, 1, gap), tl(type, labels, 2, n, 1, 2 * gap), dx(delta_type, 2, n, 1, gap);
  TestTensor out(BNNSDataTypeFloat32, 1, 1);
  BNNSNDArrayDescriptor delta = dx.descriptor();
  ASSERT_EQ(BNNSLossFilterApplyBatch(filter, 2, tx.data(), tx.stride(), tl.data(), tl.stride(), nullptr, 77, out.data(),
                                     &delta, dx.stride()),
            0)
      << BNNSExtLastError();  // weights are ignored, whatever weights_size says
  EXPECT_NEAR(out.get(0, 0), want, kU * std::fabs(want));
  Numbers bounds;
  for (double g : ga) bounds.push_back(storage_error(delta_type, g) + 1e-12);
  EXPECT_TRUE(near(dx.values(), ga, bounds));
  EXPECT_TRUE(dx.untouched());

  float dy = -0.5f;
  const BNNSNDArrayDescriptor up = vector_descriptor(1, &dy);
  TestTensor pulled(delta_type, 2, n, 1, gap);
  BNNSNDArrayDescriptor pulled_delta = pulled.descriptor();
  ASSERT_EQ(BNNSLossFilterApplyBackwardBatch(filter, 2, tx.data(), tx.stride(), &pulled_delta, pulled.stride(),
                                             tl.data(), tl.stride(), nullptr, 0, &up, 9),
            0)
      << BNNSExtLastError();
  for (size_t k = 0; k < ga.size(); ++k) ga[k] *= -0.5;
  for (size_t k = 0; k < ga.size(); ++k) bounds[k] = storage_error(delta_type, ga[k]) + 1e-12;
  EXPECT_TRUE(near(pulled.values(), ga, bounds));

  // Accumulate doubles what is there (f32), to the rounding of the sum.
  if (delta_type != BNNSDataTypeFloat32) return;
  delta.flags = BNNSNDArrayFlagBackpropAccumulate;
  const Numbers before = dx.values();
  ASSERT_EQ(BNNSLossFilterApplyBatch(filter, 2, tx.data(), tx.stride(), tl.data(), tl.stride(), nullptr, 0, out.data(),
                                     &delta, dx.stride()),
            0);
  for (size_t k = 0; k < before.size(); ++k) EXPECT_EQ(dx.get(k / n, k % n), 2 * before[k]);
}

TEST(YoloKernel, AgainstReference) {
  Random random(22);
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  for (size_t k = 0; k < 36; ++k) {
    const size_t classes[] = {0, 1, 2, 20, 600};
    YoloCase a = random_yolo(random, 1 + k % 3, 1 + k % 4, 1 + k % 5, classes[k % 5], k % 2);
    YoloCase b = random_yolo(random, a.rows, a.columns, a.anchors, classes[k % 5], k % 2);
    b.sizes = a.sizes;
    // Bounds that some overlaps meet, and some do not.
    a.object_min_iou = b.object_min_iou = k % 3 == 0 ? 0.2 : 0.7;
    a.no_object_max_iou = b.no_object_max_iou = k % 3 == 1 ? 0.1 : 0.3;
    a.object_min_iou = b.object_min_iou = double(float(a.object_min_iou));
    a.no_object_max_iou = b.no_object_max_iou = double(float(a.no_object_max_iou));
    SCOPED_TRACE("case " + std::to_string(k));
    check_library(a, b, types[k % 3], types[k / 3 % 3], k % 4, kThreadCounts[k % 4]);
  }
}

// YOLOv2's grid: 13 x 13 cells, 5 anchors, 80 classes: the same bits for any number of threads.
TEST(YoloProperty, BC53_SameBitsForAnyNumberOfThreads) {
  Random random(23);
  const YoloCase c = random_yolo(random, 13, 13, 5, 80, true);
  YoloLayer layer(c);
  const std::vector<float> x(c.x.begin(), c.x.end()), labels(c.labels.begin(), c.labels.end());
  std::vector<float> first;
  float first_out = 0;
  for (size_t threads : kThreadCounts) {
    TestFilter filter(&layer.p, threads);
    std::vector<float> dx(x.size(), poison());
    BNNSNDArrayDescriptor delta = vector_descriptor(x.size(), dx.data());
    float out;
    ASSERT_EQ(BNNSLossFilterApplyBatch(filter, 1, x.data(), 0, labels.data(), 0, nullptr, 0, &out, &delta, 0), 0);
    if (threads == 1) {
      first = dx;
      first_out = out;
    }
    EXPECT_EQ(bits(out), bits(first_out));
    EXPECT_TRUE(same_bits(dx, first));
  }
}

// Equal overlaps: the first anchor is the object's, the second is empty, or counts for nothing.
TEST(YoloProperty, FirstOfEqualAnchorsWins) {
  YoloCase c = one_box();
  c.anchors = 2;
  c.sizes = {1, 1, 1, 1};
  c.x = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  c.labels = {0.5, 0.75, 1, 2, 1, 0, 1, 0.5, 0.75, 1, 2, 1, 0, 1};
  for (double most : {0.75, 0.25}) {  // IOU is 1/2
    c.no_object_max_iou = most;
    YoloLayer layer(c);
    TestFilter filter(&layer.p);
    const std::vector<float> x(c.x.begin(), c.x.end()), labels(c.labels.begin(), c.labels.end());
    std::vector<float> dx(14, poison());
    BNNSNDArrayDescriptor delta = vector_descriptor(14, dx.data());
    float out;
    ASSERT_EQ(BNNSLossFilterApplyBatch(filter, 1, x.data(), 0, labels.data(), 0, nullptr, 0, &out, &delta, 0), 0);
    EXPECT_EQ(dx[4], -50);
    EXPECT_EQ(dx[11], most == 0.75 ? 2.5f : 0);
    EXPECT_EQ(dx[8], 0);
  }
}

// Extreme sizes stay finite; NaN shows in the loss and stays in its own box.
TEST(YoloProperty, SpecialValues) {
  YoloCase c = one_box();
  YoloLayer layer(c);
  TestFilter filter(&layer.p);
  std::vector<float> labels(c.labels.begin(), c.labels.end());
  const auto run = [&](std::vector<float> x, std::vector<float>* dx) {
    dx->assign(7, poison());
    BNNSNDArrayDescriptor delta = vector_descriptor(7, dx->data());
    float out = poison();
    EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 1, x.data(), 0, labels.data(), 0, nullptr, 0, &out, &delta, 0), 0);
    return out;
  };
  std::vector<float> dx;
  EXPECT_TRUE(std::isfinite(run({1e4f, -1e4f, 1e4f, -1e4f, 1e4f, 1e4f, -1e4f}, &dx)));
  for (float g : dx) EXPECT_TRUE(std::isfinite(g));
  EXPECT_TRUE(std::isnan(run({NAN, 0, 0, 0, 0, 0, 0}, &dx)));
  EXPECT_TRUE(std::isnan(run({0, 0, NAN, 0, 0, 0, 0}, &dx)));
  EXPECT_TRUE(std::isnan(run({0, 0, 0, 0, NAN, 0, 0}, &dx)));
}

TEST(YoloCreate, BC35_RefusesWrongParameters) {
  using Parameters = BNNSLayerParametersLossYolo;
  const struct {
    const char* name;
    std::function<void(Parameters*)> change;
    std::initializer_list<const char*> words;
  } cases[] = {
      {"mean", [](Parameters* p) { p->reduction = BNNSLossReductionMean; }, {"reduction is mean", "expected sum"}},
      {"none", [](Parameters* p) { p->reduction = BNNSLossReductionNone; }, {"reduction is none", "expected sum"}},
      {"box 4", [](Parameters* p) { p->anchor_box_size = 4; }, {"anchor_box_size is 4", "at least 5"}},
      {"rows 0", [](Parameters* p) { p->number_of_grid_rows = 0; }, {"i_desc has 7 elements", "expected 0"}},
      {"columns 2", [](Parameters* p) { p->number_of_grid_columns = 2; }, {"i_desc has 7 elements", "expected 14"}},
      {"anchors max", [](Parameters* p) { p->number_of_anchor_boxes = SIZE_MAX; }, {"does not fit"}},
      {"rows max", [](Parameters* p) { p->number_of_grid_rows = SIZE_MAX; }, {"does not fit"}},
      {"no anchors", [](Parameters* p) { p->anchors_data = nullptr; }, {"anchors_data is NULL"}},
      {"anchor 0", [](Parameters* p) { p->anchors_data[1] = 0; }, {"anchors_data[1] is 0"}},
      {"anchor nan", [](Parameters* p) { p->anchors_data[0] = NAN; }, {"anchors_data[0] is nan"}},
      {"delta", [](Parameters* p) { p->huber_delta = -1; }, {"huber_delta is -1"}},
      {"scale", [](Parameters* p) { p->scale_xy = INFINITY; }, {"scale_xy is inf"}},
      {"iou", [](Parameters* p) { p->object_minimum_iou = NAN; }, {"object_minimum_iou is nan"}},
      {"integers", [](Parameters* p) { p->i_desc.data_type = BNNSDataTypeInt16; }, {"i_desc has type i16"}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    YoloLayer layer(one_box());
    test.change(&layer.p);
    BNNSExtClearLastError();
    EXPECT_EQ(BNNSFilterCreateLayerLoss(&layer.p, nullptr), nullptr);
    EXPECT_TRUE(refused_because(test.words));
  }
  // huber_delta 0 means 1.
  YoloCase c = one_box();
  c.x[2] = 3;  // outside delta: gradient 8 * 1
  YoloLayer layer(c);
  layer.p.huber_delta = 0;
  TestFilter filter(&layer.p);
  std::vector<float> x(c.x.begin(), c.x.end()), labels(c.labels.begin(), c.labels.end()), dx(7);
  BNNSNDArrayDescriptor delta = vector_descriptor(7, dx.data());
  float out;
  EXPECT_EQ(BNNSLossFilterApplyBatch(filter, 1, x.data(), 0, labels.data(), 0, nullptr, 0, &out, &delta, 0), 0);
  EXPECT_EQ(dx[2], 8);
}

std::atomic<int> live_blocks{0}, allocations{0}, fail_at{0};
int counting_alloc(void** memory, size_t alignment, size_t bytes) {
  if (++allocations == fail_at) return 12;
  ++live_blocks;
  return posix_memalign(memory, alignment, bytes);
}
void counting_free(void* memory) {
  --live_blocks;
  std::free(memory);
}

// The filter and its anchors: two blocks, and none left when the second fails.
TEST(YoloMemory, BC42_ClientAllocator) {
  YoloLayer layer(one_box());
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.alloc_memory = counting_alloc;
  options.free_memory = counting_free;
  for (int n = 1; n <= 2; ++n) {
    allocations = 0;
    fail_at = n;
    EXPECT_EQ(BNNSFilterCreateLayerLoss(&layer.p, &options), nullptr);
    EXPECT_EQ(live_blocks, 0);
  }
  fail_at = 0;
  BNNSFilter filter = BNNSFilterCreateLayerLoss(&layer.p, &options);
  ASSERT_NE(filter, nullptr);
  EXPECT_EQ(live_blocks, 2);
  BNNSFilterDestroy(filter);
  EXPECT_EQ(live_blocks, 0);
}

}  // namespace
}  // namespace bnns::testing

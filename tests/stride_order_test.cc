// Strides in any order (K1): every layer gives the bits that it gives on dense tensors, forward and backward. What only
// some operators are asked here, all are in their own tests on LayoutTensor.

#include <functional>

#include "src/core/error.h"
#include "src/tensor/distinct.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;
using Values = std::vector<float>;

// A batch of tensors whose elements lie in the given order. Between and behind the samples nothing may be touched.
class Batch {
 public:
  Batch(StrideOrder order, BNNSDataLayout layout, Sizes size, size_t batch = 1)
      : size_(std::move(size)), batch_(batch) {
    const size_t rank = size_.size(), count = count_of(size_), gap = order == StrideOrder::rising ? 0 : 3;
    const bool first_major = (unsigned(layout) & 0x8001) == 0x8001;
    size_t next = 1;
    strides_.resize(rank);
    descriptor_ = bnns::testing::descriptor(layout, size_, nullptr);
    for (size_t i = 0; i < rank; ++i) {
      const size_t j = order == StrideOrder::rising    ? i
                       : order == StrideOrder::falling ? rank - 1 - i
                                                       : (i + rank - 1) % rank;
      const size_t k = first_major ? rank - 1 - j : j;
      strides_[k] = next;
      if (order != StrideOrder::rising) descriptor_.stride[j] = next;
      next *= size_[k];
    }
    stride_ = count + gap;
    memory_.assign(batch * stride_, poison());
  }

  void fill(uint64_t seed) {
    Random random(seed);
    for_each([&](float& value) { value = float(random.normal()); });
  }
  void append_to(Values* all) {
    size_t poisoned = 0;
    for_each([&](float& value) { all->push_back(value); });
    for (float value : memory_) poisoned += is_poison(value);
    EXPECT_EQ(poisoned, batch_ * (stride_ - count_of(size_))) << "a gap was written";
  }

  BNNSNDArrayDescriptor& descriptor() {
    descriptor_.data = memory_.data();
    return descriptor_;
  }
  float* data() { return memory_.data(); }
  size_t stride() const { return stride_; }

 private:
  template <class F>
  void for_each(F&& f) {
    for (size_t n = 0; n < batch_; ++n) {
      for_each_coordinate(size_, [&](const Coordinates& at) {
        size_t offset = n * stride_;
        for (size_t k = 0; k < at.size(); ++k) offset += at[k] * strides_[k];
        f(memory_[offset]);
      });
    }
  }

  Sizes size_, strides_;
  size_t batch_, stride_ = 0;
  Values memory_;
  BNNSNDArrayDescriptor descriptor_;
};

struct Case {
  const char* name;
  std::function<Values(StrideOrder)> run;
  // A matrix that lies in columns goes to other algorithms than one in rows, which sum in another order: as with the
  // two layouts.
  double tolerance = 0;
};

template <class Layer>
Layer zeroed() {
  Layer layer;
  std::memset(&layer, 0, sizeof layer);
  return layer;
}

// Forward and backward of a filter through the generic calls. w and b may be null.
Values generic(const FilterHandle& filter, size_t n, Batch& x, Batch& y, Batch& dx, Batch* dw, Batch* db) {
  Values all;
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), n, x.data(), x.stride(), y.data(), y.stride()), 0) << BNNSExtLastError();
  y.append_to(&all);
  Batch dy = y;
  dy.fill(9);
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), n, x.data(), x.stride(), &dx.descriptor(), dx.stride(), y.data(),
                                         y.stride(), &dy.descriptor(), dy.stride(), dw ? &dw->descriptor() : nullptr,
                                         db ? &db->descriptor() : nullptr),
            0)
      << BNNSExtLastError();
  dx.append_to(&all);
  if (dw) dw->append_to(&all);
  if (db) db->append_to(&all);
  return all;
}

struct ConvolutionShape {
  size_t inputs, outputs, size, kernel, stride, pad, groups;
  bool transposed = false;
};

Values convolution(StrideOrder order, const ConvolutionShape& s) {
  const size_t n = 2, small = (s.size + 2 * s.pad - s.kernel) / s.stride + 1;
  const size_t in = s.transposed ? small : s.size, out = s.transposed ? s.size : small;
  const auto image = BNNSDataLayoutImageCHW, oihw = BNNSDataLayoutConvolutionWeightsOIHW;
  const Sizes weights = {s.kernel, s.kernel, s.inputs / s.groups, s.outputs};
  Batch x(order, image, {in, in, s.inputs}, n), y(order, image, {out, out, s.outputs}, n), dx = x;
  Batch w(order, oihw, weights), dw = w, b(order, BNNSDataLayoutVector, {s.outputs}), db = b;
  x.fill(1), w.fill(2), b.fill(3);
  auto layer = zeroed<BNNSLayerParametersConvolution>();
  layer.i_desc = x.descriptor(), layer.o_desc = y.descriptor(), layer.w_desc = w.descriptor(),
  layer.bias = b.descriptor();
  layer.x_stride = layer.y_stride = s.stride, layer.groups = s.groups;
  for (size_t& pad : layer.pad) pad = s.pad;
  layer.activation.function = BNNSActivationFunctionRectifiedLinear;
  const FilterHandle filter = own(s.transposed ? BNNSFilterCreateLayerTransposedConvolution(&layer, nullptr)
                                               : BNNSFilterCreateLayerConvolution(&layer, nullptr));
  return generic(filter, n, x, y, dx, &dw, &db);
}

Values pooling(StrideOrder order, BNNSPoolingFunction function, size_t size, size_t kernel, size_t stride, size_t pad) {
  const size_t n = 2, channels = 5, out = (size + 2 * pad - kernel) / stride + 1;
  Batch x(order, BNNSDataLayoutImageCHW, {size, size, channels}, n),
      y(order, BNNSDataLayoutImageCHW, {out, out, channels}, n);
  Batch dx = x, dy = y;
  x.fill(1), dy.fill(2);
  auto layer = zeroed<BNNSLayerParametersPooling>();
  layer.i_desc = x.descriptor(), layer.o_desc = y.descriptor();
  layer.pooling_function = function;
  layer.k_width = layer.k_height = kernel, layer.x_stride = layer.y_stride = stride;
  layer.x_padding = layer.y_padding = pad;
  const FilterHandle filter = own(BNNSFilterCreateLayerPooling(&layer, nullptr));
  const bool max = function == BNNSPoolingFunctionMax;
  std::vector<size_t> indices(n * y.stride());
  EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), n, x.data(), x.stride(), y.data(), y.stride(),
                                        max ? indices.data() : nullptr, y.stride()),
            0)
      << BNNSExtLastError();
  EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), n, x.data(), x.stride(), &dx.descriptor(), dx.stride(),
                                                y.data(), y.stride(), &dy.descriptor(), dy.stride(), nullptr,
                                                max ? indices.data() : nullptr, y.stride()),
            0)
      << BNNSExtLastError();
  Values all;
  y.append_to(&all), dx.append_to(&all);
  return all;
}

Values normalization(StrideOrder order, BNNSFilterType type, Sizes size, size_t parameters, bool fused) {
  const size_t n = 3;
  const auto image = BNNSDataLayoutImageCHW;
  Batch x(order, image, size, n), middle(order, image, size, n), y(order, image, size, n);
  Batch gamma(order, BNNSDataLayoutVector, {parameters}), beta = gamma, dgamma = gamma, dbeta = gamma, dx = x, dy = y;
  Batch w(order, BNNSDataLayoutConvolutionWeightsOIHW, {1, 1, size[2], size[2]}), dw = w;
  x.fill(1), gamma.fill(2), beta.fill(3), dy.fill(4), w.fill(5);
  auto layer = zeroed<BNNSLayerParametersNormalization>();
  layer.i_desc = fused ? middle.descriptor() : x.descriptor(), layer.o_desc = y.descriptor();
  layer.gamma_desc = gamma.descriptor(), layer.beta_desc = beta.descriptor();
  layer.momentum = 0.9f, layer.epsilon = 1e-3f, layer.num_groups = 2;
  Values all;
  if (fused) {
    auto convolution = zeroed<BNNSLayerParametersConvolution>();
    convolution.i_desc = x.descriptor(), convolution.o_desc = middle.descriptor(), convolution.w_desc = w.descriptor();
    convolution.x_stride = convolution.y_stride = 1;
    const BNNSFilterType types[] = {BNNSConvolution, type};
    const void* layers[] = {&convolution, &layer};
    const FilterHandle filter = own(BNNSFilterCreateFusedLayer(2, types, layers, nullptr));
    EXPECT_EQ(BNNSFusedFilterApplyBatch(filter.get(), n, x.data(), x.stride(), y.data(), y.stride(), true), 0)
        << BNNSExtLastError();
    BNNSNDArrayDescriptor* parameter_deltas[] = {&dw.descriptor(), nullptr, &dbeta.descriptor(), &dgamma.descriptor()};
    EXPECT_EQ(BNNSFusedFilterApplyBackwardBatch(filter.get(), n, x.data(), x.stride(), &dx.descriptor(), dx.stride(),
                                                y.data(), y.stride(), &dy.descriptor(), dy.stride(), parameter_deltas),
              0)
        << BNNSExtLastError();
    dw.append_to(&all);
  } else {
    const FilterHandle filter = own(BNNSFilterCreateLayerNormalization(type, &layer, nullptr));
    EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), n, x.data(), x.stride(), y.data(), y.stride(), true), 0)
        << BNNSExtLastError();
    EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), n, &dx.descriptor(), dx.stride(), y.data(),
                                                        y.stride(), &dy.descriptor(), dy.stride(), &dbeta.descriptor(),
                                                        &dgamma.descriptor()),
              0)
        << BNNSExtLastError();
  }
  y.append_to(&all), dx.append_to(&all), dgamma.append_to(&all), dbeta.append_to(&all);
  return all;
}

Values fully_connected(StrideOrder order, size_t inputs, size_t outputs, BNNSDataLayout layout) {
  const size_t n = 5;
  Batch x(order, BNNSDataLayoutImageCHW, {inputs / 6, 3, 2}, n), y(order, BNNSDataLayoutVector, {outputs}, n), dx = x;
  const bool row_major = layout == BNNSDataLayoutRowMajorMatrix;
  Batch w(order, layout, row_major ? Sizes{inputs, outputs} : Sizes{outputs, inputs}), dw = w;
  Batch b(order, BNNSDataLayoutVector, {outputs}), db = b;
  x.fill(1), w.fill(2), b.fill(3);
  auto layer = zeroed<BNNSLayerParametersFullyConnected>();
  layer.i_desc = x.descriptor(), layer.o_desc = y.descriptor(), layer.w_desc = w.descriptor(),
  layer.bias = b.descriptor();
  return generic(own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr)), n, x, y, dx, &dw, &db);
}

Values matmul(StrideOrder order, bool trans_a, bool trans_b, size_t m, size_t k, size_t n) {
  const auto layout = BNNSDataLayout3DFirstMajor;
  Batch a(order, layout, trans_a ? Sizes{2, k, m} : Sizes{2, m, k});
  Batch b(order, layout, trans_b ? Sizes{2, n, k} : Sizes{2, k, n}), c(order, layout, {2, m, n});
  a.fill(1), b.fill(2);
  EXPECT_EQ(BNNSMatMul(trans_a, trans_b, 0.5f, &a.descriptor(), &b.descriptor(), &c.descriptor(), nullptr, nullptr), 0)
      << BNNSExtLastError();
  Values all;
  c.append_to(&all);
  return all;
}

Values activation(StrideOrder order, BNNSActivationFunction function) {
  const size_t n = 2;
  const auto layout = BNNSDataLayout3DFirstMajor;
  Batch x(order, layout, {4, 5, 37}, n), y(order, layout, {4, 5, 37}, n), dx = x;
  x.fill(1);
  auto layer = zeroed<BNNSLayerParametersActivation>();
  layer.i_desc = x.descriptor(), layer.o_desc = y.descriptor();
  layer.activation.function = function;
  layer.axis_flags = function == BNNSActivationFunctionSoftmax ? 2 : 0;
  return generic(own(BNNSFilterCreateLayerActivation(&layer, nullptr)), n, x, y, dx, nullptr, nullptr);
}

Values arithmetic(StrideOrder order) {
  const size_t n = 2;
  const Sizes size = {7, 9, 5};
  const auto image = BNNSDataLayoutImageCHW;
  Batch a(order, image, size, n), b(order, image, {7, 1, 5}, n), y(order, image, size, n), da = a, db = b, dy = y;
  a.fill(1), b.fill(2), dy.fill(3);
  BNNSArithmeticBinary fields;
  std::memset(&fields, 0, sizeof fields);
  fields.in1 = a.descriptor(), fields.in2 = b.descriptor(), fields.out = y.descriptor();
  fields.in1_type = fields.in2_type = fields.out_type = BNNSSample;
  auto layer = zeroed<BNNSLayerParametersArithmetic>();
  layer.arithmetic_function = BNNSArithmeticMultiply;
  layer.arithmetic_function_fields = &fields;
  const FilterHandle filter = own(BNNSFilterCreateLayerArithmetic(&layer, nullptr));
  const void* in[] = {a.data(), b.data()};
  const size_t strides[] = {a.stride(), b.stride()};
  EXPECT_EQ(BNNSArithmeticFilterApplyBatch(filter.get(), n, 2, in, strides, y.data(), y.stride()), 0)
      << BNNSExtLastError();
  BNNSNDArrayDescriptor* deltas[] = {&da.descriptor(), &db.descriptor()};
  EXPECT_EQ(BNNSArithmeticFilterApplyBackwardBatch(filter.get(), n, 2, in, strides, deltas, strides, y.data(),
                                                   y.stride(), &dy.descriptor(), dy.stride()),
            0)
      << BNNSExtLastError();
  Values all;
  y.append_to(&all), da.append_to(&all), db.append_to(&all);
  return all;
}

Values loss(StrideOrder order) {
  const size_t n = 4;
  Batch x(order, BNNSDataLayout2DLastMajor, {6, 5}, n), labels(order, BNNSDataLayout2DLastMajor, {6, 5}, n), dx = x;
  x.fill(1), labels.fill(2);
  float out = 0;
  auto layer = zeroed<BNNSLayerParametersLossBase>();
  layer.function = BNNSLossFunctionMeanSquareError;
  layer.i_desc = x.descriptor(), layer.o_desc = vector_descriptor(1, &out);
  layer.reduction = BNNSLossReductionSum;
  const FilterHandle filter = own(BNNSFilterCreateLayerLoss(&layer, nullptr));
  EXPECT_EQ(BNNSLossFilterApplyBatch(filter.get(), n, x.data(), x.stride(), labels.data(), labels.stride(), nullptr, 0,
                                     &out, &dx.descriptor(), dx.stride()),
            0)
      << BNNSExtLastError();
  Values all = {out};
  dx.append_to(&all);
  return all;
}

Values copy(StrideOrder order, StrideOrder to_order) {
  const auto layout = BNNSDataLayout4DLastMajor;
  Batch x(order, layout, {17, 5, 33, 3}), y(to_order, layout, {17, 5, 33, 3}), t(to_order, layout, {33, 5, 17, 3});
  x.fill(1);
  EXPECT_EQ(BNNSCopy(&y.descriptor(), &x.descriptor(), nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(BNNSTranspose(&t.descriptor(), &x.descriptor(), 0, 2, nullptr), 0) << BNNSExtLastError();
  Values all;
  y.append_to(&all), t.append_to(&all);
  return all;
}

Values optimizer(StrideOrder order) {
  const auto oihw = BNNSDataLayoutConvolutionWeightsOIHW;
  Batch w(order, oihw, {3, 3, 4, 5}), g = w, m = w;
  w.fill(1), g.fill(2), m.fill(3);
  BNNSOptimizerSGDMomentumFields fields;
  std::memset(&fields, 0, sizeof fields);
  fields.learning_rate = 0.1f, fields.momentum = 0.9f, fields.gradient_scale = 1;
  BNNSNDArrayDescriptor *ws[] = {&w.descriptor()}, *ms[] = {&m.descriptor()};
  const BNNSNDArrayDescriptor* gs[] = {&g.descriptor()};
  const auto step = [&] {
    return BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 1, ws, gs, ms, nullptr);
  };
  EXPECT_EQ(step(), 0) << BNNSExtLastError();
  if (order != StrideOrder::rising) {  // a gradient in another order would be added to the wrong weights
    Batch other(StrideOrder::rising, oihw, {3, 3, 4, 5});
    gs[0] = &other.descriptor();
    EXPECT_EQ(step(), -1);
    EXPECT_TRUE(refused_because({"gradients[0] lies in another order than its parameter"}));
  }
  Values all;
  w.append_to(&all), m.append_to(&all);
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  static const std::pair<const char*, ConvolutionShape> kConvolutions[] = {
      {"3x3 on 64", {64, 64, 14, 3, 1, 1, 1}},   {"3x3 on 3", {3, 16, 17, 3, 1, 1, 1}},
      {"5x5 stride 2", {8, 32, 21, 5, 2, 2, 1}}, {"1x1", {32, 48, 9, 1, 1, 0, 1}},
      {"depthwise", {16, 16, 15, 3, 1, 1, 16}},  {"groups", {12, 24, 11, 3, 1, 1, 3}},
      {"7x7 stride 2", {3, 64, 32, 7, 2, 3, 1}}, {"5x5 on 6", {6, 16, 14, 5, 1, 0, 1}},
      {"to one", {16, 1, 20, 3, 1, 1, 1}},       {"transposed", {12, 8, 16, 4, 2, 1, 1, true}},
  };
  for (const auto& c : kConvolutions) {
    list.push_back({c.first, [&c](StrideOrder o) { return convolution(o, c.second); }});
  }
  list.push_back({"max 2x2", [](auto o) { return pooling(o, BNNSPoolingFunctionMax, 12, 2, 2, 0); }});
  list.push_back({"max 3x3", [](auto o) { return pooling(o, BNNSPoolingFunctionMax, 15, 3, 2, 1); }});
  list.push_back({"max global", [](auto o) { return pooling(o, BNNSPoolingFunctionMax, 7, 7, 1, 0); }});
  list.push_back(
      {"average 3x3", [](auto o) { return pooling(o, BNNSPoolingFunctionAverageCountExcludePadding, 13, 3, 1, 1); }});
  list.push_back(
      {"average global", [](auto o) { return pooling(o, BNNSPoolingFunctionAverageCountIncludePadding, 7, 7, 1, 0); }});
  for (bool fused : {false, true}) {
    for (size_t side : {2, 9}) {
      const Sizes size = {side, side, 8};
      list.push_back({"batch norm", [=](auto o) { return normalization(o, BNNSBatchNorm, size, 8, fused); }});
      list.push_back({"instance norm", [=](auto o) { return normalization(o, BNNSInstanceNorm, size, 8, fused); }});
      list.push_back({"group norm", [=](auto o) { return normalization(o, BNNSGroupNorm, size, 8, fused); }});
      list.push_back(
          {"layer norm", [=](auto o) { return normalization(o, BNNSLayerNorm, size, side * side * 8, fused); }});
    }
  }
  for (auto layout : {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix, BNNSDataLayout2DLastMajor}) {
    list.push_back({"fully connected", [=](auto o) { return fully_connected(o, 48, 20, layout); }, 1e-5});
    list.push_back({"fully connected to one", [=](auto o) { return fully_connected(o, 120, 1, layout); }, 1e-5});
  }
  for (size_t n : {1, 3, 40}) {
    for (unsigned trans = 0; trans < 4; ++trans) {
      list.push_back({"matmul", [=](auto o) { return matmul(o, trans & 1, trans & 2, 33, 50, n); }, 1e-5});
    }
  }
  list.push_back({"tanh", [](auto o) { return activation(o, BNNSActivationFunctionTanh); }});
  list.push_back({"softmax", [](auto o) { return activation(o, BNNSActivationFunctionSoftmax); }, 1e-6});
  list.push_back({"multiply", [](auto o) { return arithmetic(o); }});
  list.push_back({"loss", [](auto o) { return loss(o); }});
  list.push_back({"optimizer", [](auto o) { return optimizer(o); }});
  for (auto to : {StrideOrder::rising, StrideOrder::falling, StrideOrder::last_first}) {
    list.push_back({"copy", [=](auto o) { return copy(o, to); }});
  }
  return list;
}

TEST(StrideOrder, SameBits) {
  for_each_isa([&] {
    for (const Case& c : cases()) {
      const Values want = c.run(StrideOrder::rising);
      for (StrideOrder order : {StrideOrder::falling, StrideOrder::last_first}) {
        SCOPED_TRACE(std::string(c.name) + (order == StrideOrder::falling ? ", falling" : ", last first"));
        const Values got = c.run(order);
        ASSERT_EQ(got.size(), want.size());
        if (c.tolerance == 0) {
          ASSERT_TRUE(same_bits(got, want));
        }
        ASSERT_TRUE(within(got, want, want.size(),
                           [&](size_t i) { return c.tolerance * std::max(1.0, std::fabs(double(want[i]))); }));
      }
    }
  });
}

// ---- elements that share an address -------------------------------------------------------------------------------

Tensor tensor_of(Sizes size, Sizes stride) {
  auto d = descriptor(generic_layout(size.size(), false), size, nullptr);
  std::copy(stride.begin(), stride.end(), d.stride);
  return resolve(d, "op", "field");
}

// Against a list of all addresses, on small tensors; the two that are named do share one.
TEST(StrideOrder, SharedAddressesAreFound) {
  Random random(1);
  size_t found = 0;
  for (int i = 0; i < 20000; ++i) {
    const size_t rank = 1 + random.below(4);
    Sizes size(rank), stride(rank);
    for (size_t& n : size) n = 1 + random.below(5);
    for (size_t& s : stride) s = 1 + random.below(30);
    const Tensor t = tensor_of(size, stride);
    std::vector<size_t> addresses;
    const auto address = [&](const Coordinates& at) {
      return std::inner_product(at.begin(), at.end(), stride.begin(), size_t{0});
    };
    for_each_coordinate(size, [&](const Coordinates& at) { addresses.push_back(address(at)); });
    std::sort(addresses.begin(), addresses.end());
    const bool shares = std::adjacent_find(addresses.begin(), addresses.end()) != addresses.end();
    try {
      check_distinct(t, "op", "field");
      ASSERT_FALSE(shares) << t.text();
    } catch (const Error& error) {
      ASSERT_TRUE(shares) << error.what();
      ++found;
      // "op: field is f32 2x3: elements (0, 1) and (1, 0) share an address, ..."
      const std::string text = error.what();
      const auto read_element = [&](size_t from) {
        Coordinates at;
        for (const char* p = text.c_str() + from; *p && *p != ')';) {
          if (std::isdigit(static_cast<unsigned char>(*p))) {
            char* end;
            at.push_back(std::strtoul(p, &end, 10));
            p = end;
          } else {
            ++p;
          }
        }
        return at;
      };
      const Coordinates a = read_element(text.find("elements (")), b = read_element(text.find(") and (") + 1);
      ASSERT_TRUE(a.size() == rank && b.size() == rank && a != b) << text;
      for (size_t k = 0; k < rank; ++k) ASSERT_TRUE(a[k] < size[k] && b[k] < size[k]) << text;
      ASSERT_EQ(address(a), address(b)) << text;
    }
  }
  EXPECT_GT(found, 1000u);
}

// Huge tensors are answered as quickly.
TEST(StrideOrder, SharedAddressesOfHugeTensors) {
  const size_t big = size_t{1} << 20;
  EXPECT_NO_THROW(check_distinct(tensor_of({big, big, 7}, {big * 7, 7, 1}), "op", "field"));
  EXPECT_NO_THROW(check_distinct(tensor_of({2, 2}, {2, 3}), "op", "field"));  // 0, 2, 3, 5
  EXPECT_THROW(check_distinct(tensor_of({big, big}, {1, 1}), "op", "field"), Error);
  EXPECT_THROW(check_distinct(tensor_of({big, big, big}, {big + 1, big, big - 1}), "op", "field"), Error);
}

// What programs pass for a transposed view: 2DLastMajor, size {m, k}, stride {k, 1} is a row-major matrix of m rows.
TEST(StrideOrder, TransposedViewsOfAProduct) {
  float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 2, 1, 0, 3}, c[4];  // 2 x 3, 3 x 2, row-major
  auto a_desc = descriptor(BNNSDataLayout2DLastMajor, {2, 3}, a),
       b_desc = descriptor(BNNSDataLayout2DLastMajor, {3, 2}, b);
  auto c_desc = descriptor(BNNSDataLayout2DLastMajor, {2, 2}, c);
  a_desc.stride[0] = 3, a_desc.stride[1] = 1, b_desc.stride[0] = 2, b_desc.stride[1] = 1;
  c_desc.stride[0] = 2, c_desc.stride[1] = 1;
  ASSERT_EQ(BNNSMatMul(false, false, 1, &a_desc, &b_desc, &c_desc, nullptr, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{5, 11, 14, 23}));

  float x[3] = {1, 2, 3}, y[2];
  auto layer = zeroed<BNNSLayerParametersFullyConnected>();
  layer.i_desc = vector_descriptor(3, nullptr), layer.o_desc = vector_descriptor(2, nullptr);
  layer.w_desc = a_desc;  // outputs x inputs
  const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 2), (std::vector<float>{14, 32}));
}

// A window that slides over a signal is read; written, it is refused, and two elements are named.
TEST(StrideOrder, SlidingWindowsAreReadAndNotWritten) {
  float signal[6] = {1, 2, 3, 4, 5, 6}, windows[12] = {}, sums[4] = {};
  auto sliding = descriptor(BNNSDataLayout2DLastMajor, {3, 4}, signal),
       plain = descriptor(BNNSDataLayout2DLastMajor, {3, 4}, windows);
  sliding.stride[0] = sliding.stride[1] = 1;
  ASSERT_EQ(BNNSCopy(&plain, &sliding, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(windows, windows + 12), (std::vector<float>{1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 6}));
  auto reduction = zeroed<BNNSLayerParametersReduction>();
  reduction.i_desc = sliding, reduction.o_desc = descriptor(BNNSDataLayout2DLastMajor, {1, 4}, sums);
  reduction.reduce_func = BNNSReduceFunctionSum;
  ASSERT_EQ(BNNSDirectApplyReduction(&reduction, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(sums, sums + 4), (std::vector<float>{6, 9, 12, 15}));
  EXPECT_EQ(BNNSCopy(&sliding, &plain, nullptr), -1);
  EXPECT_TRUE(refused_because({"copy: dest is f32 3x4", "elements (0, 1) and (1, 0) share an address"}));
  EXPECT_EQ(signal[1], 2.0f);
}

}  // namespace
}  // namespace bnns::testing

// The layers of the API of macOS 10.12: images and vectors without strides, weights without descriptors.
#include "fuzz/api/case.h"

namespace bnns::fuzz {
namespace {

BNNSImageStackDescriptor stack(Case& c, size_t size, size_t channels) {
  BNNSImageStackDescriptor d{};
  d.width = d.height = size, d.channels = channels, d.data_type = c.type();
  return d;
}
BNNSVectorDescriptor vector(Case& c, size_t size) {
  BNNSVectorDescriptor d{};
  d.size = size, d.data_type = c.type();
  return d;
}
void add(Case& c, BNNSImageStackDescriptor& d) {
  c.add(d.width, d.height, d.channels, d.row_stride, d.image_stride, d.data_scale, d.data_bias);
  c.add_word(d.data_type);
}
void add(Case& c, BNNSVectorDescriptor& d) {
  c.add(d.size, d.data_scale), c.add_word(d.data_type);
}

// The same as an array, for its memory.
Array array_of(const BNNSImageStackDescriptor& d) {
  Array a{};
  a.layout = BNNSDataLayoutImageCHW, a.data_type = d.data_type;
  a.size[0] = d.width, a.size[1] = d.height, a.size[2] = d.channels;
  a.stride[1] = d.row_stride, a.stride[2] = d.image_stride;
  return a;
}
Array array_of(const BNNSVectorDescriptor& d) {
  Array a{};
  a.layout = BNNSDataLayoutVector, a.data_type = d.data_type, a.size[0] = d.size;
  return a;
}

// Elements without gaps; products that overflow are more than any harness gives.
void give(Case& c, BNNSLayerData& data, std::initializer_list<size_t> sizes) {
  Array a{};
  a.layout = BNNSDataLayout4DLastMajor, a.data_type = data.data_type;
  for (size_t k = 0; k < 4; ++k) a.size[k] = k < sizes.size() ? sizes.begin()[k] : 1;
  data.data = c.input(a, 1).data;
  if ((data.data_type & BNNSDataTypeIndexedBit) != 0) data.data_table = static_cast<const float*>(c.input(256 * 4));
}

template <class In, class Out>
void run(Case& c, BNNSFilter filter, const In& in, const Out& out) {
  const auto x = c.input(array_of(in), c.batch), y = c.output(array_of(out), c.batch);
  c.call("apply", [&] { return BNNSFilterApplyBatch(filter, c.batch, x.data, x.stride, y.data, y.stride); });
}

void convolution(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSConvolutionLayerParameters>();
  const size_t k = b.from(1, 3), stride = b.from(1, 2), small = b.from(1, 6), pad = b.below(2);
  const size_t large = (small - 1) * stride + k;
  p.in_channels = b.from(1, 3), p.out_channels = b.from(1, 3);
  p.k_width = p.k_height = k, p.x_stride = p.y_stride = stride, p.x_padding = p.y_padding = pad;
  p.weights.data_type = c.type(), p.bias.data_type = c.type(), p.activation = c.activation();
  auto in = stack(c, large > 2 * pad ? large - 2 * pad : 1, p.in_channels), out = stack(c, small, p.out_channels);
  add(c, in), add(c, out);
  c.add(p.x_stride, p.y_stride, p.x_padding, p.y_padding, p.k_width, p.k_height, p.in_channels, p.out_channels);
  c.add(p.activation), c.add_word(p.weights.data_type), c.add_word(p.bias.data_type);
  c.vary();
  give(c, p.weights, {p.k_width, p.k_height, p.in_channels, p.out_channels});
  if (b.chance(192)) give(c, p.bias, {p.out_channels});
  const Filter filter(BNNSFilterCreateConvolutionLayer(&in, &out, &p, &c.options));
  if (filter) run(c, filter, in, out);
}

void fully_connected(Case& c) {
  auto& p = c.make<BNNSFullyConnectedLayerParameters>();
  p.in_size = c.bytes.from(1, 40), p.out_size = c.bytes.from(1, 40);
  p.weights.data_type = c.type(), p.bias.data_type = c.type(), p.activation = c.activation();
  auto in = vector(c, p.in_size), out = vector(c, p.out_size);
  add(c, in), add(c, out);
  c.add(p.in_size, p.out_size, p.activation), c.add_word(p.weights.data_type), c.add_word(p.bias.data_type);
  c.vary();
  give(c, p.weights, {p.in_size, p.out_size});
  if (c.bytes.chance(192)) give(c, p.bias, {p.out_size});
  const Filter filter(BNNSFilterCreateFullyConnectedLayer(&in, &out, &p, &c.options));
  if (filter) run(c, filter, in, out);
}

void pooling(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSPoolingLayerParameters>();
  const size_t k = b.from(1, 3), stride = b.from(1, 2), small = b.from(1, 6);
  p.in_channels = p.out_channels = b.from(1, 4);
  p.k_width = p.k_height = k, p.x_stride = p.y_stride = stride;
  p.pooling_function = static_cast<BNNSPoolingFunction>(b.below(5));
  p.bias.data_type = c.type(), p.activation = c.activation();
  auto in = stack(c, (small - 1) * stride + k, p.in_channels), out = stack(c, small, p.out_channels);
  add(c, in), add(c, out);
  c.add(p.x_stride, p.y_stride, p.x_padding, p.y_padding, p.k_width, p.k_height, p.in_channels, p.out_channels);
  c.add(p.activation), c.add_word(p.pooling_function);
  c.vary();
  if (b.chance(64)) give(c, p.bias, {p.out_channels});
  const Filter filter(BNNSFilterCreatePoolingLayer(&in, &out, &p, &c.options));
  if (filter) run(c, filter, in, out);
}

void activation(Case& c) {
  BNNSActivation a = c.activation();
  auto in = vector(c, c.bytes.from(1, 100)), out = in;
  out.data_type = c.type();
  add(c, in), add(c, out);
  c.add(a);
  c.vary();
  if (a.function == BNNSActivationFunctionIntegerLinearSaturatePerChannel) {
    const size_t most = std::min<size_t>(std::max(in.size, out.size), 1 << 14) * sizeof(int32_t);
    a.iscale_per_channel = static_cast<const int32_t*>(c.input(most));
    a.ioffset_per_channel = static_cast<const int32_t*>(c.input(most));
    a.ishift_per_channel = static_cast<const int32_t*>(c.input(most));
  }
  const Filter filter(BNNSFilterCreateVectorActivationLayer(&in, &out, &a, &c.options));
  if (filter) run(c, filter, in, out);
}

}  // namespace

const std::vector<Kind> kOld = {convolution, fully_connected, pooling, activation};

}  // namespace bnns::fuzz

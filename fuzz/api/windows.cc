// Convolution, transposed convolution and pooling.
#include "fuzz/api/case.h"

namespace bnns::fuzz {
namespace {

template <BNNSFilter (*Create)(const BNNSLayerParametersConvolution*, const BNNSFilterParameters*), bool kUp>
void convolution(Case& c) {
  auto& b = c.bytes;
  const size_t k = b.from(1, 4), stride = b.from(1, 3), dilation = b.from(1, 2), reach = (k - 1) * dilation + 1;
  const size_t groups = b.chance(64) ? b.from(1, 4) : 1, in = groups * b.from(1, 3), out = groups * b.from(1, 3);
  const size_t small = b.from(1, 6), pad = b.below(2), large = (small - 1) * stride + reach;
  auto& p = c.make<BNNSLayerParametersConvolution>();
  const size_t padded = large > 2 * pad ? large - 2 * pad : 1;
  p.i_desc = kUp ? c.image(small, small, in) : c.image(padded, padded, in);
  p.o_desc = kUp ? c.image(padded, padded, out) : c.image(small, small, out);
  p.w_desc = c.array(BNNSDataLayoutConvolutionWeightsOIHW, {k, k, in / groups, out});
  p.bias = c.vector(out);
  p.activation = c.activation();
  p.x_stride = p.y_stride = stride, p.x_dilation_stride = p.y_dilation_stride = dilation;
  p.x_padding = p.y_padding = pad, p.groups = groups;
  c.add(p.i_desc, p.o_desc, p.w_desc, p.bias, p.activation, p.x_stride, p.y_stride, p.x_dilation_stride);
  c.add(p.y_dilation_stride, p.x_padding, p.y_padding, p.groups, p.pad[0], p.pad[1], p.pad[2], p.pad[3]);
  c.vary();
  c.give(p.w_desc);
  if (b.chance(192)) c.give(p.bias);
  const Filter filter(Create(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc, &p.w_desc, &p.bias);
}

void pooling(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersPooling>();
  const size_t k = b.from(1, 4), stride = b.from(1, 3), small = b.from(1, 6), channels = b.from(1, 4);
  const size_t large = (small - 1) * stride + k;
  p.pooling_function = static_cast<BNNSPoolingFunction>(b.below(5));
  const bool up = p.pooling_function == BNNSPoolingFunctionUnMax;
  p.i_desc = up ? c.image(small, small, channels) : c.image(large, large, channels);
  p.o_desc = up ? c.image(large, large, channels) : c.image(small, small, channels);
  p.bias = c.vector(channels);
  p.activation = c.activation();
  p.k_width = p.k_height = k, p.x_stride = p.y_stride = stride;
  c.add(p.i_desc, p.o_desc, p.bias, p.activation, p.k_width, p.k_height, p.x_stride, p.y_stride, p.x_dilation_stride);
  c.add(p.y_dilation_stride, p.x_padding, p.y_padding, p.pad[0], p.pad[1], p.pad[2], p.pad[3]);
  c.add_word(p.pooling_function);
  c.vary();
  if (b.chance(64)) c.give(p.bias);
  const Filter filter(BNNSFilterCreateLayerPooling(&p, &c.options));
  if (!filter) return;
  // Indices: as many as the small image has elements, with its strides.
  Array index = up ? p.i_desc : p.o_desc;
  index.data_type = b.chance(128) ? BNNSDataTypeUInt64 : b.chance(128) ? BNNSDataTypeInt32 : BNNSDataTypeUInt32;
  const auto x = c.input(p.i_desc, c.batch), y = c.output(p.o_desc, c.batch);
  const auto indices = up ? c.input(index, c.batch) : c.output(index, c.batch);
  void* const given = b.chance(200) ? indices.data : nullptr;
  c.call("pooling", [&] {
    return BNNSPoolingFilterApplyBatchEx(filter, c.batch, x.data, x.stride, y.data, y.stride, index.data_type, given,
                                         indices.stride);
  });
  Array dx = p.i_desc, dy = p.o_desc, db = p.bias;
  c.add(dx, dy, db);
  c.vary();
  size_t dx_stride = 0;
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  c.give_delta(dx, c.batch, &dx_stride), c.give_delta(db, 1, nullptr);
  const size_t wanted = b.byte();
  c.call("pooling backward", [&] {
    return BNNSPoolingFilterApplyBackwardBatchEx(filter, c.batch, wanted & 1 ? nullptr : x.data, x.stride, &dx,
                                                 dx_stride, y.data, y.stride, &dy, g.stride, wanted & 2 ? &db : nullptr,
                                                 index.data_type, wanted & 4 ? nullptr : indices.data, indices.stride);
  });
}

}  // namespace

const std::vector<Kind> kWindows = {convolution<BNNSFilterCreateLayerConvolution, false>,
                                    convolution<BNNSFilterCreateLayerTransposedConvolution, true>, pooling};

}  // namespace bnns::fuzz

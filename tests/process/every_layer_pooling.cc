// Poolings: each kernel of both passes has a window, an image and a type that lead to it.

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

struct Pool {
  BNNSPoolingFunction function;
  size_t c, h, w, kernel, stride, pad = 0, dilation = 1;
};

const char* function_name(BNNSPoolingFunction function) {
  switch (function) {
    case BNNSPoolingFunctionMax:
      return "max";
    case BNNSPoolingFunctionUnMax:
      return "unmax";
    case BNNSPoolingFunctionL2Norm:
      return "l2";
    case BNNSPoolingFunctionAverageCountExcludePadding:
      return "average excluding";
    default:
      return "average";
  }
}

void add(Layers& layers, const Pool& c, BNNSDataType type, bool indexed) {
  const size_t reach = (c.kernel - 1) * c.dilation + 1;
  const size_t h = (c.h + 2 * c.pad - reach) / c.stride + 1, w = (c.w + 2 * c.pad - reach) / c.stride + 1;
  const bool unmax = c.function == BNNSPoolingFunctionUnMax;
  auto owned = std::make_unique<Layer>(
      std::string("pooling ") + function_name(c.function) + (indexed ? " indexed " : " ") + std::to_string(c.c) + "x" +
      std::to_string(c.h) + "x" + std::to_string(c.w) + " window " + std::to_string(c.kernel) + " stride " +
      std::to_string(c.stride) + " pad " + std::to_string(c.pad) + " dilation " + std::to_string(c.dilation) +
      (type == BNNSDataTypeFloat32   ? ""
       : type == BNNSDataTypeFloat16 ? " f16"
                                     : " bf16"));
  Layer& layer = *owned;
  BNNSLayerParametersPooling p = {};
  p.i_desc = unmax ? image(c.c, h, w, nullptr, type) : image(c.c, c.h, c.w, nullptr, type);
  p.o_desc = unmax ? image(c.c, c.h, c.w, nullptr, type) : image(c.c, h, w, nullptr, type);
  p.pooling_function = c.function;
  p.k_width = p.k_height = c.kernel;
  p.x_stride = p.y_stride = c.stride;
  p.x_padding = p.y_padding = c.pad;
  p.x_dilation_stride = p.y_dilation_stride = c.dilation;
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerPooling(&p, o); };
  constexpr size_t kBatch = 2;
  const size_t large = c.c * c.h * c.w, small = c.c * h * w, x_count = unmax ? small : large,
               y_count = unmax ? large : small;
  const void* x = layer.in(kBatch * x_count, type);
  void* y = layer.out(kBatch * y_count, type);
  size_t* at = nullptr;
  if (unmax) {
    at = static_cast<size_t*>(layer.block(kBatch * small * sizeof(size_t)));
    for (size_t i = 0; i < kBatch * small; ++i) {
      const size_t row = i / w % h * c.stride, column = i % w * c.stride;
      at[i] = row * c.w + column;
    }
  } else if (indexed) {
    at = static_cast<size_t*>(layer.out(2 * kBatch * small));
  }
  layer.call("forward", [=](BNNSFilter f, const FilterOptions*) {
    return BNNSPoolingFilterApplyBatch(f, kBatch, x, x_count, y, y_count, at, small);
  });
  Array dy = p.o_desc, dx = p.i_desc;
  dy.data = layer.in(kBatch * y_count, type), dx.data = layer.out(kBatch * x_count, type);
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSPoolingFilterApplyBackwardBatch(f, kBatch, x, x_count, &dx, x_count, y, y_count, &dy, y_count, nullptr,
                                               at, small);
  });
  layers.push_back(std::move(owned));
}

}  // namespace

void add_poolings(Layers& layers) {
  constexpr auto max = BNNSPoolingFunctionMax, average = BNNSPoolingFunctionAverageCountIncludePadding,
                 excluding = BNNSPoolingFunctionAverageCountExcludePadding, l2 = BNNSPoolingFunctionL2Norm,
                 unmax = BNNSPoolingFunctionUnMax;
  for (const auto function : {max, average, excluding, l2, unmax}) {
    const Pool table[] = {
        {function, 16, 28, 28, 2, 2},   {function, 8, 29, 31, 3, 2, 1},    {function, 8, 28, 28, 3, 1, 1},
        {function, 16, 14, 14, 14, 1},  {function, 4, 64, 200, 3, 3},      {function, 2, 20, 1000, 3, 2, 1},
        {function, 4, 40, 40, 5, 3, 2}, {function, 6, 24, 24, 3, 1, 2, 2}, {function, 64, 7, 7, 7, 7},
        {function, 2, 100, 300, 2, 2},  {function, 3, 33, 17, 4, 4},
    };
    for (const Pool& c : table) {
      for (const auto type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
        add(layers, c, type, function == unmax);
        if (function == max) add(layers, c, type, true);
      }
    }
  }
}

}  // namespace bnns::testing

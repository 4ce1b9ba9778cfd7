#include "src/ops/pooling/pooling.h"

#include <algorithm>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/notes.h"
#include "src/ops/pooling/implementations.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "pooling";

const char* function_name(const PoolingLayer& layer) {
  switch (layer.problem.function) {
    case PoolingFunction::max:
      return "max_pool";
    case PoolingFunction::average:
      return layer.problem.geometry.x.counted.begin == 0 ? "average_pool_exclude_padding" : "average_pool";
    case PoolingFunction::l2_norm:
      return "l2_pool";
    case PoolingFunction::unmax:
      return "unmax_pool";
  }
  return "pool";
}

// Small enough that positions and distances never leave int64_t.
int64_t checked_number(size_t value, const char* field, size_t least) {
  constexpr size_t kLargest = 0x7fffffff;
  if (value < least || value > kLargest) {
    fail_invalid("%s: %s is %zu, expected %zu to %zu", kOp, field, value, least, kLargest);
  }
  return static_cast<int64_t>(value);
}

Tensor resolve_image(const BNNSNDArrayDescriptor& d, const char* field) {
  const Tensor t = resolve(d, kOp, field);
  if (t.layout != BNNSDataLayoutImageCHW) {
    fail_invalid("%s: %s.layout is %s, expected BNNSDataLayoutImageCHW", kOp, field, enum_text(t.layout).text);
  }
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; images are f32, f16 or bf16", kOp, field, type_name(t.type));
  }
  return t;
}

struct AxisNames {
  const char *size, *kernel, *stride, *dilation, *before, *after;
};

PoolingAxis make_axis(size_t in, size_t out, size_t kernel, size_t stride, size_t dilation, size_t before, size_t after,
                      bool count_padding, const AxisNames& names, size_t* unread) {
  PoolingAxis axis;
  axis.in = static_cast<int64_t>(in);
  axis.out = static_cast<int64_t>(out);
  axis.kernel = checked_number(kernel, names.kernel, 1);
  axis.stride = checked_number(std::max<size_t>(stride, 1), names.stride, 1);
  axis.dilation = checked_number(std::max<size_t>(dilation, 1), names.dilation, 1);
  axis.pad = checked_number(before, names.before, 0);
  const int64_t padded = axis.in + axis.pad + checked_number(after, names.after, 0);
  if ((padded - 1) / axis.stride < axis.out - 1) {
    fail_invalid(
        "%s: %s of the small image is %zu, expected at most %lld = (%zu + %zu + %zu - 1) / %lld + 1, so that "
        "the last window begins in the padded image",
        kOp, names.size, out, static_cast<long long>((padded - 1) / axis.stride + 1), in, before, after,
        static_cast<long long>(axis.stride));
  }
  const int64_t left_over = padded - (axis.out - 1) * axis.stride - (axis.kernel - 1) * axis.dilation - 1;
  *unread = left_over >= axis.stride ? static_cast<size_t>(left_over) : 0;  // another window would fit
  if (axis.out == 1) axis.stride = 1;  // one window: the step to the next does not matter
  if (!count_padding) axis.counted = {0, axis.in};
  return axis;
}

PoolingFunction read_function(BNNSPoolingFunction function) {
  switch (function) {
    case BNNSPoolingFunctionMax:
      return PoolingFunction::max;
    case BNNSPoolingFunctionAverageCountIncludePadding:
    case BNNSPoolingFunctionAverageCountExcludePadding:
      return PoolingFunction::average;
    case BNNSPoolingFunctionL2Norm:
      return PoolingFunction::l2_norm;
    case BNNSPoolingFunctionUnMax:
      return PoolingFunction::unmax;
  }
  fail_invalid("%s: pooling_function is %s", kOp, enum_text(function).text);
}

// Offsets of maxima within a window are 32-bit.
void check_window_span(const PoolingGeometry& g) {
  if (g.is_global()) return;
  const int64_t down = std::min(g.y.reach(), g.y.in - 1 + g.y.pad),
                across = std::min(g.x.reach(), g.x.in - 1 + g.x.pad);
  if (down > (INT32_MAX - across) / g.x.in) {
    fail_unsupported("%s: a window spans %lld rows of %lld pixels; maxima are found within 2^31 pixels", kOp,
                     static_cast<long long>(down), static_cast<long long>(g.x.in));
  }
}

// Planes of a dense tensor, to choose an algorithm by; the data is not used.
Planes dense_planes(const Tensor& t) {
  static float nothing;
  const int64_t width = static_cast<int64_t>(t.size[0]), plane = width * static_cast<int64_t>(t.size[1]);
  return {&nothing, t.type, 1, width, plane, plane * static_cast<int64_t>(t.size[2])};
}

}  // namespace

PoolingLayer make_pooling_layer(const BNNSLayerParametersPooling* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersPooling", kOp);
  PoolingLayer p;
  p.problem.function = read_function(layer->pooling_function);
  p.x = resolve_image(layer->i_desc, "i_desc");
  p.y = resolve_image(layer->o_desc, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  if (p.x.size[2] != p.y.size[2]) {
    fail_invalid("%s: o_desc has %zu channels, expected %zu as in i_desc", kOp, p.y.size[2], p.x.size[2]);
  }
  p.problem.channels = static_cast<int64_t>(p.x.size[2]);
  if (layer->x_padding || layer->y_padding) {
    p.pad[0] = p.pad[1] = layer->x_padding;
    p.pad[2] = p.pad[3] = layer->y_padding;
  } else {
    std::copy(layer->pad, layer->pad + 4, p.pad);
  }
  const bool unmax = p.problem.function == PoolingFunction::unmax;
  const bool count_padding = layer->pooling_function != BNNSPoolingFunctionAverageCountExcludePadding;
  const Tensor& large = unmax ? p.y : p.x;
  const Tensor& small = unmax ? p.x : p.y;
  size_t columns, rows;
  p.problem.geometry.x = make_axis(
      large.size[0], small.size[0], layer->k_width, layer->x_stride, layer->x_dilation_stride, p.pad[0], p.pad[1],
      count_padding, {"width", "k_width", "x_stride", "x_dilation_stride", "left padding", "right padding"}, &columns);
  p.problem.geometry.y = make_axis(
      large.size[1], small.size[1], layer->k_height, layer->y_stride, layer->y_dilation_stride, p.pad[2], p.pad[3],
      count_padding, {"height", "k_height", "y_stride", "y_dilation_stride", "upper padding", "lower padding"}, &rows);
  if (!unmax && (columns || rows) && notes_wanted()) {
    note_unread_pixels(kOp, columns, rows, std::max<size_t>(layer->x_stride, 1), std::max<size_t>(layer->y_stride, 1));
  }
  if (p.problem.function == PoolingFunction::max) check_window_span(p.problem.geometry);
  if (!is_absent(layer->bias)) {
    p.b = resolve_with_data(layer->bias, kOp, "bias");
    if (p.b.count != p.x.size[2]) {
      fail_invalid("%s: bias has %zu elements, expected %zu = channels", kOp, p.b.count, p.x.size[2]);
    }
    if (type_bytes(p.b.type) == 0 || is_indexed(p.b.type)) {
      fail_unsupported("%s: bias has type %s; it is a float or a whole-byte integer", kOp, type_name(p.b.type));
    }
    if (p.b.rank != 1) {
      if (!p.b.dense) fail_invalid("%s: bias has gaps, expected a Vector or a dense layout", kOp);
      p.b.stride[0] = 1;
    }
  }
  p.activation = make_fused_activation(layer->activation, kOp);
  if (p.activation.is_rowwise()) {
    fail_unsupported("%s: activation %s cannot be fused into a pooling layer", kOp,
                     activation_name(p.activation.function));
  }
  return p;
}

std::string PoolingLayer::text() const {
  const PoolingAxis &gx = problem.geometry.x, &gy = problem.geometry.y;
  const auto pair = [](int64_t a, int64_t b) { return std::to_string(a) + "x" + std::to_string(b); };
  std::string result = std::string(function_name(*this)) + " " + type_name(x.type);
  if (y.type != x.type) result += std::string("->") + type_name(y.type);
  result += " c" + std::to_string(problem.channels) + " h" + pair(gy.in, gy.out) + " w" + pair(gx.in, gx.out) + " k" +
            pair(gx.kernel, gy.kernel) + " s" + pair(gx.stride, gy.stride);
  if (gx.dilation > 1 || gy.dilation > 1) result += " d" + pair(gx.dilation, gy.dilation);
  result += " p";
  for (int k = 0; k < 4; ++k) result.append(k ? "," : "").append(std::to_string(pad[k]));
  if (has_bias()) result += " bias";
  return activation.is_identity() ? result : result + " " + activation_name(activation.function);
}

PoolingFilter::PoolingFilter(const Options& options, const PoolingLayer& layer)
    : Filter(kKind, options),
      layer_(layer),
      bias_(layer.has_bias() ? Parameter(layer.b, options, "the bias") : Parameter()),
      scratch_(options) {}

// Max without indices, as BNNSFilterApplyBatch has it; UnMax with those of a forward pass.
const char* PoolingFilter::implementation(BNNSExtPass pass, size_t /*batch*/) const {
  const bool unmax = layer_.problem.function == PoolingFunction::unmax;
  const Planes x = dense_planes(layer_.x), y = dense_planes(layer_.y);
  const IndexPlanes index{unmax ? x.data : nullptr, true, 1, x.row, x.plane, x.sample};
  if (pass == BNNSExtPassForward) {
    PoolingForward call;
    call.problem = layer_.problem;
    call.x = x, call.y = y, call.index = index;
    call.index_in_rows = true;
    call.activation = layer_.activation;
    lay_column_flat(&call);
    return plan_pooling(call).implementation->name;
  }
  PoolingBackward call;
  call.problem = layer_.problem;
  call.dx = x, call.dy = y, call.index = index;
  call.index_in_rows = call.index_in_windows = true;
  if (layer_.problem.function == PoolingFunction::max || layer_.problem.function == PoolingFunction::l2_norm)
    call.x = x;
  call.activation = layer_.activation;
  lay_column_flat(&call);
  return plan_pooling(call).implementation->name;
}

}  // namespace bnns

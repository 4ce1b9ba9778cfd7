// The checks of BNNSLayerParametersConvolution, and the layouts of weights.

#include "src/ops/convolution/convolution.h"

#include <algorithm>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/notes.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr size_t kLargestAxis = size_t{1} << 56;  // coordinates, and their products with a stride, are signed

// The size axes of W's channels: size = {kw, kh, I, O}, or {kw, kh, O, I} for IOHrWr.
size_t output_axis(const Tensor& w) {
  return w.layout == BNNSDataLayoutConvolutionWeightsIOHrWr ? 2 : 3;
}

bool is_rotated(const Tensor& w) {
  return w.layout == BNNSDataLayoutConvolutionWeightsOIHrWr || w.layout == BNNSDataLayoutConvolutionWeightsIOHrWr;
}

void check_weights(const ConvolutionProblem& p) {
  switch (p.w.layout) {
    case BNNSDataLayoutConvolutionWeightsOIHW:
    case BNNSDataLayoutConvolutionWeightsOIHrWr:
    case BNNSDataLayoutConvolutionWeightsIOHrWr:
    case BNNSDataLayoutConvolutionWeightsOIHW_Pack32:
      break;
    default:
      fail_invalid("%s: w_desc.layout is %s, expected one of the four BNNSDataLayoutConvolutionWeights layouts", p.op(),
                   enum_text(p.w.layout).text);
  }
  const size_t o = output_axis(p.w), i = 5 - o, groups = p.map.groups;
  if (groups > 1 && p.w.layout != BNNSDataLayoutConvolutionWeightsOIHW &&
      p.w.layout != BNNSDataLayoutConvolutionWeightsOIHrWr) {
    fail_unsupported(
        "%s: groups is %zu with w_desc.layout %s; expected BNNSDataLayoutConvolutionWeightsOIHW or "
        "BNNSDataLayoutConvolutionWeightsOIHrWr",
        p.op(), groups, enum_text(p.w.layout).text);
  }
  if (p.inputs % groups != 0 || p.outputs % groups != 0) {
    fail_invalid("%s: groups is %zu, expected a divisor of %zu input and %zu output channels", p.op(), groups, p.inputs,
                 p.outputs);
  }
  if (p.w.size[o] != p.outputs) {
    fail_invalid("%s: w_desc.size[%zu] is %zu, expected %zu = o_desc.size[2]", p.op(), o, p.w.size[o], p.outputs);
  }
  if (p.w.size[i] != p.inputs / groups) {
    fail_invalid("%s: w_desc.size[%zu] is %zu, expected %zu = i_desc.size[2] / groups", p.op(), i, p.w.size[i],
                 p.inputs / groups);
  }
}

struct AxisNames {
  const char *axis, *stride, *dilation, *padding;
};

// One axis: the large image, with its padding, must hold all windows of the small one; surplus pixels are not used.
ConvolutionAxis make_axis(const ConvolutionProblem& p, const AxisNames& names, size_t axis, size_t stride,
                          size_t dilation, size_t before, size_t after, size_t* unread) {
  ConvolutionAxis a;
  const Tensor &small = p.transposed ? p.x : p.y, &large = p.transposed ? p.y : p.x;
  a.small = small.size[axis], a.large = large.size[axis];
  a.kernel = p.w.size[axis];
  a.stride = stride == 0 ? 1 : stride;
  a.dilation = dilation == 0 ? 1 : dilation;
  a.pad = before;
  const size_t padding = std::max(before, after);
  if (padding > kLargestAxis) {
    fail_invalid("%s: %s is %zu, expected at most %zu", p.op(), names.padding, padding, kLargestAxis);
  }
  size_t windows, taps;
  if (__builtin_mul_overflow(a.stride, a.small - 1, &windows) || windows > SIZE_MAX / 2) {
    fail_invalid("%s: %s is %zu, too large: its product with %zu windows does not fit in 64 bits", p.op(), names.stride,
                 a.stride, a.small);
  }
  if (__builtin_mul_overflow(a.kernel - 1, a.dilation, &taps) || taps > SIZE_MAX / 2) {
    fail_invalid("%s: %s is %zu, too large: its product with %zu taps does not fit in 64 bits", p.op(), names.dilation,
                 a.dilation, a.kernel);
  }
  const size_t have = a.large + before + after;  // a tensor has less than 2^61 elements
  const size_t need = windows + taps + 1;
  if (have < need) {
    fail_invalid(
        "%s: %s: %zu pixels of %s and %zu of padding, expected at least %zu = %zu * (%zu - 1) + (%zu - 1) * %zu + 1",
        p.op(), names.axis, a.large, p.transposed ? "o_desc" : "i_desc", before + after, need, a.stride, a.small,
        a.kernel, a.dilation);
  }
  if (have > kLargestAxis) {
    fail_invalid("%s: %s: %zu pixels with padding, expected at most %zu", p.op(), names.axis, have, kLargestAxis);
  }
  *unread = have - need >= a.stride ? have - need : 0;  // space for another window
  // A step that is never made could be any number; 1 needs no space between windows or taps.
  if (a.small == 1) a.stride = 1;
  if (a.kernel == 1) a.dilation = 1;
  return a;
}

}  // namespace

Tensor dense_image(const Tensor& like, BNNSDataType type) {
  Tensor t = like;
  t.type = type;
  t.stride[0] = 1, t.stride[1] = t.size[0], t.stride[2] = t.size[0] * t.size[1];
  t.span = t.count, t.dense = true;
  return t;
}

ConvolutionProblem make_convolution_problem(const BNNSLayerParametersConvolution* layer, bool transposed) {
  ConvolutionProblem p;
  p.transposed = transposed;
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersConvolution", p.op());
  p.x = resolve(layer->i_desc, p.op(), "i_desc");
  p.y = resolve(layer->o_desc, p.op(), "o_desc");
  check_distinct(p.y, p.op(), "o_desc");
  p.w = resolve_with_data(layer->w_desc, p.op(), "w_desc");
  for (const Tensor* t : {&p.x, &p.y}) {
    const char* field = t == &p.x ? "i_desc" : "o_desc";
    if (t->layout != BNNSDataLayoutImageCHW) {
      fail_invalid("%s: %s.layout is %s, expected BNNSDataLayoutImageCHW", p.op(), field, enum_text(t->layout).text);
    }
    if (is_indexed(t->type) || type_bytes(t->type) == 0) {
      fail_unsupported("%s: %s has type %s; inputs and outputs are floats or whole-byte integers", p.op(), field,
                       type_name(t->type));
    }
  }
  if (transposed) {
    for (const Tensor* t : {&p.x, &p.w, &p.y}) {
      if (!is_float(t->type)) {
        fail_unsupported("%s: %s has type %s, expected f32, f16 or bf16", p.op(),
                         t == &p.x   ? "i_desc"
                         : t == &p.w ? "w_desc"
                                     : "o_desc",
                         type_name(t->type));
      }
    }
  }
  if (p.w.count > SIZE_MAX / 64) {  // as f32 and packed, at most 64 bytes each
    fail_invalid("%s: w_desc has %zu elements, expected at most %zu", p.op(), p.w.count, SIZE_MAX / 64);
  }
  p.inputs = p.x.size[2], p.outputs = p.y.size[2];
  p.map.groups = layer->groups <= 1 ? 1 : layer->groups;
  check_weights(p);
  const size_t i = p.inputs / p.map.groups, o = p.outputs / p.map.groups;
  p.map.small_channels = transposed ? i : o;
  p.map.large_channels = transposed ? o : i;

  // Symmetric padding, or left, right, up, down where that is 0.
  size_t left = layer->x_padding, right = left, up = layer->y_padding, down = up;
  if (left == 0 && up == 0) left = layer->pad[0], right = layer->pad[1], up = layer->pad[2], down = layer->pad[3];
  size_t columns, rows;
  p.map.x = make_axis(p, {"width", "x_stride", "x_dilation_stride", "x_padding or pad"}, 0, layer->x_stride,
                      layer->x_dilation_stride, left, right, &columns);
  p.map.y = make_axis(p, {"height", "y_stride", "y_dilation_stride", "y_padding or pad"}, 1, layer->y_stride,
                      layer->y_dilation_stride, up, down, &rows);
  if (!transposed && (columns || rows) && notes_wanted()) {
    note_unread_pixels(p.op(), columns, rows, std::max<size_t>(layer->x_stride, 1),
                       std::max<size_t>(layer->y_stride, 1));
  }

  if (!is_absent(layer->bias)) {
    p.b = resolve_with_data(layer->bias, p.op(), "bias");
    if (p.b.count != p.outputs) {
      fail_invalid("%s: bias has %zu elements, expected %zu = o_desc.size[2]", p.op(), p.b.count, p.outputs);
    }
  }
  if (is_integer_saturation(layer->activation.function)) {
    if (p.transposed) fail_unsupported("%s: integer data; transposed convolution takes floats", p.op());
    p.integer = true;
    p.saturation = make_integer_saturation(layer->activation, {&p.x, &p.w, &p.y}, p.b, p.op());
  } else {
    p.activation = make_fused_activation(layer->activation, p.op());
  }
  return p;
}

bool is_strided(const Tensor& w) {
  return w.layout != BNNSDataLayoutConvolutionWeightsOIHW_Pack32;
}

bool is_f32_in_place(const Tensor& w) {
  return w.type == BNNSDataTypeFloat32 && is_strided(w);
}

bool is_ordered(const Tensor& w) {
  return !is_indexed(w.type) && type_bytes(w.type) != 0 && w.layout == BNNSDataLayoutConvolutionWeightsOIHW &&
         std::is_sorted(w.axis, w.axis + w.rank);
}

size_t weight_strides(const ConvolutionProblem& p, const Tensor& w, WeightStrides* strides) {
  const size_t kw = w.size[0], kh = w.size[1], inputs = p.inputs / p.map.groups;
  WeightStrides s;
  s.x = 1, s.y = static_cast<ptrdiff_t>(kw);
  ptrdiff_t i = static_cast<ptrdiff_t>(kw * kh), o = static_cast<ptrdiff_t>(kw * kh * inputs);
  size_t first = 0;
  if (is_f32_in_place(w)) {
    // Differences of neighbours; an axis of one element keeps the dense value.
    first = weight_offset(w, 0, 0, 0, 0);
    const auto from_first = [&](size_t offset) {
      return static_cast<ptrdiff_t>(offset) - static_cast<ptrdiff_t>(first);
    };
    if (kw > 1) s.x = from_first(weight_offset(w, 0, 0, 0, 1));
    if (kh > 1) s.y = from_first(weight_offset(w, 0, 0, 1, 0));
    if (inputs > 1) i = from_first(weight_offset(w, 0, 1, 0, 0));
    if (p.outputs > 1) o = from_first(weight_offset(w, 1, 0, 0, 0));
  }
  s.group = static_cast<ptrdiff_t>(p.outputs / p.map.groups) * o;
  s.small = p.transposed ? i : o;
  s.large = p.transposed ? o : i;
  if (is_column(p.map)) {
    std::swap(s.x, s.y);
    if (kw == 1) s.y = s.x * static_cast<ptrdiff_t>(kh);  // as of a row
  }
  *strides = s;
  return first;
}

size_t strided_offset(const ConvolutionProblem& p, Tensor w, WeightStrides* strides) {
  w.type = BNNSDataTypeFloat32;
  return weight_strides(p, w, strides);
}

size_t weight_offset(const Tensor& w, size_t o, size_t i, size_t ky, size_t kx) {
  if (w.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    return o % 32 + 32 * (kx + w.size[0] * (ky + w.size[1] * (i + w.size[2] * (o / 32))));
  }
  if (is_rotated(w)) kx = w.size[0] - 1 - kx, ky = w.size[1] - 1 - ky;
  const size_t axis = output_axis(w);
  return kx * w.stride[0] + ky * w.stride[1] + i * w.stride[5 - axis] + o * w.stride[axis];
}

void store_weight(const Tensor& dw, size_t offset, float value) {
  Tensor one = vector_tensor(1, nullptr);
  one.type = dw.type, one.scale = dw.scale, one.bias = dw.bias;
  void* at = element_at(dw.data, dw.type, offset);
  const Elements element(one);
  if (!dw.accumulate && element.direct()) {
    *static_cast<float*>(at) = value;
  } else if (dw.accumulate) {
    element.accumulate(at, 0, 1, &value);
  } else {
    element.write(at, 0, 1, &value);
  }
}

std::string ConvolutionProblem::text() const {
  const auto image = [](const Tensor& t) {
    return std::to_string(t.size[2]) + "x" + std::to_string(t.size[1]) + "x" + std::to_string(t.size[0]);
  };
  std::string result = std::string(op()) + " " + type_name(x.type);
  if (w.type != x.type) result += std::string(" w:") + type_name(w.type);
  result.append(" ").append(image(x)).append(" > ").append(image(y));
  result.append(" k").append(std::to_string(map.y.kernel)).append("x").append(std::to_string(map.x.kernel));
  const auto pair = [&](const char* name, size_t a, size_t b, size_t normal) {
    if (a == normal && b == normal) return;
    result.append(" ").append(name).append(std::to_string(a));
    if (a != b) result.append("x").append(std::to_string(b));
  };
  pair("s", map.y.stride, map.x.stride, 1);
  pair("d", map.y.dilation, map.x.dilation, 1);
  pair("p", map.y.pad, map.x.pad, 0);
  if (map.groups > 1) result += " g" + std::to_string(map.groups);
  if (!has_bias()) result += " nobias";
  if (integer) return result + " integer_saturate";
  return activation.is_identity() ? result : result + " " + activation_name(activation.function);
}

ConvolutionFilter::ConvolutionFilter(const Options& options, const ConvolutionProblem& problem)
    : Filter(problem.transposed ? FilterKind::transposed_convolution : FilterKind::convolution, options),
      problem_(problem),
      x_(laid_flat(problem.map, problem.x)),
      y_(laid_flat(problem.map, problem.y)),
      weights_(problem.w, options, "the weights"),
      bias_(problem.has_bias() ? Parameter(problem.b, options, "the bias") : Parameter()),
      scratch_(options) {}

}  // namespace bnns

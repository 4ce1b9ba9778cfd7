#include "src/ops/crop_resize/crop_resize.h"

#include <algorithm>
#include <cmath>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

// Extent and stride of the dimension at stride position j; 1 and 0 beyond the rank.
size_t extent_at(const Tensor& t, size_t j) {
  return j < t.rank ? t.size[t.axis[j]] : 1;
}
size_t stride_at(const Tensor& t, size_t j) {
  return j < t.rank ? t.stride[t.axis[j]] : 0;
}

Tensor resolve_float(const BNNSNDArrayDescriptor* d, const char* op, const char* field) {
  const Tensor t = resolve_with_data(d, op, field);
  check_plain(t, op, field);
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; expected f32, f16 or bf16", op, field, type_name(t.type));
  }
  return t;
}

void check_layer(const BNNSLayerParametersCropResize& layer, const char* op) {
  if (layer.method != BNNSInterpolationMethodLinear) {
    fail_unsupported("%s: method is %s, expected BNNSInterpolationMethodLinear", op, enum_text(layer.method).text);
  }
  if (static_cast<unsigned>(layer.sampling_mode) > BNNSLinearSamplingOffsetCorners) {
    fail_invalid("%s: sampling_mode is %s", op, enum_text(layer.sampling_mode).text);
  }
  if (static_cast<unsigned>(layer.box_coordinate_mode) > 3) {
    fail_invalid("%s: box_coordinate_mode is %s", op, enum_text(layer.box_coordinate_mode).text);
  }
  if (!std::isfinite(layer.spatial_scale) || layer.spatial_scale == 0) {
    fail_invalid("%s: spatial_scale is %g, expected a factor other than 0; 1 leaves boxes as they are", op,
                 static_cast<double>(layer.spatial_scale));
  }
}

float box_value(const CropResizeProblem& p, size_t box, size_t value) {
  return load_element(p.roi, p.roi.data, box * stride_at(p.roi, 1) + value * stride_at(p.roi, 0));
}

size_t image_of(const CropResizeProblem& p, size_t box) {
  return static_cast<size_t>(box_value(p, box, 0));
}

// Start and end of a box along width and height, in pixels.
struct Box {
  double start[2], end[2];  // width, height
  Box(const CropResizeProblem& p, size_t box) {
    const unsigned mode = static_cast<unsigned>(p.layer.box_coordinate_mode);
    const bool width_first = mode & 1, centre = mode & 2;
    for (size_t d = 0; d < 2; ++d) {
      const size_t at = p.box_values - 4 + (d == 0 ? (width_first ? 0 : 1) : (width_first ? 1 : 0));
      const size_t extent = d == 0 ? p.width : p.height;
      const double scale = static_cast<double>(p.layer.spatial_scale) *
                           (p.layer.normalized_coordinates ? static_cast<double>(extent - 1) : 1.0);
      const double first = static_cast<double>(box_value(p, box, at)) * scale;
      const double second = static_cast<double>(box_value(p, box, at + 2)) * scale;
      start[d] = centre ? first - second / 2 : first;
      end[d] = centre ? first + second / 2 : second;
    }
  }
};

// Taps of one box: columns, then rows.
void fill_taps(const CropResizeProblem& p, size_t box, CropTap* taps) {
  const Box b(p, box);
  for (size_t i = 0; i < p.out_width; ++i) {
    taps[i] = crop_tap(p.layer.sampling_mode, b.start[0], b.end[0], p.width, p.out_width, i);
  }
  for (size_t j = 0; j < p.out_height; ++j) {
    taps[p.out_width + j] = crop_tap(p.layer.sampling_mode, b.start[1], b.end[1], p.height, p.out_height, j);
  }
}

// Offset of a plane: dimensions beyond the first two, `skip` of them at most.
size_t plane_offset(const Tensor& t, size_t plane, size_t dimensions) {
  size_t offset = 0;
  for (size_t j = 2; j < 2 + dimensions; plane /= extent_at(t, j++)) {
    offset += plane % extent_at(t, j) * stride_at(t, j);
  }
  return offset;
}

Elements row_lens(const Tensor& t, size_t n) {
  Tensor row = t;
  row.rank = 1;
  row.axis[0] = 0;
  row.size[0] = row.count = n;
  row.stride[0] = stride_at(t, 0);
  return Elements(row);
}

// Which planes a box has in y, and where they are.
struct Planes {
  const CropResizeProblem& p;
  size_t per_box, dimensions;
  explicit Planes(const CropResizeProblem& problem)
      : p(problem),
        per_box(problem.box_values == 5 ? problem.channels : problem.planes),
        dimensions(problem.y.rank - 3) {}
  size_t x(size_t box, size_t plane) const {
    const size_t image = p.box_values == 5 ? image_of(p, box) * p.channels : 0;
    return plane_offset(p.x, image + plane, p.x.rank - 2);
  }
  size_t y(size_t box, size_t plane) const {
    return plane_offset(p.y, plane, dimensions) + box * stride_at(p.y, p.y.rank - 1);
  }
};

size_t tap_count(const CropResizeProblem& p) {
  size_t taps;
  if (__builtin_mul_overflow(p.out_width + p.out_height, p.boxes, &taps)) {  // each extent is below 2^61
    fail_invalid("%s: output is %zu wide and %zu high for %zu boxes, too large for 64 bits", p.op, p.out_width,
                 p.out_height, p.boxes);
  }
  return taps;
}

}  // namespace

CropTap crop_tap(BNNSLinearSamplingMode mode, double start, double end, size_t extent, size_t out, size_t i) {
  const double length = end - start, in = length + 1, n = static_cast<double>(out), at = static_cast<double>(i);
  double grid = 0;
  switch (mode) {
    case BNNSLinearSamplingAlignCorners:
      grid = out == 1 ? length / 2 : at * length / (n - 1);
      break;
    case BNNSLinearSamplingUnalignCorners:
      grid = at * in / n + in / n / 2 - 0.5;
      break;
    case BNNSLinearSamplingStrictAlignCorners:
      grid = out == 1 ? 0 : at * length / (n - 1);
      break;
    case BNNSLinearSamplingOffsetCorners:
      grid = (0.5 + at) * std::max(1.0, length) / n;
      break;
    default:
      grid = out == 1 ? 0 : at * (in - in / n) / (n - 1);
      break;
  }
  const double point = start + std::clamp(grid, std::min(0.0, length), std::max(0.0, length));
  CropTap tap;
  if (!(point >= 0 && point <= static_cast<double>(extent - 1))) return tap;  // a NaN is outside
  tap.inside = true;
  tap.low = static_cast<size_t>(point);
  tap.high = std::min(tap.low + 1, extent - 1);
  tap.fraction = static_cast<float>(point - static_cast<double>(tap.low));
  return tap;
}

CropResizeProblem make_crop_resize_problem(const BNNSLayerParametersCropResize* layer, const BNNSNDArrayDescriptor* x,
                                           const BNNSNDArrayDescriptor* roi, const BNNSNDArrayDescriptor* y,
                                           bool backward) {
  CropResizeProblem p;
  if (backward) p.op = "crop_resize_backward";
  const char *x_name = backward ? "in_delta" : "input", *y_name = backward ? "out_delta" : "output";
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersCropResize", p.op);
  p.layer = *layer;
  check_layer(p.layer, p.op);
  p.x = resolve_float(x, p.op, x_name);
  p.roi = resolve_float(roi, p.op, "roi");
  p.y = resolve_float(y, p.op, y_name);
  backward ? check_distinct(p.x, p.op, x_name) : check_distinct(p.y, p.op, y_name);
  if (p.x.rank < 2 || p.x.rank > 4) {
    fail_invalid("%s: %s has rank %zu, expected 2 to 4: width, height, channels, images", p.op, x_name, p.x.rank);
  }
  p.box_values = extent_at(p.roi, 0);
  p.boxes = extent_at(p.roi, 1);
  if (p.roi.rank > 2 || (p.box_values != 4 && p.box_values != 5)) {
    fail_invalid("%s: roi is %s, expected 4 numbers for each box, or 5 with an image index", p.op,
                 p.roi.text().c_str());
  }
  if (p.box_values == 5 && p.x.rank != 4) {
    fail_invalid("%s: roi has an image index for each box, expected %s of rank 4", p.op, x_name);
  }
  p.width = extent_at(p.x, 0);
  p.height = extent_at(p.x, 1);
  p.planes = p.x.count / p.width / p.height;
  p.channels = extent_at(p.x, 2);
  p.out_width = extent_at(p.y, 0);
  p.out_height = extent_at(p.y, 1);
  // y: width, height, the other dimensions of x (images only where boxes do not name them), boxes.
  const size_t shared = p.box_values == 5 ? 1 : p.x.rank - 2, rank = shared + 3;
  bool fits = p.y.rank == rank && extent_at(p.y, rank - 1) == p.boxes;
  for (size_t j = 2; fits && j < 2 + shared; ++j) fits = extent_at(p.y, j) == extent_at(p.x, j);
  if (!fits) {
    fail_invalid("%s: %s is %s, expected rank %zu: width, height, %zu dimensions of %s, %s, and %zu boxes", p.op,
                 y_name, p.y.text().c_str(), rank, shared, x_name, p.x.text().c_str(), p.boxes);
  }
  for (size_t box = 0; box < p.boxes && p.box_values == 5; ++box) {
    const float image = box_value(p, box, 0);
    if (!(image >= 0) || image != std::floor(image) || image >= static_cast<float>(extent_at(p.x, 3))) {
      fail_invalid("%s: box %zu names image %g, expected 0 to %zu", p.op, box, static_cast<double>(image),
                   extent_at(p.x, 3) - 1);
    }
  }
  const Tensor &out = backward ? p.x : p.y, &in = backward ? p.y : p.x;
  const char *out_name = backward ? x_name : y_name, *in_name = backward ? y_name : x_name;
  check_disjoint(out.data, out.span_bytes(), out_name, in.data, in.span_bytes(), in_name, p.op);
  check_disjoint(out.data, out.span_bytes(), out_name, p.roi.data, p.roi.span_bytes(), "roi", p.op);
  return p;
}

std::string CropResizeProblem::text() const {
  return std::string(op) + " " + x.text() + " boxes " + std::to_string(boxes) + " to " + y.text();
}

void crop_resize_forward(const CropResizeProblem& p, const Options& options) {
  const Planes planes(p);
  const size_t taps_each = p.out_width + p.out_height, tasks = checked_mul(p.boxes, planes.per_box, p.op);
  const size_t threads = threads_for(options.n_threads, tasks, 8 * p.y.count);
  // Each thread has two rows of x and one of y; the taps of all boxes are shared.
  const size_t rows = round_up(checked_add(checked_mul(2, p.width, p.op), p.out_width, p.op), 16);
  const Buffer taps(options, checked_mul(tap_count(p), sizeof(CropTap), p.op), "the taps of boxes");
  const Buffer buffer(options, checked_mul(checked_mul(rows, threads, p.op), sizeof(float), p.op), "rows of images");
  for (size_t box = 0; box < p.boxes; ++box) fill_taps(p, box, taps.as<CropTap>() + box * taps_each);
  const Elements from = row_lens(p.x, p.width), to = row_lens(p.y, p.out_width);

  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t box = task / planes.per_box, plane = task % planes.per_box;
    const CropTap* columns = taps.as<CropTap>() + box * taps_each;
    float* low_buffer = buffer.as<float>() + worker * rows;
    const size_t x_offset = planes.x(box, plane), y_offset = planes.y(box, plane);
    for (size_t j = 0; j < p.out_height; ++j) {
      const CropTap& row = columns[p.out_width + j];
      void* base = element_at(p.y.data, p.y.type, y_offset + j * stride_at(p.y, 1));
      float* y = to.target(base, 0, low_buffer + 2 * p.width);
      if (!row.inside) {
        std::fill_n(y, p.out_width, p.layer.extrapolation_value);
      } else {
        const auto read = [&](size_t r, float* where) {
          const size_t offset = x_offset + r * stride_at(p.x, 1);
          return from.read(element_at(static_cast<const void*>(p.x.data), p.x.type, offset), 0, p.width, where);
        };
        const float *low = read(row.low, low_buffer), *high = read(row.high, low_buffer + p.width);
        for (size_t i = 0; i < p.out_width; ++i) {
          const CropTap& c = columns[i];
          const float top = low[c.low] + c.fraction * (low[c.high] - low[c.low]);
          const float bottom = high[c.low] + c.fraction * (high[c.high] - high[c.low]);
          y[i] = c.inside ? top + row.fraction * (bottom - top) : p.layer.extrapolation_value;
        }
      }
      to.write(base, 0, p.out_width, y);
    }
  });
}

void crop_resize_backward(const CropResizeProblem& p, const Options& options) {
  const Planes planes(p);
  const size_t taps_each = p.out_width + p.out_height, pixels = checked_mul(p.width, p.height, p.op);
  const size_t threads = threads_for(options.n_threads, p.planes, 8 * p.y.count);
  // A plane of dx is summed in f32 over the boxes in order, by one thread, then written.
  const size_t each = round_up(checked_add(pixels, p.out_width, p.op), 16);
  const Buffer taps(options, checked_mul(tap_count(p), sizeof(CropTap), p.op), "the taps of boxes");
  const Buffer buffer(options, checked_mul(checked_mul(each, threads, p.op), sizeof(float), p.op),
                      "a plane of gradients");
  for (size_t box = 0; box < p.boxes; ++box) fill_taps(p, box, taps.as<CropTap>() + box * taps_each);
  const Elements from = row_lens(p.y, p.out_width), to = row_lens(p.x, p.width);

  parallel_for(p.planes, threads, [&](size_t plane, size_t worker) {
    float* sum = buffer.as<float>() + worker * each;
    std::fill_n(sum, pixels, 0.0f);
    for (size_t box = 0; box < p.boxes; ++box) {
      if (p.box_values == 5 && image_of(p, box) != plane / p.channels) continue;
      const CropTap* columns = taps.as<CropTap>() + box * taps_each;
      const size_t offset = planes.y(box, p.box_values == 5 ? plane % p.channels : plane);
      for (size_t j = 0; j < p.out_height; ++j) {
        const CropTap& row = columns[p.out_width + j];
        if (!row.inside) continue;
        const size_t at = offset + j * stride_at(p.y, 1);
        const float* g =
            from.read(element_at(static_cast<const void*>(p.y.data), p.y.type, at), 0, p.out_width, sum + pixels);
        float *low = sum + row.low * p.width, *high = sum + row.high * p.width;
        for (size_t i = 0; i < p.out_width; ++i) {
          const CropTap& c = columns[i];
          if (!c.inside) continue;
          const float bottom = g[i] * row.fraction, top = g[i] - bottom;
          low[c.low] += top - top * c.fraction;
          low[c.high] += top * c.fraction;
          high[c.low] += bottom - bottom * c.fraction;
          high[c.high] += bottom * c.fraction;
        }
      }
    }
    const size_t offset = plane_offset(p.x, plane, p.x.rank - 2);
    for (size_t r = 0; r < p.height; ++r) {
      void* base = element_at(p.x.data, p.x.type, offset + r * stride_at(p.x, 1));
      const float* values = sum + r * p.width;
      if (p.x.accumulate) {
        to.accumulate(base, 0, p.width, values);
      } else if (to.direct()) {
        std::copy_n(values, p.width, static_cast<float*>(base));
      } else {
        to.write(base, 0, p.width, values);
      }
    }
  });
}

}  // namespace bnns

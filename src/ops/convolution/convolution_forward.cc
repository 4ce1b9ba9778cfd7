// ConvolutionFilter::forward, and the pieces that backward shares with it.

#include <algorithm>
#include <optional>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/convolution.h"
#include "src/ops/convolution/depthwise/depthwise.h"
#include "src/ops/convolution/few/few.h"
#include "src/ops/convolution/few/lanes.h"
#include "src/ops/convolution/winograd/transposed.h"
#include "src/ops/convolution/winograd/winograd.h"
#include "src/tensor/elements.h"

namespace bnns {
// f32 in a layout with constant strides is read in place; anything else becomes dense (O, I / groups, kh, kw).
size_t ConvolutionFilter::weight_room_floats() const {
  return (is_f32_in_place(problem_.w) ? 0 : round_up(problem_.w.count, 16)) + bias_room_floats();
}

size_t ConvolutionFilter::bias_room_floats() const {
  return problem_.has_bias() && !Elements(problem_.b).direct() ? round_up(problem_.outputs, 16) : 0;
}

WeightView ConvolutionFilter::weights(float* room) const {
  const Tensor& w = weights_.tensor();
  WeightView view;
  const size_t first = weight_strides(problem_, w, &view);
  if (is_f32_in_place(w)) {
    view.data = static_cast<const float*>(w.data) + first;
    return view;
  }
  float* to = room + bias_room_floats();
  view.data = to;
  if (is_ordered(w)) {
    const Elements elements(w);
    for_weight_pieces(w.count, options_.n_threads,
                      [&](size_t first, size_t count) { elements.read(w.data, first, count, to + first); });
    return view;
  }
  for_each_weight(problem_, [&](size_t o, size_t i, size_t ky, size_t kx) {
    *to++ = load_element(w, w.data, weight_offset(w, o, i, ky, kx));
  });
  return view;
}

const float* ConvolutionFilter::bias(float* room) const {
  if (!problem_.has_bias()) return nullptr;
  return Elements(problem_.b).read(bias_.tensor().data, 0, problem_.outputs, room);
}

void ConvolutionFilter::run_down(size_t batch, const ImageSource& source, const ImageTarget& target,
                                 const WeightView& w, CallScratch& scratch) {
  const ConvolutionMap& m = problem_.map;
  const PatchAxis y = down_axis(m.y), x = down_axis(m.x);
  if (y.taps == 0 || x.taps == 0) {
    if (scratch.measuring()) return;
    return fill_without_taps(y, x, batch, m.groups * m.small_channels, target, options_.n_threads);
  }
  if (is_depthwise(m)) return depthwise_down(m, batch, source, target, w, scratch, options_.n_threads);
  if (is_winograd(y, x, m.groups, m.small_channels, m.large_channels, batch)) {
    return run_winograd(y, x, m.small_channels, m.large_channels, w.small, w.large, batch, source, target, w, scratch);
  }
  if (!target.sink && lanes_accepts(m)) return lanes_down(m, batch, source, target, w, scratch, options_.n_threads);
  if (few_accepts(y, x, m.small_channels, m.large_channels, batch)) {
    return few_patches(y, x, m.groups, m.small_channels, m.large_channels, w, w.small, w.large, batch, source, target,
                       scratch, options_.n_threads);
  }
  const PatchProduct product(y, x, m.groups, m.small_channels, m.large_channels, w, w.small, w.large, batch, target,
                             options_.n_threads);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (scratch.measuring()) return;
  product.run(source, workspace.data());
}

void ConvolutionFilter::run_up(size_t batch, const ImageSource& source, const ImageTarget& target, const WeightView& w,
                               CallScratch& scratch) {
  const ConvolutionMap& m = problem_.map;
  if (is_depthwise(m)) return depthwise_up(m, batch, source, target, w, scratch, options_.n_threads);
  if (!target.sink && winograd_scatter_accepts(m, batch)) {
    return winograd_scatter(m, batch, source, target, w, scratch, options_.n_threads);
  }
  if (!target.sink && few_phases_accepts(m, batch)) {
    return few_phases(m, batch, source, target, w, scratch, options_.n_threads);
  }
  const auto product = [&](const PatchAxis& y, const PatchAxis& x) {
    return PatchProduct(y, x, m.groups, m.large_channels, m.small_channels, w, w.large, w.small, batch, target,
                        options_.n_threads);
  };
  const auto few = [&](const PatchAxis& y, const PatchAxis& x) {
    return few_accepts(y, x, m.large_channels, m.small_channels, batch);
  };
  bool filled = false;  // this row, with the one above
  for (size_t ry = 0; ry < std::min(m.y.stride, m.y.large); ++ry) {
    const PatchAxis y = up_axis(m.y, ry);
    if (filled) {
      filled = false;
      continue;
    }
    if (y.taps == 0) {
      PatchAxis whole;
      whole.pixels = m.x.large;
      if (!scratch.measuring())
        fill_without_taps(y, whole, batch, m.groups * m.large_channels, target, options_.n_threads);
      continue;
    }
    // Two phases make whole rows. Where they cannot, which depends on the threads too, they are products all the same.
    const PatchAxis x0 = up_axis(m.x, 0);
    const bool pair = m.x.stride == 2 && m.x.large % 2 == 0 && !target.accumulate && !target.sink && !few(y, x0);
    if (pair) {
      const PatchAxis x1 = up_axis(m.x, 1);
      std::optional<PatchProduct> even, odd;
      if (x0.taps != 0) even.emplace(product(y, x0));
      if (x1.taps != 0) odd.emplace(product(y, x1));
      const PatchProduct *a = even ? &*even : nullptr, *b = odd ? &*odd : nullptr;
      if ((a || b) && PatchProduct::can_pair(a, b)) {
        CallScratch::Lease workspace(scratch, PatchProduct::pair_bytes(a, b));
        filled = ry + 1 < std::min(m.y.stride, m.y.large) && up_axis(m.y, ry + 1).taps == 0;
        if (!scratch.measuring()) PatchProduct::run_pair(a, b, filled, source, workspace.data());
        continue;
      }
    }
    for (size_t rx = 0; rx < std::min(m.x.stride, m.x.large); ++rx) {
      const PatchAxis x = up_axis(m.x, rx);
      if (x.taps == 0) {
        if (!scratch.measuring())
          fill_without_taps(y, x, batch, m.groups * m.large_channels, target, options_.n_threads);
        continue;
      }
      if (is_winograd(y, x, m.groups, m.large_channels, m.small_channels, batch)) {
        return run_winograd(y, x, m.large_channels, m.small_channels, w.large, w.small, batch, source, target, w,
                            scratch);
      }
      if (!pair && few(y, x)) {
        few_patches(y, x, m.groups, m.large_channels, m.small_channels, w, w.large, w.small, batch, source, target,
                    scratch, options_.n_threads);
        continue;
      }
      const PatchProduct phase = product(y, x);
      CallScratch::Lease workspace(scratch, phase.workspace_bytes());
      if (!scratch.measuring()) phase.run(source, workspace.data());
    }
  }
}

void ConvolutionFilter::run_winograd(const PatchAxis& y, const PatchAxis& x, size_t rows, size_t channels,
                                     ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
                                     const ImageSource& source, const ImageTarget& target, const WeightView& w,
                                     CallScratch& scratch) {
  const WinogradProduct product(y, x, rows, channels, w, row_stride, channel_stride, batch, target, options_.n_threads);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (scratch.measuring()) return;
  product.run(source, workspace.data());
}

void ConvolutionFilter::apply(size_t batch, const ImageSource& x, const ImageTarget& y, const WeightView& w,
                              CallScratch& scratch) {
  problem_.transposed ? run_up(batch, x, y, w, scratch) : run_down(batch, x, y, w, scratch);
}

SinkParts ConvolutionFilter::sink_parts(size_t batch) const {
  const ConvolutionMap& m = problem_.map;
  if (problem_.integer || problem_.activation.is_rowwise()) return {};
  const PatchAxis y = problem_.transposed ? up_axis(m.y, 0) : down_axis(m.y);
  const PatchAxis x = problem_.transposed ? up_axis(m.x, 0) : down_axis(m.x);
  if (y.taps == 0 || x.taps == 0) return {};
  if (is_depthwise(m)) return depthwise_sink_parts(y, x);
  if (problem_.transposed && winograd_scatter_accepts(m, batch))
    return {};  // it hands over no blocks, and has its own bits
  const ImageTarget target{&problem_.y};
  const size_t rows = problem_.outputs / m.groups, channels = problem_.inputs / m.groups;
  if (is_winograd(y, x, m.groups, rows, channels, batch)) {
    return WinogradProduct(y, x, rows, channels, {}, 0, 0, batch, target, 1).sink_parts();
  }
  if (few_accepts(y, x, rows, channels, batch)) return few_sink_parts(y, x, rows, channels, batch);
  return PatchProduct(y, x, m.groups, rows, channels, {}, 0, 0, batch, target, 1).sink_parts();
}

void ConvolutionFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                                const BlockSink* sink) {
  const ConvolutionProblem& p = problem_;
  in_stride = input_batch_stride(in_stride, batch, p.x, p.op(), "in_stride");
  out_stride = output_batch_stride(out_stride, batch, p.y, p.op(), "out_stride");
  if (batch == 0) return;
  check_data(in, p.x.type, p.op(), "in");
  if (!sink || !sink->instead_of_target) {
    check_data(out, p.y.type, p.op(), "out");
    check_disjoint(in, batch_bytes(batch, in_stride, p.x, p.op(), "in_stride"), "in", out,
                   batch_bytes(batch, out_stride, p.y, p.op(), "out_stride"), "out", p.op());
  }
  if (p.integer) return forward_integer(batch, in, in_stride, out, out_stride);

  ScratchShelf::Lease room(scratch_, weight_room_floats() * sizeof(float));
  ImageSource x{&p.x, in, in_stride};
  ImageTarget y{&p.y, out, out_stride};
  y.bias = bias(room.as<float>());
  y.sink = sink;
  if (!p.activation.is_rowwise()) {
    y.activation = p.activation;
    const auto pass = [&](CallScratch& scratch) {
      if (run_bf16(batch, x, y, p.transposed, scratch)) return;
      apply(batch, x, y, weights(room.as<float>()), scratch);
    };
    if (p.transposed) return CallScratch::run(scratch_, forward_memo_, forward_key(batch, sink), pass);
    CallScratch scratch(scratch_);
    return pass(scratch);
  }
  // Row-wise: y first takes the linear values; a type that would round them leaves that to scratch.
  const bool rounds = p.y.type != BNNSDataTypeFloat32;
  const Tensor dense = dense_image(p.y);
  CallScratch::run(scratch_, forward_memo_, forward_key(batch, sink), [&](CallScratch& scratch) {
    CallScratch::Lease values(scratch, rounds ? batch_bytes(batch, dense.count, dense, p.op(), "out_stride") : 0);
    const ImageTarget linear = rounds ? ImageTarget{&dense, values.data(), dense.count, false, y.bias}
                                      : ImageTarget{&p.y, out, out_stride, false, y.bias};
    apply(batch, x, linear, weights(room.as<float>()), scratch);
    softmax_rows(batch, {linear.tensor, linear.data, linear.batch_stride}, y, scratch);
  });
}

uint32_t ConvolutionFilter::forward_key(size_t batch, const BlockSink* sink) const {
  const size_t to = !sink ? 0 : sink->instead_of_target ? 1 : 2;
  return ScratchMemo::key({batch, static_cast<size_t>(isa()), default_threads(), to});
}

// A fused softmax runs along o_desc.size[0], the rows of the image (K10).
void ConvolutionFilter::softmax_rows(size_t batch, const ImageSource& linear, const ImageTarget& y,
                                     CallScratch& scratch) {
  const ConvolutionProblem& p = problem_;
  const size_t width = p.y.size[0], height = p.y.size[1], tasks = batch * p.outputs;
  const size_t threads = threads_for(options_.n_threads, tasks, tasks * width * height * sizeof(float));
  CallScratch::Lease room(scratch, threads * 2 * width * sizeof(float));
  if (scratch.measuring()) return;
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    float* own = room.as<float>() + worker * 2 * width;
    for (size_t row = 0; row < height; ++row) {
      const float* from = linear.row(task / p.outputs, task % p.outputs, row, 0, width, own);
      activation_forward(p.activation, from, own + width, width);
      store_run(y, task / p.outputs, task % p.outputs, row, 0, 1, own + width, width);
    }
  });
}

// Exact integer sums of the raw values, then saturate((iscale * sum + ioffset) >> ishift). Plain loops: the integer
// form is for compatibility.
void ConvolutionFilter::forward_integer(size_t batch, const void* in, size_t in_stride, void* out,
                                        size_t out_stride) const {
  const ConvolutionProblem& p = problem_;
  const ConvolutionMap& m = p.map;
  const Tensor& w = weights_.tensor();
  const Elements b_elements = p.has_bias() ? Elements(p.b) : Elements();
  const size_t tasks = batch * p.outputs;
  parallel_for(
      tasks, threads_for(options_.n_threads, tasks, tasks * m.y.small * m.x.small * p.w.count / p.outputs),
      [&](size_t task, size_t) {
        const size_t n = task / p.outputs, o = task % p.outputs, first = o / m.small_channels * m.large_channels;
        const void* xs = element_at(in, p.x.type, n * in_stride);
        void* ys = element_at(out, p.y.type, n * out_stride);
        for (size_t u = 0; u < m.y.small; ++u) {
          for (size_t v = 0; v < m.x.small; ++v) {
            WideInteger sum = p.has_bias() ? load_integer(p.b, bias_.tensor().data, b_elements.offset(o)) : 0;
            for (size_t ky = 0; ky < m.y.kernel; ++ky) {
              const size_t row = u * m.y.stride + ky * m.y.dilation - m.y.pad;  // wraps above the image: then too large
              if (row >= m.y.large) continue;
              for (size_t kx = 0; kx < m.x.kernel; ++kx) {
                const size_t column = v * m.x.stride + kx * m.x.dilation - m.x.pad;
                if (column >= m.x.large) continue;
                for (size_t i = 0; i < m.large_channels; ++i) {
                  const size_t at = (first + i) * p.x.stride[2] + row * p.x.stride[1] + column * p.x.stride[0];
                  sum +=
                      WideInteger{load_integer(p.x, xs, at)} * load_integer(w, w.data, weight_offset(w, o, i, ky, kx));
                }
              }
            }
            store_saturated(p.y, ys, o * p.y.stride[2] + u * p.y.stride[1] + v * p.y.stride[0], p.saturation(sum));
          }
        }
      });
}

}  // namespace bnns

// Convolution of integer data: exact sums, plain loops.

#include "src/ops/convolution/integer.h"

#include "src/core/parallel.h"
#include "src/ops/convolution/convolution.h"
#include "src/tensor/elements.h"

namespace bnns {

// Exact integer sums of the raw values, then saturate((iscale * sum + ioffset) >> ishift).
void run_integer(const PatchMap& map, CallScratch& scratch) {
  if (scratch.measuring()) return;
  const ConvolutionProblem& p = *map.integer->problem;
  const ConvolutionMap& m = p.map;
  const Tensor& w = *map.integer->w;
  const Elements b_elements = p.has_bias() ? Elements(p.b) : Elements();
  const size_t tasks = map.batch * p.outputs;
  parallel_for(
      tasks, threads_for(map.threads, tasks, tasks * m.y.small * m.x.small * p.w.count / p.outputs),
      [&](size_t task, size_t) {
        const size_t n = task / p.outputs, o = task % p.outputs, first = o / m.small_channels * m.large_channels;
        const void* xs = element_at(map.source.data, p.x.type, n * map.source.batch_stride);
        void* ys = element_at(map.target.data, p.y.type, n * map.target.batch_stride);
        for (size_t u = 0; u < m.y.small; ++u) {
          for (size_t v = 0; v < m.x.small; ++v) {
            WideInteger sum = p.has_bias() ? load_integer(p.b, map.integer->b->data, b_elements.offset(o)) : 0;
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

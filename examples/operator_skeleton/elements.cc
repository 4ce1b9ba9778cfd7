// Scale and shift of tensors of any layout, strides and type: blocks of f32 through Elements, plain loops.

#include "examples/operator_skeleton/implementations.h"

namespace bnns {

void elements_forward(const ScaleShiftRun& run) {
  for_each_plane(run, [&](size_t n, size_t c) {
    const float a = run.scale(c), b = run.shift(c);
    float x_block[kBlock], y_block[kBlock];
    for (size_t first = 0; first < run.plane; first += kBlock) {
      const size_t m = std::min(kBlock, run.plane - first);
      const float* x = run.x.plane.read(run.x.at(n, c), first, m, x_block);
      float* y = run.y.plane.target(run.y.at(n, c), first, y_block);
      for (size_t i = 0; i < m; ++i) y[i] = a * x[i] + b;
      run.y.plane.write(run.y.at(n, c), first, m, y);
    }
  });
}

void elements_backward(const ScaleShiftRun& run) {
  for_each_channel(run, [&](size_t c) {
    const float a = run.scale(c);
    float x_block[kBlock], dy_block[kBlock], dx_block[kBlock];
    double da = 0, db = 0;
    for (size_t n = 0; n < run.batch; ++n) {
      for (size_t first = 0; first < run.plane; first += kBlock) {
        const size_t m = std::min(kBlock, run.plane - first);
        const float* dy = run.dy.plane.read(run.dy.at(n, c), first, m, dy_block);
        for (size_t i = 0; i < m; ++i) db += double(dy[i]);
        if (run.x.base) {
          const float* x = run.x.plane.read(run.x.at(n, c), first, m, x_block);
          for (size_t i = 0; i < m; ++i) da += double(x[i]) * double(dy[i]);
        }
        if (!run.dx.base) continue;
        for (size_t i = 0; i < m; ++i) dx_block[i] = a * dy[i];
        if (run.accumulate) {
          run.dx.plane.accumulate(run.dx.at(n, c), first, m, dx_block);
        } else {
          float* dx = run.dx.plane.target(run.dx.at(n, c), first, dx_block);
          if (dx != dx_block) std::copy_n(dx_block, m, dx);
          run.dx.plane.write(run.dx.at(n, c), first, m, dx);
        }
      }
    }
    run.da.put(c, da);
    run.db.put(c, db);
  });
}

}  // namespace bnns

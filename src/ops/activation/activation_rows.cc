// The layer's functions of whole rows: Softmax, LogSoftmax, GumbelMax. Threads share out tiles; a tile's result depends
// on nothing else, so it has the same bits on any thread.

#include <algorithm>
#include <cmath>

#include "src/engine/activation/softmax.h"
#include "src/ops/activation/activation_filter.h"
#include "src/ops/activation/activation_tasks.h"
#include "src/ops/activation/gumbel_noise.h"
#include "src/ops/activation/row_tiles.h"

namespace bnns {
namespace {

// Runs body(tile, buffers) for every tile; each worker has `buffers` buffers for one tile.
template <class Body>
void for_each_tile(const RowPlan& plan, size_t n_threads, size_t buffers, size_t passes, ScratchShelf& shelf,
                   Body&& body) {
  const size_t elements = plan.row_length * plan.width;
  const size_t per_task = std::max<size_t>(1, kActivationTask / elements), tasks = div_up(plan.tiles, per_task);
  const size_t threads =
      threads_for(n_threads, tasks, checked_mul(plan.rows * plan.row_length, passes * sizeof(float), "batch"));
  const size_t buffer = round_up(elements, kAlignment / sizeof(float));
  ScratchShelf::Lease lease(shelf,
                            checked_mul(checked_mul(buffer, buffers * threads, "scratch"), sizeof(float), "scratch"));
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    float* first_buffer = buffers ? lease.as<float>() + worker * buffers * buffer : nullptr;
    for (size_t i = task * per_task; i < std::min(plan.tiles, (task + 1) * per_task); ++i) {
      body(tile_at(plan, i), first_buffer, first_buffer ? first_buffer + buffer : nullptr);
    }
  });
}

}  // namespace

void ActivationFilter::forward_rows(size_t batch, const BatchOperand& in, const BatchOperand& out) {
  const Activation activation = current();
  RowPlan plan = make_row_plan(problem_.i, problem_.row_axes, batch);
  RowView x(in, plan), y(out, plan);
  choose_tiles(&plan, {&x, &y});
  const size_t buffers = x.direct() && y.direct() ? 0 : 1;  // x and y share one: the kernels work in place
  for_each_tile(plan, options_.n_threads, buffers, 2, shelf_, [&](const Tile& tile, float* buffer, float*) {
    size_t x_step, y_step;
    const float* xs = x.read(tile, buffer, &x_step);
    float* ys = y.target(tile, buffer, &y_step);
    if (plan.width == 1)
      softmax_row_forward(activation, xs, ys, plan.row_length);
    else
      softmax_columns_forward(activation, xs, x_step, ys, y_step, plan.row_length, tile.width);
    y.write(tile, ys);
  });
}

void ActivationFilter::backward_rows(size_t batch, Source source, const BatchOperand& s, const BatchOperand& dy,
                                     const BatchOperand& dx) {
  const Activation activation = current();
  const From from = source == Source::input ? From::input : From::output;
  RowPlan plan = make_row_plan(problem_.i, problem_.row_axes, batch);
  RowView point(s, plan), upstream(dy, plan), to(dx, plan);
  choose_tiles(&plan, {&point, &upstream, &to});
  const bool add = dx.sample.accumulate;
  const size_t buffers = point.direct() && upstream.direct() && to.direct() && !add ? 0 : 2;
  for_each_tile(plan, options_.n_threads, buffers, 3, shelf_, [&](const Tile& tile, float* s_buffer, float* g_buffer) {
    size_t s_step, dy_step, g_step = tile.width;
    const float* points = point.read(tile, s_buffer, &s_step);
    const float* dys = upstream.read(tile, g_buffer, &dy_step);
    float* g = add ? g_buffer : to.target(tile, g_buffer, &g_step);
    if (plan.width == 1) {
      softmax_row_backward(activation, from, points, dys, g, plan.row_length);
    } else {
      softmax_columns_backward(activation, from, points, s_step, dys, dy_step, g, g_step, plan.row_length, tile.width);
    }
    add ? to.accumulate(tile, g) : to.write(tile, g);
  });
}

// K9: out receives the index of max(x + Gumbel noise) in each row. alpha 0 means noise that is the same for all, so the
// plain arg max. The first of equals wins; a NaN wins over everything.
void ActivationFilter::forward_gumbel_max(size_t batch, const BatchOperand& in, const BatchOperand& out) {
  const Activation activation = current();
  RowPlan plan = make_row_plan(problem_.i, problem_.row_axes, batch);
  RowView x(in, plan);
  choose_tiles(&plan, {&x}, 1);
  const BatchElements y = out.elements(batch);
  const NoiseStretch noise = reserve_noise(batch * problem_.i.count);
  for_each_tile(plan, options_.n_threads, 2, 2, shelf_, [&](const Tile& tile, float* buffer, float* noise_buffer) {
    size_t step;
    const float* xs = x.read(tile, buffer, &step);
    if (activation.alpha != 0) {
      fill_uniform(noise, tile.line * plan.row_length, noise_buffer, plan.row_length);
      gumbel_forward(activation, noise_buffer, noise_buffer, plan.row_length);
    }
    size_t best = 0;
    float largest = -INFINITY;
    for (size_t r = 0; r < plan.row_length; ++r) {
      const float value = activation.alpha != 0 ? xs[r] + noise_buffer[r] : xs[r];
      if (value > largest || (std::isnan(value) && !std::isnan(largest))) {
        largest = value;
        best = r;
      }
    }
    const float index = static_cast<float>(best);
    if (y.direct())
      *y.target(tile.line, nullptr) = index;
    else
      y.write(tile.line, 1, &index);
  });
}

}  // namespace bnns

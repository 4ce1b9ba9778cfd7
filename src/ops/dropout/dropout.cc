#include "src/ops/dropout/dropout.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

constexpr const char* kOp = "dropout";
constexpr uint32_t kControlBits = 4;
constexpr size_t kTaskElements = 16 * 1024;

Tensor read_data(const BNNSNDArrayDescriptor& d, const char* field) {
  const Tensor t = resolve(d, kOp, field);
  if (!is_float(t.type))
    fail_unsupported("%s: %s has type %s; data are f32, f16 or bf16", kOp, field, type_name(t.type));
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is OIHW_Pack32: only convolution weights are packed", kOp, field);
  }
  return t;
}

// One operand of a pass: a batch of samples in memory order.
struct Samples {
  Elements elements;
  BNNSDataType type;
  void* base;
  size_t stride;
  Samples(const Tensor& t, const void* data, size_t batch_stride)
      : elements(t), type(t.type), base(const_cast<void*>(data)), stride(batch_stride) {}
  void* sample(size_t n) const { return element_at(base, type, n * stride); }
};

// to = from with the decisions of the pass.
void run_pass(const DropoutPass& pass, const DecisionMap& map, const Samples& from, const Samples& to, bool add,
              size_t n_threads) {
  const size_t count = from.elements.count(), total = pass.batch * count, tasks = div_up(total, kTaskElements);
  parallel_for(tasks, threads_for(n_threads, tasks, 3 * total * sizeof(float)), [&](size_t task, size_t) {
    float x_buffer[kDropoutBlock], y_buffer[kDropoutBlock];
    uint32_t words_buffer[kDropoutBlock + 2 * kDropoutGroup];
    const size_t end = std::min(total, (task + 1) * kTaskElements);
    for (size_t at = task * kTaskElements, n; at < end; at += n) {
      const size_t sample = at / count, first = at % count;
      n = std::min({end - at, count - first, map.run(first), kDropoutBlock});
      const float* x = from.elements.read(from.sample(sample), first, n, x_buffer);
      float* y = add ? y_buffer : to.elements.target(to.sample(sample), first, y_buffer);
      const uint64_t decision = uint64_t{sample} * map.decisions() + map.decision(first);
      if (pass.threshold == 0) {
        if (x != y) std::memcpy(y, x, n * sizeof(float));
      } else if (map.same_in_run()) {
        const bool dropped = *dropout_words(pass.seed, pass.number, decision, 1, words_buffer) < pass.threshold;
        dropped ? static_cast<void>(std::fill_n(y, n, 0.0f)) : dropout_scale(pass.scale, x, y, n);
      } else {
        const uint32_t* words = dropout_words(pass.seed, pass.number, decision, n, words_buffer);
        dropout_select(words, pass.threshold, pass.scale, x, y, n);
      }
      add ? to.elements.accumulate(to.sample(sample), first, n, y) : to.elements.write(to.sample(sample), first, n, y);
    }
  });
}

}  // namespace

uint32_t seed_from_system() noexcept {
  uint32_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {  // early at boot: the clock has to do
    seed = static_cast<uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return seed ? seed : 1;
}

DropoutProblem make_dropout_problem(const BNNSLayerParametersDropout* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersDropout", kOp);
  DropoutProblem p;
  p.x = read_data(layer->i_desc, "i_desc");
  p.y = read_data(layer->o_desc, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  if (p.x.count != p.y.count || (p.x.layout == p.y.layout && !std::equal(p.x.size, p.x.size + p.x.rank, p.y.size))) {
    fail_invalid("%s: o_desc is %s, expected the sizes of i_desc, %s", kOp, p.y.text().c_str(), p.x.text().c_str());
  }
  if (!(layer->rate >= 0 && layer->rate < 1)) {
    fail_invalid("%s: rate is %g, expected at least 0 and below 1", kOp, static_cast<double>(layer->rate));
  }
  const size_t axes = std::min<size_t>(p.x.rank, kControlBits);
  if (layer->control >> axes) {
    fail_invalid("%s: control is 0x%x, expected bits 0 to %zu: i_desc has rank %zu", kOp, layer->control, axes - 1,
                 p.x.rank);
  }
  p.rate = layer->rate;
  p.seed = layer->seed;
  p.control = layer->control;
  return p;
}

std::string DropoutProblem::text() const {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, " rate %g control %u", static_cast<double>(rate), control);
  return std::string(kOp) + " " + x.text() + numbers;
}

DecisionMap::DecisionMap(const Tensor& x, uint32_t control) {
  for (size_t j = 0; j < x.rank; ++j) {
    const size_t k = x.axis[j], extent = x.size[k];
    if (extent == 1) continue;
    const bool shared = k < kControlBits && (control >> k & 1);
    if (extent_[axes_ - 1] == 1) {  // nothing there yet
      extent_[axes_ - 1] = extent;
      shared_[axes_ - 1] = shared;
    } else if (shared_[axes_ - 1] == shared) {
      extent_[axes_ - 1] *= extent;
    } else {
      extent_[axes_] = extent;
      shared_[axes_++] = shared;
    }
    if (!shared) decisions_ *= extent;
  }
}

size_t DecisionMap::decision(size_t first) const {
  size_t index = 0, step = 1;
  for (size_t j = 0; j < axes_; ++j) {
    if (!shared_[j]) {
      index += first % extent_[j] * step;
      step *= extent_[j];
    }
    first /= extent_[j];
  }
  return index;
}

DropoutFilter::DropoutFilter(const Options& options, const DropoutProblem& problem)
    : Filter(kKind, options), problem_(problem), map_(problem.x, problem.control) {
  const double rate = static_cast<double>(problem.rate);
  last_.seed = problem.seed ? problem.seed : seed_from_system();
  last_.threshold = static_cast<uint32_t>(std::ceil(rate * 0x1p32));  // rate < 1: at most 2^32 - 2^8
  last_.scale = static_cast<float>(1 / (1 - rate));
}

void DropoutFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  if (batch == 0) return;
  const DropoutProblem& p = problem_;
  check_data(in, p.x.type, kOp, "in");
  check_data(out, p.y.type, kOp, "out");
  in_stride = input_batch_stride(in_stride, batch, p.x, kOp, "in_stride");
  out_stride = output_batch_stride(out_stride, batch, p.y, kOp, "out_stride");
  check_in_place_or_apart({p.x, in, in_stride, "in"}, {p.y, out, out_stride, "out"}, batch, kOp);
  DropoutPass pass;
  {
    const ForkLock lock(mutex_);
    ++last_.number;
    last_.batch = batch;
    pass = last_;
  }
  run_pass(pass, map_, {p.x, in, in_stride}, {p.y, out, out_stride}, false, options_.n_threads);
}

void DropoutFilter::backward(const BackwardCall& call) {
  const DropoutProblem& p = problem_;
  const size_t batch = call.batch;
  if (call.weights_delta || call.bias_delta) {
    fail_invalid("%s: %s is given, expected NULL: a dropout has no parameters", kOp,
                 call.weights_delta ? "weights_delta" : "bias_delta");
  }
  if (batch == 0) return;
  DropoutPass pass;
  {
    const ForkLock lock(mutex_);
    pass = last_;
  }
  if (pass.number == 0) fail_invalid("%s: no forward pass precedes this gradient: it makes the decisions", kOp);
  if (batch != pass.batch) {
    fail_invalid("%s: batch_size is %zu, expected %zu as in the last forward pass", kOp, batch, pass.batch);
  }
  const Tensor dy = resolve_delta(call.out_delta, p.y, kOp, "out_delta");
  const size_t dy_stride = input_batch_stride(call.out_delta_stride, batch, dy, kOp, "out_delta_stride");
  if (!call.in_delta) return;
  const Tensor dx = resolve_delta(call.in_delta, p.x, kOp, "in_delta");
  check_distinct(dx, kOp, "in_delta");
  const size_t dx_stride = output_batch_stride(call.in_delta_stride, batch, dx, kOp, "in_delta_stride");
  check_in_place_or_apart({dy, dy.data, dy_stride, "out_delta"}, {dx, dx.data, dx_stride, "in_delta"}, batch, kOp);
  run_pass(pass, map_, {dy, dy.data, dy_stride}, {dx, dx.data, dx_stride}, dx.accumulate, options_.n_threads);
}

}  // namespace bnns

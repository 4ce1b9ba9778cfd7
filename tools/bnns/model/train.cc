#include "tools/bnns/model/train.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tools/bnns/data/prng.h"
#include "tools/bnns/data/sha256.h"
#include "tools/bnns/model/run.h"
#include "tools/bnns/text.h"
#include "tools/bnns/trace_range.h"

namespace bnns::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double accuracy_of(const std::vector<float>& probabilities, const Dataset& set) {
  return static_cast<double>(count_right(probabilities, set)) / static_cast<double>(set.labels.size());
}

void judge(const std::vector<float>& probabilities, const Dataset& set, TrainResult& result) {
  result.confusion.assign(set.classes, std::vector<std::size_t>(set.classes));
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    const float* p = &probabilities[i * set.classes];
    const std::size_t truth = set.labels[i], predicted = index_of_largest(p, set.classes);
    ++result.confusion[truth][predicted];
    if (predicted != truth) {
      result.mistakes.push_back({i, static_cast<int>(truth), static_cast<int>(predicted), p[predicted], p[truth]});
    }
  }
  std::stable_sort(result.mistakes.begin(), result.mistakes.end(), [](const Mistake& a, const Mistake& b) {
    return a.predicted_probability > b.predicted_probability;
  });
}

// The next items of an epoch: how each is changed, and the memory for those that go through the network at once.
struct Batch {
  const Epoch& epoch;
  const Dataset& set;
  std::vector<float>&x, &labels;
  std::vector<Change> changes;

  void load(std::size_t first, std::size_t count) {
    std::fill(labels.begin(), labels.end(), 0.0f);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t pick = epoch.order[epoch.seen + first + i];
      load_item(set, pick, changes[first + i], x.data() + i * set.inputs());
      for (std::size_t t = 0; t < set.steps; ++t) {
        labels[(i * set.steps + t) * set.classes + set.labels[pick * set.steps + t]] = 1.0f;
      }
    }
  }
  // Those that the network has just recognised.
  std::size_t right(const Network& network, std::size_t first, std::size_t count) const {
    std::size_t right = 0;
    for (std::size_t i = 0; i < count * set.steps; ++i) {
      const std::size_t guess = index_of_largest(&network.scores()[i * set.classes], set.classes);
      const std::size_t pick = epoch.order[epoch.seen + first + i / set.steps];
      right += guess == set.labels[pick * set.steps + i % set.steps] ? 1 : 0;
    }
    return right;
  }
};

struct StepFigures {
  float loss = 0;
  std::size_t right = 0;
  bool stop = false;  // some rank was told to
};

// One step of all ranks on a batch: this one's shards, one after the other. A float counts items exactly, to 2^24.
StepFigures step_with_ranks(Run& run, Batch& batch, std::size_t count, bool stop) {
  using Reduction = Ranks::Reduction;
  float loss = 0, right = 0, stopped = 0;
  const BNNSNDArrayDescriptor mean[] = {vector(1, &loss)}, sum[] = {vector(1, &right)}, most[] = {vector(1, &stopped)};
  for (std::size_t shard = 0; shard < run.ranks->shards(); ++shard) {
    const Ranks::Items items = run.ranks->items(count, shard);
    batch.load(items.first, items.count);
    loss = run.network->train_shard(batch.x.data(), batch.labels.data(), items.count, shard, *run.ranks);
    right = static_cast<float>(batch.right(*run.network, items.first, items.count));
    stopped = stop ? 1.0f : 0.0f;
    run.ranks->start(Reduction::mean, shard, mean);
    run.ranks->start(Reduction::sum, shard, sum);
    run.ranks->start(Reduction::max, shard, most);
  }
  run.network->step_with(*run.ranks, run.rate());
  return {loss, static_cast<std::size_t>(right), stopped > 0};
}

// One step on the next items of the epoch. Returns how many they were; `stop` is that of all ranks then.
std::size_t step(Run& run, Epoch& epoch, const Dataset& set, std::vector<float>& x, std::vector<float>& labels,
                 bool& stop) {
  const TraceRange range("step");
  const std::size_t count = std::min(run.batch_size, run.count - epoch.seen);
  Batch batch{epoch, set, x, labels, {}};
  for (std::size_t i = 0; i < count; ++i) batch.changes.push_back(epoch.next_change(run.options));
  StepFigures figures{.stop = stop};
  if (run.ranks != nullptr) {
    figures = step_with_ranks(run, batch, count, stop);
  } else {
    batch.load(0, count);
    figures.loss = run.network->train_step(x.data(), labels.data(), count, run.rate());
    figures.right = batch.right(*run.network, 0, count);
  }
  stop = figures.stop;
  const float loss = figures.loss;
  if (!std::isfinite(loss)) {
    throw std::runtime_error(format("the loss is %g at step %zu: try a smaller --lr than %g", static_cast<double>(loss),
                                    run.steps_done() + 1, static_cast<double>(run.options.learning_rate)));
  }
  epoch.right += figures.right;
  run.state.step_loss.push_back(loss);
  epoch.loss_sum += static_cast<double>(loss) * static_cast<double>(count);
  epoch.seen += count;
  return count;
}

bool is_told(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

}  // namespace

void check_start(const TrainOptions& options, const TrainFiles& files, const Dataset& set) {
  if (files.resume || !files.load.empty()) Run(options, files, set, nullptr);
}

TrainResult train(const TrainOptions& options, const DataSplit& data, Progress& progress, const std::atomic<bool>* stop,
                  const TrainFiles& files, Ranks* ranks) {
  const Dataset& set = data.train;
  Run run(options, files, set, ranks);
  const std::size_t count = run.count;
  TrainResult result;
  result.threads = options.threads != 0 ? options.threads : BNNSExtGetNumThreads();
  if (ranks != nullptr) result.ranks = ranks->size();
  result.weight_count = run.network->weights().size();
  run.state.step_loss.reserve(run.steps());

  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  // Every epoch shuffles the order of the one before.
  for (std::size_t e = 0; e < run.epoch(); ++e) Prng(options.seed, kOrderStream, e).shuffle(order);
  std::vector<float> x(run.batch_size * set.inputs()), labels(run.batch_size * set.steps * set.classes);
  ProgressState state{.noun = data.noun,
                      .epochs = options.epochs,
                      .digits_done = run.items_done() * set.steps,
                      .digits_all = options.epochs * count * set.steps,
                      .digits_before = run.items_done() * set.steps};
  if (!run.state.epochs.empty()) state.test_accuracy = run.state.epochs.back().test_accuracy;
  result.epochs = run.state.epochs;
  result.steps = run.steps();
  std::vector<float> probabilities;
  const auto start = Clock::now();

  while (!run.finished() && !result.interrupted) {
    Epoch epoch(run, order);
    state.epoch = run.epoch() + 1;
    const auto epoch_start = Clock::now();
    while (epoch.seen < count && !result.interrupted) {
      bool stopping = is_told(stop);  // ranks tell each other within the step, and all stop after it
      state.digits_done += step(run, epoch, set, x, labels, stopping) * set.steps;
      result.interrupted = ranks != nullptr ? stopping : is_told(stop);
      state.seconds = seconds_since(start);
      state.loss = epoch.loss_sum / static_cast<double>(epoch.seen);
      state.accuracy = static_cast<double>(epoch.right) / static_cast<double>(epoch.seen * set.steps);
      progress.update(state);
    }
    if (result.interrupted) state.digits_all = state.digits_done;
    probabilities = predict_all(*run.network, data.test, ranks);
    state.test_accuracy = accuracy_of(probabilities, data.test);
    result.epochs.push_back({state.loss, state.accuracy, state.test_accuracy});
    state.seconds = seconds_since(start);
    progress.end_epoch(state);
    const bool whole = epoch.seen == count;
    run.state.right = whole ? 0 : epoch.right;
    if (whole) run.end_epoch(result.epochs);
    if (run.finished() && run.options.patience != 0) {
      result.kept = best_epoch(result.epochs);
      if (run.take_best()) probabilities = predict_all(*run.network, data.test, ranks);
    }
    // Said once: the next save may succeed, and the last one says for itself.
    const std::string before = std::exchange(result.not_saved, run.save());
    if (!result.not_saved.empty() && before.empty() && !run.finished()) {
      progress.note("not saved  " + result.not_saved);
    }
    result.epoch_seconds.push_back(seconds_since(epoch_start));
  }
  progress.finish();
  result.seconds = seconds_since(start);
  result.digits_per_second =
      static_cast<double>(state.digits_done - state.digits_before) / std::max(result.seconds, 1e-9);
  result.step_loss = std::move(run.state.step_loss);
  judge(probabilities, data.test, result);
  if (options.generate != 0 && set.is_text()) {
    const auto end = set.pixels.end();
    result.generated = generate(*run.network, {end - static_cast<std::ptrdiff_t>(set.steps), end}, options.generate,
                                set.classes, set.steps, options.seed);
  }
  result.weights_sha256 = sha256_hex(run.network->weights().data(), run.network->weights().size_bytes());
  return result;
}

}  // namespace bnns::tool

#include "tools/bnns/model/train.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tools/bnns/data/idx.h"
#include "tools/bnns/data/prng.h"
#include "tools/bnns/data/sha256.h"
#include "tools/bnns/model/cnn.h"
#include "tools/bnns/model/mlp.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/model/weights_file.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::uint64_t kOrderStream = 1, kShiftStream = 2;  // names of the random streams of one seed

std::size_t index_of_largest(const float* values) {
  return static_cast<std::size_t>(std::max_element(values, values + kClasses) - values);
}

double accuracy_of(const std::vector<float>& probabilities, const Dataset& set) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < set.count(); ++i) {
    right += index_of_largest(&probabilities[i * kClasses]) == set.labels[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(set.count());
}

void judge(const std::vector<float>& probabilities, const Dataset& set, TrainResult& result) {
  for (std::size_t i = 0; i < set.count(); ++i) {
    const float* p = &probabilities[i * kClasses];
    const std::size_t truth = set.labels[i], predicted = index_of_largest(p);
    ++result.confusion[truth][predicted];
    if (predicted != truth) {
      result.mistakes.push_back({i, static_cast<int>(truth), static_cast<int>(predicted), p[predicted], p[truth]});
    }
  }
  std::stable_sort(result.mistakes.begin(), result.mistakes.end(), [](const Mistake& a, const Mistake& b) {
    return a.predicted_probability > b.predicted_probability;
  });
}

// Where a run stands: its network, the order of the digits, the steps that are done.
struct Run {
  const TrainOptions& options;
  const TrainFiles& files;
  Ranks* ranks;
  std::size_t count, batch_size, steps_per_epoch;
  std::unique_ptr<Network> network;
  RunState state;

  Run(const TrainOptions& o, const TrainFiles& f, const Dataset& set, Ranks* others)
      : options(o),
        files(f),
        ranks(others),
        count(set.count()),
        batch_size(std::min(o.batch, count)),
        steps_per_epoch((count + batch_size - 1) / batch_size),
        network(make_network(o, set.rows, set.columns, std::max(batch_size, kTestBatch))) {
    if (files.resume) {
      state = load_run(WeightsFile(files.save), *network, steps());
      if (state.epochs.size() != steps_done() / steps_per_epoch) {
        throw DataError(files.save + format(": epoch_figures are of %zu epochs, expected %zu = steps / %zu",
                                            state.epochs.size(), steps_done() / steps_per_epoch, steps_per_epoch));
      }
    } else if (!files.load.empty()) {
      WeightsFile(files.load).load(*network);
    }
    if (ranks == nullptr) return;
    std::vector<BNNSNDArrayDescriptor> all;
    for (const NamedArray& each : network->state()) all.push_back(each.array);
    for (const NamedArray& each : network->optimizer_state()) all.push_back(each.array);
    ranks->broadcast(all);
  }

  std::size_t steps() const { return options.epochs * steps_per_epoch; }
  std::size_t steps_done() const { return state.step_loss.size(); }
  std::size_t epoch() const { return steps_done() / steps_per_epoch; }
  // Digits of the present epoch that were trained on; its last batch may be a small one.
  std::size_t seen() const { return steps_done() % steps_per_epoch * batch_size; }
  std::size_t digits_done() const { return epoch() * count + seen(); }
  bool finished() const { return steps_done() == steps(); }
  // The learning rate falls on a straight line to 0.
  float rate() const {
    const double left = 1.0 - static_cast<double>(steps_done()) / static_cast<double>(steps());
    return static_cast<float>(options.learning_rate * left);
  }

  // Why the file could not be written, or "".
  std::string save() const {
    if (files.save.empty() || (ranks != nullptr && ranks->rank() != 0)) return "";
    try {
      save_network(files.save, *network, files.texts, finished() ? nullptr : &state);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
};

// One epoch's order and shifts, and its sums; begins where the run stands.
struct Epoch {
  std::vector<std::uint32_t>& order;
  Prng shifts;
  double loss_sum = 0;
  std::size_t right, seen;

  Epoch(const Run& run, std::vector<std::uint32_t>& digits)
      : order(digits), shifts(run.options.seed, kShiftStream, run.epoch()), right(run.state.right), seen(run.seen()) {
    Prng(run.options.seed, kOrderStream, run.epoch()).shuffle(order);
    for (std::size_t i = 0; i < 2 * seen; ++i) shifts.next();  // two for each digit that was trained on
    const std::size_t first = run.epoch() * run.steps_per_epoch;
    for (std::size_t i = first; i < run.steps_done(); ++i) {
      loss_sum += static_cast<double>(run.state.step_loss[i]) * static_cast<double>(run.batch_size);
    }
  }
};

// The next digits of an epoch: where each is moved, and the memory for those that go through the network at once.
struct Batch {
  const Epoch& epoch;
  const Dataset& set;
  std::vector<float>&x, &labels;
  std::vector<std::pair<int, int>> moves;

  void load(std::size_t first, std::size_t count) {
    std::fill(labels.begin(), labels.end(), 0.0f);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t pick = epoch.order[epoch.seen + first + i];
      const auto [dx, dy] = moves[first + i];
      load_picture(set, pick, dx, dy, x.data() + i * set.pixels_per_image());
      labels[i * kClasses + set.labels[pick]] = 1.0f;
    }
  }
  // Those that the network has just recognised.
  std::size_t right(const Network& network, std::size_t first, std::size_t count) const {
    std::size_t right = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t guess = index_of_largest(&network.scores()[i * kClasses]);
      right += guess == set.labels[epoch.order[epoch.seen + first + i]] ? 1 : 0;
    }
    return right;
  }
};

struct StepFigures {
  float loss = 0;
  std::size_t right = 0;
  bool stop = false;  // some rank was told to
};

// One step of all ranks on a batch: this one's shards, one after the other. A float counts digits exactly, to 2^24.
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

// One step on the next digits of the epoch. Returns how many they were; `stop` is that of all ranks then.
std::size_t step(Run& run, Epoch& epoch, const Dataset& set, std::vector<float>& x, std::vector<float>& labels,
                 bool& stop) {
  const std::size_t count = std::min(run.batch_size, run.count - epoch.seen);
  const int shift = static_cast<int>(run.options.shift);
  const auto span = static_cast<std::uint32_t>(2 * shift + 1);
  Batch batch{epoch, set, x, labels, {}};
  for (std::size_t i = 0; i < count; ++i) {
    const int dx = static_cast<int>(epoch.shifts.below(span)) - shift;
    const int dy = static_cast<int>(epoch.shifts.below(span)) - shift;
    batch.moves.push_back({dx, dy});
  }
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

std::unique_ptr<Network> make_network(const TrainOptions& o, std::size_t rows, std::size_t columns,
                                      std::size_t max_batch) {
  if (o.model == "mlp") {
    return std::make_unique<Mlp>(rows * columns, o.hidden, kClasses, max_batch, o.seed, o.threads);
  }
  return std::make_unique<Cnn>(rows, columns, kClasses, max_batch, o.seed, o.threads);
}

void check_pictures(const TrainOptions& o, const Dataset& set) {
  if (o.model == "mlp") return;
  if (std::min(set.rows, set.columns) < Cnn::kSmallestPicture) {
    throw DataError(
        format("pictures of %zu x %zu pixels are too small for the cnn: it takes %zu x %zu or more; try "
               "--model mlp",
               set.rows, set.columns, Cnn::kSmallestPicture, Cnn::kSmallestPicture));
  }
}

std::size_t default_epochs(const std::string& model) {
  return model == "mlp" ? 20 : 8;
}

std::string network_name(const TrainOptions& o, const Dataset& set) {
  if (o.model == "mlp") return format("mlp %zu-%zu-%zu", set.pixels_per_image(), o.hidden, kClasses);
  return format("cnn %zux%zu-%zu-%zu-%zu", set.rows, set.columns, Cnn::kChannels[0], Cnn::kChannels[1], kClasses);
}

std::string network_layers(const TrainOptions& o) {
  return o.model == "mlp"
             ? "fully connected with ReLU, fully connected, softmax cross-entropy"
             : "twice (3x3 convolution, batch normalization and ReLU as one fused layer, 2x2 max pooling), "
               "fully connected, softmax cross-entropy";
}

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
  std::vector<float> x(run.batch_size * set.pixels_per_image()), labels(run.batch_size * kClasses);
  ProgressState state{.epochs = options.epochs,
                      .digits_done = run.digits_done(),
                      .digits_all = options.epochs * count,
                      .digits_before = run.digits_done()};
  if (!run.state.epochs.empty()) state.test_accuracy = run.state.epochs.back().test_accuracy;
  result.epochs = run.state.epochs;
  std::vector<float> probabilities;
  double step_seconds = 0;
  const auto start = Clock::now();

  while (!run.finished() && !result.interrupted) {
    Epoch epoch(run, order);
    state.epoch = run.epoch() + 1;
    const auto epoch_start = Clock::now();
    while (epoch.seen < count && !result.interrupted) {
      bool stopping = is_told(stop);  // ranks tell each other within the step, and all stop after it
      state.digits_done += step(run, epoch, set, x, labels, stopping);
      result.interrupted = ranks != nullptr ? stopping : is_told(stop);
      state.seconds = step_seconds + seconds_since(epoch_start);
      state.loss = epoch.loss_sum / static_cast<double>(epoch.seen);
      state.accuracy = static_cast<double>(epoch.right) / static_cast<double>(epoch.seen);
      progress.update(state);
    }
    if (result.interrupted) state.digits_all = state.digits_done;
    step_seconds += seconds_since(epoch_start);
    probabilities = predict_all(*run.network, data.test, ranks);
    state.test_accuracy = accuracy_of(probabilities, data.test);
    result.epochs.push_back({state.loss, state.accuracy, state.test_accuracy});
    progress.end_epoch(state);
    const bool whole = epoch.seen == count;
    run.state.right = whole ? 0 : epoch.right;
    if (whole) run.state.epochs = result.epochs;
    // Said once: the next save may succeed, and the last one says for itself.
    const std::string before = std::exchange(result.not_saved, run.save());
    if (!result.not_saved.empty() && before.empty() && !run.finished()) {
      progress.note("not saved  " + result.not_saved);
    }
  }
  result.seconds = seconds_since(start);
  result.digits_per_second =
      static_cast<double>(state.digits_done - state.digits_before) / std::max(step_seconds, 1e-9);
  result.step_loss = std::move(run.state.step_loss);
  judge(probabilities, data.test, result);
  result.weights_sha256 = sha256_hex(run.network->weights().data(), run.network->weights().size_bytes());
  return result;
}

}  // namespace bnns::tool

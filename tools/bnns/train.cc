#include "tools/bnns/train.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "tools/bnns/cnn.h"
#include "tools/bnns/idx.h"
#include "tools/bnns/mlp.h"
#include "tools/bnns/prng.h"
#include "tools/bnns/sha256.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::uint64_t kOrderStream = 1, kShiftStream = 2;  // names of the random streams of one seed
constexpr std::size_t kTestBatch = 256;

// Writes the picture as floats in [0, 1], moved by (dx, dy) pixels; what moves in is paper.
void load_picture(const Dataset& set, std::size_t index, int dx, int dy, float* out) {
  const auto rows = static_cast<std::ptrdiff_t>(set.rows), columns = static_cast<std::ptrdiff_t>(set.columns);
  const std::uint8_t* in = set.image(index);
  if (dx != 0 || dy != 0) std::fill(out, out + rows * columns, 0.0f);
  const std::ptrdiff_t x0 = std::max(0, dx), x1 = std::min(columns, columns + dx);
  for (std::ptrdiff_t y = std::max(0, dy); y < std::min(rows, rows + dy); ++y) {
    for (std::ptrdiff_t x = x0; x < x1; ++x) {
      out[y * columns + x] = static_cast<float>(in[(y - dy) * columns + x - dx]) * (1.0f / 255);
    }
  }
}

std::size_t index_of_largest(const float* values) {
  return static_cast<std::size_t>(std::max_element(values, values + kClasses) - values);
}

// Probabilities of the held-out digits, count x kClasses.
std::vector<float> predict_all(Network& model, const Dataset& set) {
  const std::size_t inputs = set.pixels_per_image();
  std::vector<float> x(kTestBatch * inputs), probabilities(set.count() * kClasses);
  for (std::size_t begin = 0; begin < set.count(); begin += kTestBatch) {
    const std::size_t batch = std::min(kTestBatch, set.count() - begin);
    for (std::size_t i = 0; i < batch; ++i) load_picture(set, begin + i, 0, 0, x.data() + i * inputs);
    model.predict(x.data(), batch, probabilities.data() + begin * kClasses);
  }
  return probabilities;
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

std::unique_ptr<Network> make_network(const TrainOptions& o, const Dataset& set, std::size_t max_batch) {
  if (o.model == "mlp") {
    return std::make_unique<Mlp>(set.pixels_per_image(), o.hidden, kClasses, max_batch, o.seed, o.threads);
  }
  return std::make_unique<Cnn>(set.rows, set.columns, kClasses, max_batch, o.seed, o.threads);
}

}  // namespace

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

TrainResult train(const TrainOptions& options, const DataSplit& data, Progress& progress,
                  const std::atomic<bool>* stop) {
  const Dataset& set = data.train;
  const std::size_t inputs = set.pixels_per_image(), count = set.count();
  const std::size_t batch_size = std::min(options.batch, count);
  const std::unique_ptr<Network> network = make_network(options, set, std::max(batch_size, kTestBatch));
  Network& model = *network;

  TrainResult result;
  result.threads = options.threads != 0 ? options.threads : BNNSExtGetNumThreads();
  result.weight_count = model.weights().size();
  const std::size_t steps_per_epoch = (count + batch_size - 1) / batch_size;
  const std::size_t steps = options.epochs * steps_per_epoch;
  result.step_loss.reserve(steps);

  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::vector<float> x(batch_size * inputs), labels(batch_size * kClasses);
  ProgressState state{.epochs = options.epochs, .digits_all = options.epochs * count};
  std::vector<float> probabilities;
  double step_seconds = 0;
  const auto start = Clock::now();

  for (std::size_t epoch = 0; epoch < options.epochs && !result.interrupted; ++epoch) {
    Prng(options.seed, kOrderStream, epoch).shuffle(order);
    Prng shifts(options.seed, kShiftStream, epoch);
    double loss_sum = 0;
    std::size_t right = 0, seen = 0;
    state.epoch = epoch + 1;
    const auto epoch_start = Clock::now();
    while (seen < count && !result.interrupted) {
      const std::size_t batch = std::min(batch_size, count - seen);
      std::fill(labels.begin(), labels.end(), 0.0f);
      const auto span = static_cast<std::uint32_t>(2 * options.shift + 1);
      for (std::size_t i = 0; i < batch; ++i) {
        const std::size_t pick = order[seen + i];
        const int dx = static_cast<int>(shifts.below(span)) - static_cast<int>(options.shift);
        const int dy = static_cast<int>(shifts.below(span)) - static_cast<int>(options.shift);
        load_picture(set, pick, dx, dy, x.data() + i * inputs);
        labels[i * kClasses + set.labels[pick]] = 1.0f;
      }
      const double left = 1.0 - static_cast<double>(result.step_loss.size()) / static_cast<double>(steps);
      const float rate = static_cast<float>(options.learning_rate * left);
      const float loss = model.train_step(x.data(), labels.data(), batch, rate);
      if (!std::isfinite(loss)) {
        throw std::runtime_error(format("the loss is %g at step %zu: try a smaller --lr than %g",
                                        static_cast<double>(loss), result.step_loss.size() + 1,
                                        static_cast<double>(options.learning_rate)));
      }
      for (std::size_t i = 0; i < batch; ++i) {
        right += index_of_largest(&model.scores()[i * kClasses]) == set.labels[order[seen + i]] ? 1 : 0;
      }
      result.step_loss.push_back(loss);
      loss_sum += static_cast<double>(loss) * static_cast<double>(batch);
      seen += batch;
      state.digits_done += batch;
      state.seconds = step_seconds + seconds_since(epoch_start);
      state.loss = loss_sum / static_cast<double>(seen);
      state.accuracy = static_cast<double>(right) / static_cast<double>(seen);
      progress.update(state);
      result.interrupted = stop != nullptr && stop->load(std::memory_order_relaxed);
    }
    if (result.interrupted) state.digits_all = state.digits_done;
    step_seconds += seconds_since(epoch_start);
    probabilities = predict_all(model, data.test);
    state.test_accuracy = accuracy_of(probabilities, data.test);
    result.epochs.push_back({state.loss, state.accuracy, state.test_accuracy});
    progress.end_epoch(state);
  }
  result.seconds = seconds_since(start);
  result.digits_per_second = static_cast<double>(state.digits_done) / std::max(step_seconds, 1e-9);
  judge(probabilities, data.test, result);
  result.weights_sha256 = sha256_hex(model.weights().data(), model.weights().size_bytes());
  return result;
}

}  // namespace bnns::tool

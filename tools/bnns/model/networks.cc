// The networks by the names that users have for them.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/model/cnn.h"
#include "tools/bnns/model/lstm.h"
#include "tools/bnns/model/mlp.h"
#include "tools/bnns/model/resnet.h"
#include "tools/bnns/model/train.h"
#include "tools/bnns/text.h"
#include "tools/bnns/trace_range.h"

namespace bnns::tool {

std::unique_ptr<Network> make_network(const TrainOptions& o, const Dataset& set, std::size_t max_batch) {
  const TraceRange range("network");
  const Inputs inputs{set.rows, set.columns, set.channels};
  if (o.model == "mlp") {
    return std::make_unique<Mlp>(set.inputs(), o.hidden, set.classes, max_batch, o.seed, o.threads);
  }
  if (o.model == "lstm") {
    return std::make_unique<Lstm>(set.classes, o.hidden, set.steps, max_batch, o.seed, o.threads);
  }
  if (o.model == "resnet") return std::make_unique<ResNet>(inputs, set.classes, max_batch, o.seed, o.threads);
  return std::make_unique<Cnn>(inputs, set.classes, max_batch, o.seed, o.threads);
}

void check_items(const TrainOptions& o, const Dataset& set) {
  if (o.model == "lstm" && !set.is_text()) throw DataError("--model lstm is for text, expected --data FILE.txt");
  if (o.model == "mlp" || o.model == "lstm") return;
  if (!set.is_pictures()) {
    throw DataError("--model " + o.model + " is for pictures, expected mlp for rows of numbers");
  }
  const std::size_t smallest = o.model == "cnn" ? Cnn::kSmallestPicture : ResNet::kSmallestPicture;
  if (std::min(set.rows, set.columns) < smallest) {
    throw DataError(
        format("pictures of %zu x %zu pixels are too small for the %s: it takes %zu x %zu or more; try --model mlp",
               set.rows, set.columns, o.model.c_str(), smallest, smallest));
  }
}

std::size_t default_epochs(const std::string& model) {
  return model == "mlp" || model == "lstm" ? 20 : 8;
}

std::size_t default_epochs(const TrainOptions& o, const DataSplit& data) {
  const std::size_t least = default_epochs(o.model);
  if (data.noun == "digits") return least;
  constexpr std::size_t kSteps = 600, kMost = 200;
  const std::size_t batch = std::min(o.batch, data.train.count()), steps = (data.train.count() + batch - 1) / batch;
  return std::clamp((kSteps + steps - 1) / steps, least, kMost);
}

std::string network_name(const TrainOptions& o, const Dataset& set) {
  if (o.model == "mlp") return format("mlp %zu-%zu-%zu", set.inputs(), o.hidden, set.classes);
  if (o.model == "lstm") return format("lstm %zu-%zu-%zu", set.classes, o.hidden, set.classes);
  const std::string size =
      format("%s %zux%zu%s", o.model.c_str(), set.rows, set.columns, set.channels == 1 ? "" : "x3");
  if (o.model == "cnn") return size + format("-%zu-%zu-%zu", Cnn::kChannels[0], Cnn::kChannels[1], set.classes);
  return size +
         format("-%zu-%zu-%zu-%zu", ResNet::kChannels[0], ResNet::kChannels[1], ResNet::kChannels[2], set.classes);
}

std::string network_layers(const TrainOptions& o) {
  if (o.model == "mlp") return "fully connected with ReLU, fully connected, softmax cross-entropy";
  if (o.model == "cnn") {
    return "twice (3x3 convolution, batch normalization and ReLU as one fused layer, 2x2 max pooling), "
           "fully connected, softmax cross-entropy";
  }
  if (o.model == "lstm") {
    return "LSTM over windows of the text, fully connected at each place, softmax cross-entropy";
  }
  return "3x3 convolution with batch normalization and ReLU, three residual blocks of two such layers, mean over all "
         "pixels, fully connected, softmax cross-entropy";
}

float learning_rate_at(const TrainOptions& o, std::size_t step, std::size_t steps) {
  const double done = static_cast<double>(step) / static_cast<double>(steps);
  const double part = o.schedule == "linear"   ? 1.0 - done
                      : o.schedule == "cosine" ? 0.5 * (1 + std::cos(std::numbers::pi * done))
                      : o.schedule == "step"   ? (done < 0.5    ? 1.0
                                                  : done < 0.75 ? 0.1
                                                                : 0.01)
                                               : 1.0;
  return static_cast<float>(o.learning_rate * part);
}

std::size_t best_epoch(const std::vector<EpochFigures>& epochs) {
  const auto better = [](const EpochFigures& a, const EpochFigures& b) { return a.test_accuracy < b.test_accuracy; };
  return static_cast<std::size_t>(std::max_element(epochs.begin(), epochs.end(), better) - epochs.begin());
}

}  // namespace bnns::tool

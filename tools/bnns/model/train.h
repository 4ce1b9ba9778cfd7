// `bnns train`: trains a classifier and measures it on items it has not seen.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/bnns/data/dataset.h"
#include "tools/bnns/progress.h"

namespace bnns::tool {

struct TrainOptions {
  std::string model = "cnn";  // or "mlp", "resnet", "lstm"
  std::size_t epochs = 0;     // 0: default_epochs
  std::size_t batch = 64;
  std::size_t hidden = 128;         // mlp, lstm
  float learning_rate = 0.002f;     // at the first step
  std::string schedule = "linear";  // what becomes of it: learning_rate_at
  std::size_t patience = 0;         // epochs without a better held-out accuracy until the end; 0: all epochs
  std::size_t shift = 1;            // training pictures move by up to this many pixels each way, anew in every epoch
  bool mirror = false;              // and half of them are mirrored, left and right
  std::size_t generate = 0;         // lstm: characters to write after the training
  std::uint64_t seed = 1;
  std::size_t threads = 0;  // 0: as many as the machine has
  std::size_t shards = 0;   // of a batch, with ranks; 0: without
};

// The learning rate of a step, counted from 0. "linear" falls on a straight line to 0 after the last step, "cosine" on
// half a wave; "step" is a tenth after half of the steps and a hundredth after three quarters; "constant" stays.
float learning_rate_at(const TrainOptions& options, std::size_t step, std::size_t steps);

// As many as the model needs on the digits that bnns draws; of other data at least so many that there are some hundred
// steps.
std::size_t default_epochs(const std::string& model);
std::size_t default_epochs(const TrainOptions& options, const DataSplit& data);
// "mlp 784-128-10" or "cnn 28x28-16-32-10", and its layers in words.
std::string network_name(const TrainOptions& options, const Dataset& set);
std::string network_layers(const TrainOptions& options);

// Refuses items that the network cannot take, with DataError.
void check_items(const TrainOptions& options, const Dataset& set);

struct EpochFigures {
  double train_loss, train_accuracy, test_accuracy;
};

// The epoch with the best held-out accuracy, the first of several. There is one.
std::size_t best_epoch(const std::vector<EpochFigures>& epochs);

struct Mistake {
  std::size_t index;  // in the held-out set
  int truth, predicted;
  float predicted_probability, truth_probability;
};

struct TrainResult {
  std::vector<float> step_loss;  // mean loss of each mini-batch
  std::vector<EpochFigures> epochs;
  std::size_t steps = 0;                            // of all epochs that were asked for
  std::size_t kept = SIZE_MAX;                      // the epoch whose weights are kept; SIZE_MAX: the last
  std::vector<double> epoch_seconds;                // of the last epochs, those of this process
  std::vector<std::vector<std::size_t>> confusion;  // [truth][predicted]
  std::vector<Mistake> mistakes;                    // every wrong item, the most confident first
  bool interrupted = false;                         // the last epoch may be a part of one
  double seconds = 0;                               // training with its evaluations
  double digits_per_second = 0;                     // trained on, in all of these seconds
  std::size_t threads = 0, ranks = 1, weight_count = 0;
  std::string weights_sha256;
  std::vector<std::uint8_t> generated;  // of a text: what follows its training part, options.generate characters
  std::string not_saved;                // why the last save failed, or ""

  std::size_t kept_epoch() const { return std::min(kept, epochs.size() - 1); }
  double test_accuracy() const { return epochs[kept_epoch()].test_accuracy; }
  double train_loss() const { return epochs[kept_epoch()].train_loss; }
};

// The files of a run; "" is none.
struct TrainFiles {
  std::string load;                          // weights to start from
  std::string save;                          // written after every epoch, at Ctrl-C and at the end
  bool resume = false;                       // go on with the run in `save`
  std::map<std::string, std::string> texts;  // what `save` says about the run
};

class Network;
class Ranks;  // ranks.h
// For items like those of `set`, which may be empty.
std::unique_ptr<Network> make_network(const TrainOptions& options, const Dataset& set, std::size_t max_batch);

// How a training picture is changed: moved by (dx, dy) pixels, what moves in is paper; mirrored before that.
struct Change {
  int dx = 0, dy = 0;
  bool mirrored = false;
};
// Writes the picture as floats in [0, 1], the row of numbers, or the numbers of the characters.
void load_item(const Dataset& set, std::size_t index, Change change, float* out);

// Probabilities of all items, count x steps x classes. The network takes kTestBatch items at once, or more.
inline constexpr std::size_t kTestBatch = 256;
// With ranks each takes its part of them.
std::vector<float> predict_all(Network& network, const Dataset& set, Ranks* ranks = nullptr);

std::size_t index_of_largest(const float* values, std::size_t count);
// How many labels the network puts first.
std::size_t count_right(const std::vector<float>& probabilities, const Dataset& set);

// The next `count` characters after a text of one or more, drawn from what the network says of each.
std::vector<std::uint8_t> generate(Network& network, std::vector<std::uint8_t> text, std::size_t count,
                                   std::size_t classes, std::size_t steps, std::uint64_t seed);

// Refuses weights or a run that the network cannot start from, with DataError: before anything is said or trained.
void check_start(const TrainOptions& options, const TrainFiles& files, const Dataset& set);

// options.epochs is not 0. Trains on data.train and evaluates on data.test after every epoch. The seed fixes the
// weights, the order and the changes; the number of threads changes no bit of the outcome, nor does it matter whether a
// run was ended by Ctrl-C and resumed. Throws LibraryError, DataError for what is wrong with files, or
// std::runtime_error where the loss stops being finite. Where *stop becomes true the step is finished, the network
// evaluated as it is, and the result marked. With ranks every rank calls it with the same arguments, and all get the
// same result; rank 0 saves. The bits then do not depend on their number, but on options.shards.
TrainResult train(const TrainOptions& options, const DataSplit& data, Progress& progress,
                  const std::atomic<bool>* stop = nullptr, const TrainFiles& files = {}, Ranks* ranks = nullptr);

}  // namespace bnns::tool

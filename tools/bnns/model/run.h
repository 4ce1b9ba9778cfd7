// Where a run of `bnns train` stands: its network, the order of the items, the steps that are done.
#pragma once

#include <memory>
#include <vector>

#include "tools/bnns/data/prng.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/model/train.h"
#include "tools/bnns/model/weights_file.h"

namespace bnns::tool {

// Names of the random streams of one seed.
inline constexpr std::uint64_t kOrderStream = 1, kShiftStream = 2, kMirrorStream = 4;  // 3: what is held out

struct Run {
  const TrainOptions& options;
  const TrainFiles& files;
  Ranks* ranks;
  std::size_t count, batch_size, steps_per_epoch;
  std::unique_ptr<Network> network;
  RunState state;

  // Loads what the files say, and gives it to all ranks.
  Run(const TrainOptions& options, const TrainFiles& files, const Dataset& set, Ranks* ranks);

  std::size_t steps() const { return options.epochs * steps_per_epoch; }
  std::size_t steps_done() const { return state.step_loss.size(); }
  std::size_t epoch() const { return steps_done() / steps_per_epoch; }
  // Items of the present epoch that were trained on; its last batch may be a small one.
  std::size_t seen() const { return steps_done() % steps_per_epoch * batch_size; }
  std::size_t items_done() const { return epoch() * count + seen(); }
  bool finished() const { return steps_done() == steps() || out_of_patience(); }
  bool out_of_patience() const {
    return options.patience != 0 && !state.epochs.empty() &&
           state.epochs.size() - 1 - best_epoch(state.epochs) >= options.patience;
  }
  float rate() const { return learning_rate_at(options, steps_done(), steps()); }

  // After a whole epoch, whose figures are the last: with patience its weights are kept where it is the best.
  void end_epoch(const std::vector<EpochFigures>& epochs);
  // The best weights into the network; false: it has them.
  bool take_best();
  // Why the file could not be written, or "".
  std::string save() const;
};

// One epoch's order and changes, and its sums; begins where the run stands.
struct Epoch {
  std::vector<std::uint32_t>& order;
  Prng shifts, mirrors;
  double loss_sum = 0;
  std::size_t right, seen;

  Epoch(const Run& run, std::vector<std::uint32_t>& items);
  Change next_change(const TrainOptions& options);
};

}  // namespace bnns::tool

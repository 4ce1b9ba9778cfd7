#include "tools/bnns/model/run.h"

#include <algorithm>
#include <stdexcept>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/text.h"

namespace bnns::tool {

Run::Run(const TrainOptions& o, const TrainFiles& f, const Dataset& set, Ranks* others)
    : options(o),
      files(f),
      ranks(others),
      count(set.count()),
      batch_size(std::min(o.batch, count)),
      steps_per_epoch((count + batch_size - 1) / batch_size),
      network(make_network(o, set, std::max(batch_size, kTestBatch))) {
  if (files.resume) {
    state = load_run(WeightsFile(files.save), *network, steps(), options.patience != 0);
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
  for (std::vector<float>& each : state.best) all.push_back(vector(each.size(), each.data()));
  ranks->broadcast(all);
}

void Run::end_epoch(const std::vector<EpochFigures>& epochs) {
  state.epochs = epochs;
  if (options.patience == 0 || best_epoch(epochs) + 1 != epochs.size()) return;
  state.best.clear();
  for (const NamedArray& each : network->state()) {
    const float* const values = static_cast<const float*>(each.array.data);
    state.best.emplace_back(values, values + count_of(each.array));
  }
}

bool Run::take_best() {
  if (state.best.empty() || best_epoch(state.epochs) + 1 == state.epochs.size()) return false;
  const std::vector<NamedArray> all = network->state();
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::copy(state.best[i].begin(), state.best[i].end(), static_cast<float*>(all[i].array.data));
  }
  return true;
}

std::string Run::save() const {
  if (files.save.empty() || (ranks != nullptr && ranks->rank() != 0)) return "";
  try {
    save_network(files.save, *network, files.texts, finished() ? nullptr : &state);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Epoch::Epoch(const Run& run, std::vector<std::uint32_t>& items)
    : order(items),
      shifts(run.options.seed, kShiftStream, run.epoch()),
      mirrors(run.options.seed, kMirrorStream, run.epoch()),
      right(run.state.right),
      seen(run.seen()) {
  Prng(run.options.seed, kOrderStream, run.epoch()).shuffle(order);
  for (std::size_t i = 0; i < seen; ++i) next_change(run.options);  // those of the items that were trained on
  const std::size_t first = run.epoch() * run.steps_per_epoch;
  for (std::size_t i = first; i < run.steps_done(); ++i) {
    loss_sum += static_cast<double>(run.state.step_loss[i]) * static_cast<double>(run.batch_size);
  }
}

Change Epoch::next_change(const TrainOptions& options) {
  const int shift = static_cast<int>(options.shift);
  const auto span = static_cast<std::uint32_t>(2 * shift + 1);
  Change change;
  change.dx = static_cast<int>(shifts.below(span)) - shift;
  change.dy = static_cast<int>(shifts.below(span)) - shift;
  change.mirrored = options.mirror && mirrors.below(2) != 0;
  return change;
}

}  // namespace bnns::tool

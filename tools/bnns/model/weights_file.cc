#include "tools/bnns/model/weights_file.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr char kStepLoss[] = "history.step_loss", kBest[] = "best.";

// The tool says itself what the library refused: one line, not two.
class Unprinted {
 public:
  Unprinted() {
    BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) {}, nullptr);
  }
  ~Unprinted() { BNNSExtSetLogCallback(nullptr, nullptr); }
  Unprinted(const Unprinted&) = delete;
  Unprinted& operator=(const Unprinted&) = delete;
};

// The library's reason without the name of the function.
std::string reason() {
  const std::string text = BNNSExtLastError();
  const std::size_t colon = text.find(": ");
  return colon == text.npos ? text : text.substr(colon + 2);
}

BNNSExtArrayFile opened(const std::string& path) {
  const std::string kind = file_kind(path);
  if (!kind.empty() && kind != "a safetensors file") {
    throw DataError(path + ": is " + kind + ", expected weights as bnns train --save writes them");
  }
  const Unprinted guard;
  const BNNSExtArrayFile file = BNNSExtArrayFileOpen(path.c_str(), BNNSExtArrayFileRead);
  if (file == nullptr) throw DataError(reason());
  return file;
}

bool begins_with(const std::string& text, const char* start) {
  return text.rfind(start, 0) == 0;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.npos, end) == 0;
}

// "0.25 0.9 0.91;0.2 0.93 0.94": loss, accuracy on the training digits and on the held-out ones, epoch by epoch, with
// all their bits.
std::string figures_text(const std::vector<EpochFigures>& epochs) {
  std::string text;
  for (const EpochFigures& e : epochs) {
    text += format("%s%.17g %.17g %.17g", text.empty() ? "" : ";", e.train_loss, e.train_accuracy, e.test_accuracy);
  }
  return text;
}

std::vector<EpochFigures> parse_figures(const WeightsFile& file) {
  std::vector<EpochFigures> epochs;
  const char* at = file.text("epoch_figures");
  while (at != nullptr && *at != '\0') {
    double value[3];
    for (double& v : value) {
      char* end = nullptr;
      v = std::strtod(at, &end);
      if (end == at) throw DataError(file.path() + ": epoch_figures is damaged, expected three numbers for each epoch");
      at = end;
    }
    epochs.push_back({value[0], value[1], value[2]});
    if (*at == ';') ++at;
  }
  return epochs;
}

}  // namespace

WeightsFile::WeightsFile(std::string path) : path_(std::move(path)), file_(opened(path_)) {}

bool WeightsFile::has(const std::string& name) const {
  return BNNSExtArrayFileFind(file_.get(), name.c_str()) != SIZE_MAX;
}

std::vector<std::size_t> WeightsFile::shape(const std::string& name) const {
  BNNSExtArrayInfo info{};
  const Unprinted guard;
  if (BNNSExtArrayFileInfo(file_.get(), BNNSExtArrayFileFind(file_.get(), name.c_str()), &info) != 0 ||
      info.rank == 0) {
    throw DataError(path_ + ": " + name + " is not there, or has no axes");
  }
  return {info.shape, info.shape + info.rank};
}

void WeightsFile::copy(const NamedArray& to) const {
  const Unprinted guard;
  if (BNNSExtArrayFileCopy(file_.get(), to.name.c_str(), &to.array) != 0) throw DataError(reason());
}

const char* WeightsFile::text(const std::string& key) const {
  return BNNSExtArrayFileMetadata(file_.get(), key.c_str());
}

std::uint64_t WeightsFile::number(const std::string& key) const {
  const char* const value = text(key);
  char* end = nullptr;
  errno = 0;
  const std::uint64_t number = value != nullptr && *value >= '0' && *value <= '9' ? std::strtoull(value, &end, 10) : 0;
  if (end == nullptr || *end != '\0' || errno != 0) {
    throw DataError(path_ + ": " + key + " is " + (value != nullptr ? value : "not there") + ", expected a number");
  }
  return number;
}

std::string WeightsFile::model() const {
  if (has("layer1.0.conv1.weight") && has("fc.weight")) return "resnet";
  if (has("conv1.weight") && has("fc.weight")) return "cnn";
  if (has("lstm.weight_hh_l0") && has("fc.weight")) return "lstm";
  if (has("fc1.weight") && has("fc2.weight")) return "mlp";
  throw DataError(path_ +
                  ": holds no network of bnns, expected the arrays conv1.weight to fc.bias, or fc1.weight to "
                  "fc2.bias");
}

void WeightsFile::load(Network& network) const {
  std::vector<std::string> known;
  for (const NamedArray& each : network.state()) {
    copy(each);
    known.push_back(each.name);
  }
  for (std::size_t i = 0; i < BNNSExtArrayFileCount(file_.get()); ++i) {
    BNNSExtArrayInfo info{};
    BNNSExtArrayFileInfo(file_.get(), i, &info);
    const std::string name = info.name;
    // PyTorch counts batches beside the moving statistics; nothing depends on them.
    if (begins_with(name, "optimizer.") || begins_with(name, kBest) || name == kStepLoss ||
        ends_with(name, ".num_batches_tracked"))
      continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw DataError(path_ + ": " + name + " is no array of the network, expected none but " + known.front() + " to " +
                      known.back());
    }
  }
}

void save_network(const std::string& path, Network& network, Texts texts, const RunState* run) {
  std::vector<NamedArray> all = network.state();
  if (run != nullptr) {
    for (std::size_t i = 0, count = all.size(); i < count && !run->best.empty(); ++i) {
      NamedArray best{kBest + all[i].name, all[i].array};
      best.array.data = const_cast<float*>(run->best[i].data());
      all.push_back(std::move(best));
    }
    for (NamedArray& each : network.optimizer_state()) all.push_back(std::move(each));
    all.push_back({kStepLoss, vector(run->step_loss.size(), const_cast<float*>(run->step_loss.data()))});
    texts["steps"] = std::to_string(run->step_loss.size());
    texts["right"] = std::to_string(run->right);
    texts["epoch_figures"] = figures_text(run->epochs);
  }
  texts["format"] = "pt";  // what programs around PyTorch look for
  texts["made_by"] = std::string("bnns ") + BNNSExtVersion();
  std::vector<BNNSExtNamedArray> arrays;
  std::vector<BNNSExtMetadata> metadata;
  for (const NamedArray& each : all) arrays.push_back({each.name.c_str(), &each.array});
  for (const auto& [key, value] : texts) metadata.push_back({key.c_str(), value.c_str()});
  const Unprinted guard;
  if (BNNSExtArraysSave(path.c_str(), arrays.size(), arrays.data(), metadata.size(), metadata.data()) != 0) {
    throw std::runtime_error(reason());
  }
}

RunState load_run(const WeightsFile& file, Network& network, std::size_t steps, bool patient) {
  RunState run;
  const std::uint64_t done = file.number("steps");
  if (done == 0 || done >= steps) {
    throw DataError(file.path() + format(": steps is %zu, expected 1 to %zu", std::size_t{done}, steps - 1));
  }
  if (!file.has(kStepLoss) || file.shape(kStepLoss) != std::vector<std::size_t>{done}) {
    throw DataError(file.path() + ": " + kStepLoss + " is not there or of another length than steps, expected " +
                    std::to_string(done));
  }
  run.step_loss.resize(done);
  run.right = file.number("right");
  run.epochs = parse_figures(file);
  file.load(network);
  for (const NamedArray& each : network.optimizer_state()) file.copy(each);
  for (NamedArray each : network.state()) {
    if (!patient || run.epochs.empty()) break;  // there is no best epoch yet
    each.name = kBest + each.name;
    each.array.data = run.best.emplace_back(count_of(each.array)).data();
    file.copy(each);
  }
  file.copy({kStepLoss, vector(done, run.step_loss.data())});
  network.set_steps(done);
  return run;
}

}  // namespace bnns::tool

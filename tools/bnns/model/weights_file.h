// Weights in a safetensors file: those of a network, and the state of a run that can go on.
//
// A finished run leaves the weights alone, under PyTorch's names: torch.load_state_dict takes the file. One that is not
// finished also has Adam's moments ("optimizer.*"), the loss of each step and, with patience, the best weights
// ("best.*").
#pragma once

#include <bnns/bnns_io.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tools/bnns/model/network.h"
#include "tools/bnns/model/train.h"

namespace bnns::tool {

using Texts = std::map<std::string, std::string>;  // metadata: key and value

// An open file. Whatever is wrong with it throws DataError, in one line with its name.
class WeightsFile {
 public:
  explicit WeightsFile(std::string path);

  const std::string& path() const { return path_; }
  bool has(const std::string& name) const;
  std::vector<std::size_t> shape(const std::string& name) const;
  void copy(const NamedArray& to) const;
  // nullptr: there is no such key. A number is refused where its text is none.
  const char* text(const std::string& key) const;
  std::uint64_t number(const std::string& key) const;

  // "cnn", "mlp", "resnet" or "lstm", told by the arrays; with the width of the hidden layer, and the number of
  // classes.
  std::string model() const;
  std::size_t classes() const { return shape(model() == "mlp" ? "fc2.weight" : "fc.weight").front(); }
  std::size_t hidden() const {
    return model() == "lstm" ? shape("lstm.weight_hh_l0").back() : shape("fc1.weight").front();
  }

  // Every array of the network, and no others but those of a run.
  void load(Network& network) const;

 private:
  struct Close {
    void operator()(BNNSExtArrayFile file) const { BNNSExtArrayFileClose(file); }
  };
  std::string path_;
  std::unique_ptr<std::remove_pointer_t<BNNSExtArrayFile>, Close> file_;
};

// What a run that goes on needs besides the weights and its options. Its steps are those of step_loss.
struct RunState {
  std::vector<float> step_loss;
  std::vector<EpochFigures> epochs;      // of whole epochs
  std::size_t right = 0;                 // items of the present epoch that were recognised
  std::vector<std::vector<float>> best;  // with patience, after an epoch: the network's state in the best one
};

// Writes the file as a whole; `run` is NULL where it is finished. Throws std::runtime_error with the reason.
void save_network(const std::string& path, Network& network, Texts texts, const RunState* run);

// The state of a run of `steps` steps, and Adam's moments into the network. Throws DataError.
RunState load_run(const WeightsFile& file, Network& network, std::size_t steps, bool patient);

}  // namespace bnns::tool

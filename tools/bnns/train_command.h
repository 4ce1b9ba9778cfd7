// `bnns train` from its options to its last line: data, training, figures, report.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "tools/bnns/model/train.h"

namespace bnns::tool {

inline constexpr std::size_t kMaxHidden = 16384, kMaxShards = 65536, kMaxSize = 512;
inline constexpr double kMinShare = 0.01, kMaxShare = 0.9;

struct TrainCommand {
  TrainOptions options;
  std::set<std::string> given;  // the options that the user gave, "--batch"
  std::string load, save;       // files of weights; "": none
  bool resume = false;
  std::string data, target;       // target: the class's column of a CSV file
  bool text = false;              // the file of --data is a text
  std::string augment = "shift";  // or "none", "mirror": shifts, and mirrored pictures
  std::size_t size = 0;           // pictures are scaled to it; 0: they are not
  float test_share = 0.2f;
  std::size_t train_size = 20000, test_size = 4000;
  std::string report = "bnns-report.html";
  bool no_report = false, json = false, quiet = false;
};

// The process's exit code: 0, 1 where report or weights could not be written, 130 where Ctrl-C ended the training.
// Throws DataError for what is wrong with options or data, before anything is trained.
int run_train(TrainCommand command);

}  // namespace bnns::tool

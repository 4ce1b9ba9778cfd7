// `bnns predict`: what a saved network says about pictures or rows of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/bnns/model/item_texts.h"

namespace bnns::tool {

struct PredictCommand {
  std::string weights;  // the file of `bnns train --save`, or one of PyTorch with the same names
  // PNG and JPEG files, folders of them for each class, IDX files of pictures; CSV files; texts
  std::vector<std::string> files;
  std::size_t threads = 0, generate = 0, seed = 1;  // generate: characters after each text
  bool invert = false, json = false, quiet = false;
};

// Prints the three most likely classes of each item, and the accuracy where there are labels. Returns the exit code
// 0, or throws DataError; nothing is printed before every file was read.
int run_predict(const PredictCommand& command);
// The same for a network of texts: how many of the next characters it foresees, and what it writes after each.
int predict_texts(const PredictCommand& command, const TrainOptions& options, const WeightsFile& file,
                  const ItemKind& kind);

}  // namespace bnns::tool

// `bnns predict`: what a saved network says about pictures or rows of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bnns::tool {

struct PredictCommand {
  std::string weights;             // the file of `bnns train --save`, or one of PyTorch with the same names
  std::vector<std::string> files;  // PNG and JPEG files, IDX files of pictures; CSV files
  std::size_t threads = 0;
  bool invert = false, json = false, quiet = false;
};

// Prints the three most likely classes of each item, and the accuracy where there are labels. Returns the exit code
// 0, or throws DataError; nothing is printed before every file was read.
int run_predict(const PredictCommand& command);

}  // namespace bnns::tool

// What the user sees while training runs: one redrawn line on a terminal, a plain line per epoch elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace bnns::tool {

struct ProgressState {
  std::size_t epoch = 0, epochs = 0;            // epoch counts from 1
  std::size_t digits_done = 0, digits_all = 0;  // over all epochs
  double seconds = 0;                           // since training began
  double loss = 0, accuracy = 0;                // of this epoch so far, on the digits it trains on
  double test_accuracy = -1;                    // after the last whole epoch; negative before the first
};

class Progress {
 public:
  // `stream` is stdout, or stderr where stdout carries JSON. Quiet: nothing is written.
  Progress(std::FILE* stream, bool quiet);

  void note(const std::string& line);       // a line that stays
  void update(const ProgressState& state);  // cheap to call often: redraws ten times a second at most
  void end_epoch(const ProgressState& state);

  // The text of one plain line; public so that it can be tested.
  static std::string plain_line(const ProgressState& state);

 private:
  void redraw(const ProgressState& state);

  std::FILE* stream_;
  bool quiet_, terminal_, colour_, unicode_;
  std::chrono::steady_clock::time_point last_draw_{};
};

}  // namespace bnns::tool

// What the user sees while training runs: a line for each epoch that stays and, on a terminal, a line below them that
// is redrawn. Of many epochs some forty lines stay on a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

namespace bnns::tool {

struct ProgressState {
  std::string noun = "digits";                  // what is trained on
  std::size_t epoch = 0, epochs = 0;            // epoch counts from 1
  std::size_t digits_done = 0, digits_all = 0;  // over all epochs
  std::size_t digits_before = 0;                // those of digits_done that an earlier run trained on
  double seconds = 0;                           // since training began, with the evaluations
  double loss = 0, accuracy = 0;                // of this epoch so far, on the digits it trains on
  double test_accuracy = -1;                    // after the last whole epoch; negative before the first
};

inline constexpr std::size_t kNoteIndent = 11;  // notes are "data       what it is"

class Progress {
 public:
  // `stream` is stdout, or stderr where stdout carries JSON. Quiet: nothing is written.
  Progress(std::FILE* stream, bool quiet);

  void note(const std::string& line);       // a line that stays
  void update(const ProgressState& state);  // cheap to call often: redraws ten times a second at most
  void end_epoch(const ProgressState& state);
  void finish();  // the line of the last epoch stays

  // The text of one plain line, and of as much of it as is shorter than `columns` (0: all); public so that they can be
  // tested. Of a whole epoch the held-out accuracy comes first, within one the time left.
  static std::string plain_line(const ProgressState& state);
  static std::string fitting_line(const ProgressState& state, std::size_t columns, bool whole_epoch);

 private:
  void redraw(const ProgressState& state);

  std::FILE* stream_;
  bool quiet_, terminal_, colour_, unicode_;
  bool open_ = false;  // the line of an epoch that may be drawn over
  std::chrono::steady_clock::time_point last_draw_{};
};

}  // namespace bnns::tool

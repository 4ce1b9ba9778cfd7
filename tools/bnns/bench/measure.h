// The calls that `bnns bench` times: what the library says about each, and how long each takes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/row.h"

namespace bnns::tool {

// One line of BNNS_VERBOSE=1, taken apart; or why the call was refused.
struct Described {
  std::string problem, implementation, isa, refusal;
  std::size_t batch = 0, threads = 0;
};

// Makes each call once in a child process that listens to the log, and once only: a log costs time. Before the first
// call of the library in this process.
std::vector<Described> describe_calls(const std::vector<bench::Row>& rows, std::size_t threads);

// Seconds of one call: the median of several samples, which take `seconds` together.
struct Measured {
  double seconds = 0;
  std::size_t samples = 0;
};
Measured measure(const bench::Row& row, std::size_t threads, double seconds);

}  // namespace bnns::tool

// BNNS_PROFILE: time by pass and problem, the longest first.
#include <algorithm>
#include <cstdio>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "src/core/log.h"
#include "src/core/record/files.h"
#include "src/core/record/recorder.h"

namespace bnns::recorder {
namespace {

constexpr size_t kRows = 40;

struct Sum {
  double calls = 0, seconds = 0, bytes = 0, operations = 0;

  void add(const Sum& other) {
    calls += other.calls, seconds += other.seconds;
    bytes += other.bytes, operations += other.operations;
  }
};

struct Row {
  std::string pass, problem;
  Sum sum;
};

std::vector<Row> rows_by_time() {
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (uint32_t slot = 0; slot <= kOtherCalls; ++slot) {
    const Site* site = site_at(slot);
    if (!site || site->calls.load(std::memory_order_relaxed) == 0) continue;  // a range
    const auto calls = static_cast<double>(site->calls.load(std::memory_order_relaxed));
    const double seconds = static_cast<double>(site->nanoseconds.load(std::memory_order_relaxed)) * 1e-9;
    sums[{site->action, site->problem}].add({calls, seconds, calls * site->bytes, calls * site->operations});
  }
  std::vector<Row> rows;
  for (auto& [name, sum] : sums) rows.push_back({name.first, name.second, sum});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.sum.seconds > b.sum.seconds; });
  return rows;
}

std::string time_text(double seconds) {
  char text[32];
  if (seconds >= 1) {
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  } else {
    std::snprintf(text, sizeof text, seconds >= 1e-3 ? "%.1f ms" : "%.1f us", seconds * (seconds >= 1e-3 ? 1e3 : 1e6));
  }
  return text;
}

// Arithmetic where an operator says what it computes, else memory.
std::string rate_text(const Sum& sum) {
  char text[32] = "-";
  if (sum.operations > 0 && sum.seconds > 0) {
    std::snprintf(text, sizeof text, "%.1f GFLOP/s", sum.operations / sum.seconds * 1e-9);
  } else if (sum.bytes > 0 && sum.seconds > 0) {
    std::snprintf(text, sizeof text, "%.1f GB/s", sum.bytes / sum.seconds * 1e-9);
  }
  return text;
}

void print_row(std::FILE* to, size_t columns, const Row& row, double all) {
  char line[512];
  std::snprintf(line, sizeof line, "%8.0f %9s %5.1f%% %14s  %-8s %s", row.sum.calls, time_text(row.sum.seconds).c_str(),
                all > 0 ? 100 * row.sum.seconds / all : 0.0, rate_text(row.sum).c_str(), row.pass.c_str(),
                row.problem.c_str());
  std::string text = line;
  if (text.size() > columns) text = text.substr(0, columns - 3) + "...";
  std::fprintf(to, "%s\n", text.c_str());
}

void print_rows(std::FILE* to, size_t columns) {
  const std::vector<Row> rows = rows_by_time();
  Sum all;
  for (const Row& row : rows) all.add(row.sum);
  const double elapsed = static_cast<double>(detail::monotonic_nanoseconds() - start_time()) * 1e-9;
  std::fprintf(to, "openbnns: %.0f calls took %s of the %s since the first\n", all.calls,
               time_text(all.seconds).c_str(), time_text(elapsed).c_str());
  std::fprintf(to, "%8s %9s %6s %14s  %-8s %s\n", "calls", "time", "share", "rate", "pass", "layer");
  for (size_t k = 0; k < std::min(rows.size(), kRows); ++k) print_row(to, columns, rows[k], all.seconds);
  if (rows.size() <= kRows) return;
  Row others{"", std::to_string(rows.size() - kRows) + " others", {}};
  for (size_t k = kRows; k < rows.size(); ++k) others.sum.add(rows[k].sum);
  others.sum.bytes = others.sum.operations = 0;  // of different kinds
  print_row(to, columns, others, all.seconds);
}

}  // namespace

void print_profile(std::FILE* to, size_t columns) noexcept {
  try {
    print_rows(to, columns);
  } catch (const std::bad_alloc&) {
    std::fputs("openbnns: BNNS_PROFILE: out of memory\n", to);
  }
}

}  // namespace bnns::recorder

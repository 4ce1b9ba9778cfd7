#include "tools/bnns/bench/measure.h"

#include <bnns/bnns_extensions.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/timing.h"

namespace bnns::tool {
namespace {

constexpr char kEnd = '\n', kRefused = '!';

// "apply,fully_connected f32 i784 o128,batch 32,gemm/tiles,avx512,2 threads,12.3 us"; a problem may have commas.
Described take_apart(const std::string& line) {
  Described d;
  const std::size_t batch = line.rfind(",batch "), first = line.find(',');
  if (batch == line.npos || first >= batch) throw std::runtime_error("the library says \"" + line + "\"");
  d.problem = line.substr(first + 1, batch - first - 1);
  std::vector<std::string> fields;
  for (std::size_t at = batch + 1; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  if (fields.size() != 5) throw std::runtime_error("the library says \"" + line + "\"");
  d.batch = std::strtoull(fields[0].c_str() + std::strlen("batch "), nullptr, 10);
  d.implementation = fields[1], d.isa = fields[2];
  d.threads = std::strtoull(fields[3].c_str(), nullptr, 10);
  return d;
}

// In the child: the last line of each call, on the pipe. A layer is created before it is applied, and a gradient may
// need its forward pass, so the last line is the one of the call that is timed.
[[noreturn]] void tell(const std::vector<bench::Row>& rows, std::size_t threads, int pipe) {
  setenv("BNNS_VERBOSE", "all", 1);
  std::string last;
  const auto keep = [](BNNSExtLogLevel level, const char* message, void* user) {
    if (level == BNNSExtLogVerbose) *static_cast<std::string*>(user) = message;
  };
  BNNSExtSetLogCallback(keep, &last);
  for (const bench::Row& row : rows) {
    last.clear();
    try {
      bench::Case c;
      row.fill(c.sets.emplace_back());
      row.open(c, threads);
      c.contenders.at(0).call(c.sets[0]);
    } catch (const std::exception& error) {
      last = kRefused + std::string(error.what());
    }
    std::replace(last.begin(), last.end(), kEnd, ' ');
    last += kEnd;
    for (std::size_t done = 0; done < last.size();) {
      const ssize_t n = write(pipe, last.data() + done, last.size() - done);
      if (n < 0 && errno != EINTR) _exit(1);
      if (n > 0) done += static_cast<std::size_t>(n);
    }
  }
  _exit(0);
}

}  // namespace

std::vector<Described> describe_calls(const std::vector<bench::Row>& rows, std::size_t threads) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(std::string("no process: ") + std::strerror(errno));
  if (child == 0) tell(rows, threads, ends[1]);
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) != 0;) {
    if (n > 0) text.append(part, static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::vector<Described> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find(kEnd, at);
    const std::string line = text.substr(at, end - at);
    if (!line.empty() && line[0] == kRefused) {
      all.emplace_back().refusal = line.substr(1);
    } else {
      all.push_back(take_apart(line));
    }
    at = end + 1;
  }
  if (status != 0 || all.size() != rows.size()) {
    throw std::runtime_error("the process that makes each call once ended after " + std::to_string(all.size()) +
                             " of them" +
                             (WIFSIGNALED(status) ? ", by signal " + std::to_string(WTERMSIG(status)) : ""));
  }
  return all;
}

Measured measure(const bench::Row& row, std::size_t threads, double seconds) {
  constexpr double kSample = 1e-3;  // the clock and its call are a millionth of it
  constexpr std::size_t kLeast = 5;
  bench::Case c;
  c.sets = bench::fill_sets(row);
  row.open(c, threads);
  const bench::Call& call = c.contenders.at(0).call;
  for (bench::Data& set : c.sets) call(set);  // makes the layers of every set and touches their memory
  std::size_t next = 0;
  const auto sample = [&](std::size_t calls) {
    const double start = bench::now();
    for (std::size_t i = 0; i < calls; ++i) call(c.sets[next++ % c.sets.size()]);
    return (bench::now() - start) / static_cast<double>(calls);
  };
  const double one = sample(1);
  const auto calls = static_cast<std::size_t>(std::clamp(kSample / std::max(one, 1e-9), 1.0, 1e6));
  std::vector<double> times;
  for (double total = 0; total < seconds || times.size() < kLeast; total += times.back() * static_cast<double>(calls)) {
    times.push_back(sample(calls));
  }
  const std::size_t samples = times.size();
  return {bench::median(std::move(times)), samples};
}

}  // namespace bnns::tool

#include "tools/bnns/bench/bench_command.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/description.h"
#include "bench/problem_line.h"
#include "tools/bnns/bench/families.h"
#include "tools/bnns/bench/measure.h"
#include "tools/bnns/machine.h"
#include "tools/bnns/options.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

using bench::Row;

const Family& family_of(const std::string& name) {
  for (const Family& each : bench_families()) {
    if (name == each.name) return each;
  }
  const std::vector<std::string> names = family_names();
  throw UsageError(name + " is not a family; did you mean " + closest(name, names) + "? (" + listed(names) + ")");
}

std::vector<std::string> problems_of(const BenchCommand& command) {
  if (command.one_problem) return bench::descriptions_of(command.problem);
  std::vector<std::string> problems;
  const auto append = [&](const Family& f) { problems.insert(problems.end(), f.problems.begin(), f.problems.end()); };
  if (!command.family.empty()) {
    append(family_of(command.family));
  } else {
    for (const Family& each : bench_families()) append(each);
  }
  return problems;
}

Row row_of(const std::string& problem) {
  const bench::Description d(problem);
  const auto maker = bench::makers().find(d.family);
  if (maker == bench::makers().end()) {
    std::vector<std::string> names;
    for (const auto& [name, make] : bench::makers()) names.push_back(name);
    throw std::runtime_error("no rows of " + d.family + "; did you mean " + closest(d.family, names) + "?");
  }
  Row row = maker->second(d);
  if (!(row.bytes > 0)) throw std::runtime_error("\"" + problem + "\" has no elements");
  return row;
}

std::vector<Row> rows_of(const std::vector<std::string>& problems) {
  std::vector<Row> rows;
  for (const std::string& problem : problems) rows.push_back(row_of(problem));
  return rows;
}

const char* pass_of(const Row& row) {
  if (row.direction == "dx") return "input gradient";
  if (row.direction == "dw") return "weights gradient";
  if (row.family == "loss") return "forward, gradient";
  if (row.direction == "step") return "step";
  return row.direction == "backward" ? "gradient" : "forward";
}

std::string rate(const Row& row, double seconds) {
  return row.operations > 0 ? format("%.1f GFLOP/s", row.operations / seconds * 1e-9)
                            : format("%.1f GB/s", row.bytes / seconds * 1e-9);
}

std::string padded(std::string text, std::size_t width, bool right = false) {
  const std::size_t missing = width > text.size() ? width - text.size() : 0;
  return right ? std::string(missing, ' ') + text : text + std::string(missing, ' ');
}

// The columns are as wide as what the library says about the calls, which is known before any of them is timed.
class Table {
 public:
  Table(const std::vector<Row>& rows, const std::vector<Described>& calls) {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      problem_ = std::max(problem_, calls[k].problem.size() + 2);
      pass_ = std::max(pass_, std::string(pass_of(rows[k])).size() + 2);
      implementation_ = std::max(implementation_, calls[k].implementation.size() + 2);
    }
    print("problem", "batch", "pass", "implementation", "threads", "ms", "rate");
  }
  void print(const std::string& problem, const std::string& batch, const std::string& pass,
             const std::string& implementation, const std::string& threads, const std::string& ms,
             const std::string& rate) const {
    put(stdout, padded(problem, problem_) + padded(batch, 5, true) + "  " + padded(pass, pass_) +
                    padded(implementation, implementation_) + padded(threads, 7, true) + padded(ms, 11, true) +
                    padded(rate, 16, true) + "\n");
  }

 private:
  std::size_t problem_ = 9, pass_ = 6, implementation_ = 16;
};

nlohmann::ordered_json json_of(const std::string& problem, const Row& row, const Described& d, const Measured& m) {
  nlohmann::ordered_json one;
  one["problem"] = d.problem, one["batch"] = d.batch, one["pass"] = pass_of(row);
  one["implementation"] = d.implementation, one["isa"] = d.isa, one["threads"] = d.threads;
  one["ms"] = m.seconds * 1e3, one["samples"] = m.samples;
  one["gflops"] = row.operations > 0 ? nlohmann::ordered_json(row.operations / m.seconds * 1e-9) : nullptr;
  one["gbytes"] = row.bytes / m.seconds * 1e-9;
  one["case"] = problem;
  return one;
}

// Why a problem that was named has fewer rows, or others, than one may expect: on stderr, beside the figures.
void explain_passes(const std::string& problem, const std::vector<Row>& rows) {
  const std::string words = " " + problem.substr(0, problem.rfind(",batch ")) + " ";
  const bool has_weights = words.find("convolution ") != words.npos || words.find("fully_connected ") != words.npos;
  const bool forward_only = std::none_of(rows.begin(), rows.end(), [](const Row& r) { return r.direction[0] == 'd'; });
  if (!has_weights || problem.find('=') != problem.npos) return;
  if (forward_only && words.find(" relu ") != words.npos && words.find("apply,") == words.npos) {
    put(stderr, "bnns: note: the gradients of a layer with relu are not timed; leave the word out to time them\n");
  }
  if (!forward_only && words.find(" nobias ") == words.npos && words.find("backward,") == words.npos) {
    put(stderr, "bnns: note: gradients are timed without the bias, so their problem is named nobias\n");
  }
}

}  // namespace

int run_bench(const BenchCommand& command) {
  std::vector<std::string> problems;
  std::vector<Row> rows;
  bench::add_operator_rows();
  bench::rows().clear();
  try {
    problems = problems_of(command);
    rows = rows_of(problems);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError("--problem: " + std::string(error.what()));
  }
  const bool to_stdout = command.json == "-";
  std::ofstream file;
  if (!command.json.empty() && !to_stdout) {
    file.open(command.json);
    if (!file) throw UsageError("--json: " + command.json + " cannot be written");
  }
  const std::vector<Described> calls = describe_calls(rows, command.threads);
  for (const Described& call : calls) {
    if (!call.refusal.empty()) throw UsageError("--problem: " + call.refusal);
  }
  if (command.one_problem) explain_passes(command.problem, rows);
  setenv("BNNS_VERBOSE", "0", 1);  // a line for each call would be timed too
  if (command.threads != 0) BNNSExtSetNumThreads(command.threads);

  nlohmann::ordered_json out;
  out["version"] = BNNSExtVersion(), out["cpu"] = this_machine().cpu, out["isa"] = BNNSExtGetISA();
  out["seconds"] = command.seconds;
  auto& results = out["results"] = nlohmann::ordered_json::array();
  std::unique_ptr<Table> table;
  if (!to_stdout) table = std::make_unique<Table>(rows, calls);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Described& d = calls[k];
    const Measured m = measure(rows[k], command.threads, static_cast<double>(command.seconds));
    results.push_back(json_of(problems[k], rows[k], d, m));
    if (!table) continue;
    table->print(d.problem, std::to_string(d.batch), pass_of(rows[k]), d.implementation, std::to_string(d.threads),
                 format("%.4f", m.seconds * 1e3), rate(rows[k], m.seconds));
  }
  const std::string text = out.dump(2) + "\n";
  if (to_stdout) put(stdout, text);
  if (file.is_open() && !(file << text << std::flush)) throw std::runtime_error(command.json + " could not be written");
  return 0;
}

}  // namespace bnns::tool

#include "tools/bnns/train_command.h"

#include <bnns/bnns_extensions.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/bnns/digits.h"
#include "tools/bnns/idx.h"
#include "tools/bnns/interrupt.h"
#include "tools/bnns/report.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr int kInterrupted = 130;  // 128 + SIGINT, as a shell says it

DataSplit load_data(const TrainCommand& command) {
  if (!command.data.empty()) return read_idx_folder(command.data);
  const std::uint64_t seed = command.options.seed;
  const std::size_t threads = command.options.threads != 0 ? command.options.threads : BNNSExtGetNumThreads();
  return {draw_digits(seed, 0, command.train_size, threads), draw_digits(seed, 1, command.test_size, threads),
          "digits drawn by bnns, seed " + std::to_string(seed)};
}

// A report that cannot be written should be known before the training, not after it.
void check_report_path(const std::filesystem::path& report) {
  if (report.empty()) throw DataError("--report is empty, expected a file name (or --no-report)");
  const std::filesystem::path folder = report.has_parent_path() ? report.parent_path() : ".";
  std::error_code error;
  if (std::filesystem::is_directory(report, error))
    throw DataError(report.string() + ": is a folder, expected a file name");
  if (!std::filesystem::is_directory(folder, error)) throw DataError(report.string() + ": its folder does not exist");
  if (access(std::filesystem::exists(report, error) ? report.c_str() : folder.c_str(), W_OK) != 0) {
    throw DataError(report.string() + ": cannot be written here");
  }
}

// Why the report could not be written, or "". Half a report is worse than none.
std::string write_report(const std::string& file, const std::string& html) {
  errno = 0;
  std::FILE* out = std::fopen(file.c_str(), "wb");
  bool good = out != nullptr && std::fwrite(html.data(), 1, html.size(), out) == html.size();
  int reason = errno;
  if (out != nullptr && std::fclose(out) != 0 && good) good = false, reason = errno;
  if (good) return "";
  std::error_code error;
  if (out != nullptr && std::filesystem::is_regular_file(file, error)) std::filesystem::remove(file, error);
  return file + ": the report could not be written: " + std::strerror(reason);
}

std::string json_text(const TrainCommand& command, const DataSplit& data, const TrainResult& result, bool reported) {
  nlohmann::ordered_json out;
  out["model"] = command.options.model;
  out["epochs"] = command.options.epochs;
  out["interrupted"] = result.interrupted;
  out["train_loss"] = result.train_loss();
  out["test_accuracy"] = result.test_accuracy();
  out["seconds"] = result.seconds;
  out["threads"] = result.threads;
  out["weights_sha256"] = result.weights_sha256;
  out["digits_per_second"] = result.digits_per_second;
  out["train_digits"] = data.train.count();
  out["test_digits"] = data.test.count();
  out["seed"] = command.options.seed;
  out["isa"] = BNNSExtGetISA();
  out["version"] = BNNSExtVersion();
  out["report"] = reported ? nlohmann::ordered_json(command.report) : nlohmann::ordered_json();
  auto losses = nlohmann::ordered_json::array(), accuracies = nlohmann::ordered_json::array();
  for (const EpochFigures& e : result.epochs) {
    losses.push_back(e.train_loss);
    accuracies.push_back(e.test_accuracy);
  }
  out["epoch_loss"] = losses;
  out["epoch_accuracy"] = accuracies;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The figures, and where the report is.
void print_result(const TrainCommand& command, const DataSplit& data, const TrainResult& result, bool reported) {
  std::FILE* stream = command.json ? stderr : stdout;
  const std::size_t columns = terminal_columns(stream), total = data.test.count();
  const auto line = [&](const std::string& text) { put(stream, wrapped(text, columns, kNoteIndent) + "\n"); };
  if (result.interrupted) {
    line(format("stopped    by Ctrl-C in epoch %zu of %zu: these are the figures so far", result.epochs.size(),
                command.options.epochs));
  }
  line("accuracy   " + percent(result.test_accuracy()) + " on held-out digits (" +
       grouped(total - result.mistakes.size()) + " of " + grouped(total) + "), trained in " + duration(result.seconds));
  if (!reported) return;
  const std::string file = std::filesystem::absolute(command.report).lexically_normal().string();
  const bool fits = columns == 0 || file.size() + kNoteIndent <= columns;
  line("report     " + (fits ? file : command.report));
}

}  // namespace

int run_train(const TrainCommand& command) {
  if (!command.no_report) check_report_path(command.report);
  Progress progress(command.json ? stderr : stdout, command.quiet);
  const DataSplit data = load_data(command);
  check_pictures(command.options, data.train);
  progress.note("data       " + data.source + ": " + grouped(data.train.count()) + " to train on, " +
                grouped(data.test.count()) + " held out");
  const std::size_t threads = command.options.threads != 0 ? command.options.threads : BNNSExtGetNumThreads();
  progress.note(format("network    %s, Adam, batch %zu; %zu thread%s, %s",
                       network_name(command.options, data.train).c_str(), command.options.batch, threads,
                       threads == 1 ? "" : "s", BNNSExtGetISA()));
  if (lost_output() != 0) return 1;  // main says why; a training that nobody can read of is not begun
  const InterruptGuard guard;
  const TrainResult result = train(command.options, data, progress, &guard.interrupted());

  std::string why_not;
  if (!command.no_report) why_not = write_report(command.report, report_html(command.options, data, result));
  const bool reported = !command.no_report && why_not.empty();
  if (!command.json || !command.quiet) print_result(command, data, result, reported);
  if (command.json) put(stdout, json_text(command, data, result, reported));
  if (!why_not.empty()) throw std::runtime_error(why_not);
  return result.interrupted ? kInterrupted : 0;
}

}  // namespace bnns::tool

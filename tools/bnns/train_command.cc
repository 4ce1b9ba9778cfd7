#include "tools/bnns/train_command.h"

#include <bnns/bnns_extensions.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/digits.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/interrupt.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/report/report.h"
#include "tools/bnns/run_options.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"
#include "tools/bnns/trace_range.h"

namespace bnns::tool {
namespace {

constexpr int kInterrupted = 130;  // 128 + SIGINT, as a shell says it

DataSplit load_data(const TrainCommand& command) {
  const TraceRange range("data");
  const std::uint64_t seed = command.options.seed;
  if (!command.data.empty()) {
    return read_own_data(command.data, {seed, command.test_share, command.size, command.text, command.target,
                                        command.given.count("--test-share") != 0});
  }
  const std::size_t threads = command.options.threads != 0 ? command.options.threads : BNNSExtGetNumThreads();
  return {draw_digits(seed, 0, command.train_size, threads), draw_digits(seed, 1, command.test_size, threads),
          "digits drawn by bnns, seed " + std::to_string(seed), digit_names()};
}

// A file that cannot be written should be known before the training, not after it.
void check_output_path(const std::filesystem::path& file, bool replaced) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw DataError(file.string() + ": is a folder, expected a file name");
  if (!std::filesystem::is_directory(folder, error)) throw DataError(file.string() + ": its folder does not exist");
  const bool exists = std::filesystem::exists(file, error);
  if (replaced && exists && !std::filesystem::is_regular_file(file, error)) {
    throw DataError(file.string() + ": is no regular file, expected a file name");
  }
  if (access(exists && !replaced ? file.c_str() : folder.c_str(), W_OK) != 0) {
    throw DataError(file.string() + ": cannot be written here");
  }
}

void check_files(const TrainCommand& command) {
  if (!command.no_report) {
    if (command.report.empty()) throw DataError("--report is empty, expected a file name (or --no-report)");
    check_output_path(command.report, false);
  }
  for (const auto& [option, file] : {std::pair("--save", &command.save), std::pair("--load", &command.load)}) {
    if (command.given.count(option) != 0 && file->empty()) {
      throw DataError(std::string(option) + " is empty, expected a file name");
    }
  }
  if (!command.save.empty()) check_output_path(command.save, true);
  if (command.resume && command.save.empty()) throw DataError("--resume is for --save FILE, the run to go on with");
  if (command.given.count("--data") != 0 && command.data.empty()) {
    throw DataError("--data is empty, expected a folder or a CSV file");
  }
}

// Options that need data of a kind, looked at before there is data where that can be.
void check_options(TrainCommand& command) {
  TrainOptions& o = command.options;
  const auto given = [&](const char* option) { return command.given.count(option) != 0; };
  for (const char* option : {"--test-share", "--size", "--target"}) {
    if (given(option) && command.data.empty() && !command.resume) {
      throw DataError(std::string(option) + " is for --data (see bnns train --help)");
    }
  }
  if (given("--target") && command.target.empty()) throw DataError("--target is empty, expected a column");
  if (command.augment == "none" && given("--shift") && o.shift != 0) {
    throw DataError("--augment none excludes --shift");
  }
  if (command.augment == "none") o.shift = 0;
  o.mirror = command.augment == "mirror";
}

// What the user left open, by the data; and what does not go with it.
void fit_options(TrainCommand& command, const DataSplit& data) {
  TrainOptions& o = command.options;
  const auto given = [&](const char* option) { return command.given.count(option) != 0; };
  if (!data.train.is_pictures()) {
    for (const char* option : {"--shift", "--augment"}) {
      if (given(option) && (o.shift != 0 || o.mirror) && !command.resume) {
        throw DataError(std::string(option) + " is for pictures, and " + command.data + " holds none");
      }
    }
    o.shift = 0;
    command.augment = "none";
    if (!given("--model") && command.load.empty() && !command.resume) {
      o.model = command.text ? "lstm" : "mlp";
    }
  }
  if (o.model != "mlp" && o.model != "lstm" && given("--hidden")) {
    throw DataError("--hidden is for --model mlp and lstm (see bnns train --help)");
  }
  if (!data.train.is_text() && given("--generate")) throw DataError("--generate is for --model lstm");
  if (o.epochs == 0) o.epochs = default_epochs(o, data);
  check_items(o, data.train);
}

// Why the report could not be written, or "". Half a report is worse than none.
std::string write_report(const std::string& file, const TrainOptions& options, const DataSplit& data,
                         const TrainResult& result) {
  const TraceRange range("report");
  const std::string html = report_html(options, data, result);
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
  out["schedule"] = command.options.schedule;
  out["kept_epoch"] = result.kept_epoch() + 1;
  out["interrupted"] = result.interrupted;
  out["train_loss"] = result.train_loss();
  out["test_accuracy"] = result.test_accuracy();
  out["seconds"] = result.seconds;
  out["threads"] = result.threads;
  if (command.options.shards != 0) out["ranks"] = result.ranks, out["shards"] = command.options.shards;
  out["weights_sha256"] = result.weights_sha256;
  out["digits_per_second"] = result.digits_per_second;
  out["train_digits"] = data.train.labels.size();
  out["test_digits"] = data.test.labels.size();
  out["classes"] = data.classes;
  if (!result.generated.empty()) out["generated"] = text_of(result.generated, data.classes);
  out["seed"] = command.options.seed;
  out["isa"] = BNNSExtGetISA();
  out["version"] = BNNSExtVersion();
  const bool saved = !command.save.empty() && result.not_saved.empty();
  out["saved"] = saved ? nlohmann::ordered_json(command.save) : nlohmann::ordered_json();
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

// The ranks that train together, or none. Every batch of an epoch, the last too, is a multiple of the shards.
std::unique_ptr<Ranks> gather_ranks(TrainOptions& options) {
  if (options.shards == 0 && !Ranks::launched()) return nullptr;
  std::unique_ptr<Ranks> ranks = Ranks::create(options.shards);
  options.shards = ranks->all_shards();
  return ranks;
}

void check_batches(const TrainCommand& command, const DataSplit& data) {
  const TrainOptions& options = command.options;
  const std::size_t count = data.train.count(), batch = std::min(options.batch, count), rest = count % batch;
  if (batch % options.shards != 0) {
    throw DataError(format("--batch is %zu, expected a multiple of %zu = shards", batch, options.shards));
  }
  if (rest % options.shards != 0) {
    throw DataError(
        format("the last batch of an epoch has %zu examples = the rest of %zu / %zu, expected a multiple of "
               "%zu = shards: choose another %s, --batch or --shards",
               rest, count, batch, options.shards, command.data.empty() ? "--train-size" : "--test-share"));
  }
}

// The figures, and where the report is.
void print_result(const TrainCommand& command, const DataSplit& data, const TrainResult& result, bool reported) {
  std::FILE* stream = command.json ? stderr : stdout;
  const std::size_t columns = terminal_columns(stream), total = data.test.labels.size();
  const auto line = [&](const std::string& text) { put(stream, wrapped(text, columns, kNoteIndent) + "\n"); };
  if (result.interrupted) {
    line(format("stopped    by Ctrl-C in epoch %zu of %zu: these are the figures so far", result.epochs.size(),
                command.options.epochs));
  }
  if (result.kept_epoch() + 1 != result.epochs.size() || result.epochs.size() < command.options.epochs) {
    if (!result.interrupted) {
      line(format("stopped    after epoch %zu of %zu; kept are the weights of epoch %zu, the best",
                  result.epochs.size(), command.options.epochs, result.kept_epoch() + 1));
    }
  }
  line("accuracy   " + percent(result.test_accuracy()) + " on held-out " + data.noun + " (" +
       grouped(total - result.mistakes.size()) + " of " + grouped(total) + "), trained in " + duration(result.seconds));
  const auto file_line = [&](const char* what, const std::string& given) {
    const std::string file = std::filesystem::absolute(given).lexically_normal().string();
    const bool fits = columns == 0 || file.size() + kNoteIndent <= columns;
    line(what + (fits ? file : given));
  };
  if (!command.save.empty() && result.not_saved.empty()) {
    file_line("saved      ", command.save);
    if (result.interrupted) line("           bnns train --save FILE --resume goes on from there");
  }
  if (reported) file_line("report     ", command.report);
  if (!result.generated.empty()) put(stream, "\n" + text_of(result.generated, data.classes) + "\n");
}

}  // namespace

int run_train(TrainCommand command) {
  check_files(command);
  check_options(command);
  adopt_options(command);
  TrainOptions& options = command.options;
  const std::unique_ptr<Ranks> ranks = gather_ranks(options);
  const bool reports = ranks == nullptr || ranks->rank() == 0;
  Progress progress(command.json ? stderr : stdout, command.quiet || !reports);
  const bool said = command.given.count("--model") != 0 || command.resume || !command.load.empty();
  command.text = said ? options.model == "lstm" : std::filesystem::path(command.data).extension() == ".txt";
  const DataSplit data = load_data(command);
  fit_options(command, data);
  if (ranks != nullptr) check_batches(command, data);
  if (command.resume) check_same_digits(command, data);
  if (!command.load.empty()) check_same_classes(command, data);
  TrainFiles files{command.load, command.save, command.resume, {}};
  check_start(options, files, data.train);
  progress.note("data       " + data.source + ": " + grouped(data.train.labels.size()) + " to train on, " +
                grouped(data.test.labels.size()) + " held out");
  const std::size_t threads = options.threads != 0 ? options.threads : BNNSExtGetNumThreads();
  progress.note(format("network    %s, Adam, batch %zu; %zu thread%s, %s", network_name(options, data.train).c_str(),
                       options.batch, threads, threads == 1 ? "" : "s", BNNSExtGetISA()));
  if (ranks != nullptr) {
    progress.note(format("ranks      %zu rank%s, %zu shards in every batch", ranks->size(),
                         ranks->size() == 1 ? "" : "s", options.shards));
  }
  if (command.resume || !command.load.empty()) {
    progress.note("from       " + (command.resume ? command.save + ", the run goes on" : command.load));
  }
  if (lost_output() != 0) return 1;  // main says why; a training that nobody can read of is not begun
  if (!command.save.empty()) files.texts = run_texts(command, data);
  const InterruptGuard guard;
  const TrainResult result = train(options, data, progress, &guard.interrupted(), files, ranks.get());
  if (ranks != nullptr) ranks->finish();
  if (!reports) return result.interrupted ? kInterrupted : 0;

  std::string why_not;
  if (!command.no_report) why_not = write_report(command.report, options, data, result);
  const bool reported = !command.no_report && why_not.empty();
  if (!command.json || !command.quiet) print_result(command, data, result, reported);
  if (command.json) put(stdout, json_text(command, data, result, reported));
  if (!result.not_saved.empty()) throw std::runtime_error(result.not_saved);
  if (!why_not.empty()) throw std::runtime_error(why_not);
  return result.interrupted ? kInterrupted : 0;
}

}  // namespace bnns::tool

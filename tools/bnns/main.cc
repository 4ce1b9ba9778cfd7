// The command-line tool: options in, one of the subcommands out.
// Exit codes: 0 done, 1 the run failed, 2 the options or the data are wrong.

#include <bnns/bnns_extensions.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/bnns/digits.h"
#include "tools/bnns/idx.h"
#include "tools/bnns/info.h"
#include "tools/bnns/report.h"
#include "tools/bnns/text.h"
#include "tools/bnns/train.h"

namespace bnns::tool {
namespace {

constexpr int kFailed = 1, kBadInput = 2;

struct TrainCommand {
  TrainOptions options;
  std::string data;
  std::size_t train_size = 20000, test_size = 4000;
  std::string report = "bnns-report.html";
  bool no_report = false, json = false, quiet = false;
};

// One line on stderr whatever the text holds (a file name may contain anything).
int complain(std::string text, int code) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  std::fprintf(stderr, "bnns: %s\n", text.c_str());
  return code;
}

DataSplit load_data(const TrainCommand& command) {
  if (!command.data.empty()) return read_idx_folder(command.data);
  const std::uint64_t seed = command.options.seed;
  const std::size_t threads = command.options.threads != 0 ? command.options.threads : BNNSExtGetNumThreads();
  return {draw_digits(seed, 0, command.train_size, threads), draw_digits(seed, 1, command.test_size, threads),
          "digits drawn by bnns, seed " + std::to_string(seed)};
}

// A report that cannot be written should be known before the training, not after it.
void check_report_path(const std::filesystem::path& report) {
  const std::filesystem::path folder = report.has_parent_path() ? report.parent_path() : ".";
  std::error_code error;
  if (std::filesystem::is_directory(report, error))
    throw DataError(report.string() + ": is a folder, expected a file name");
  if (!std::filesystem::is_directory(folder, error)) throw DataError(report.string() + ": its folder does not exist");
  if (access(std::filesystem::exists(report, error) ? report.c_str() : folder.c_str(), W_OK) != 0) {
    throw DataError(report.string() + ": cannot be written here");
  }
}

void write_report(const std::string& file, const std::string& html) {
  std::ofstream out(file, std::ios::binary);
  out << html;
  out.close();
  if (!out) throw std::runtime_error(file + ": could not be written");
}

void print_json(const TrainCommand& command, const DataSplit& data, const TrainResult& result) {
  nlohmann::ordered_json out;
  out["model"] = command.options.model;
  out["epochs"] = command.options.epochs;
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
  out["report"] = command.no_report ? nlohmann::ordered_json() : nlohmann::ordered_json(command.report);
  auto& losses = out["epoch_loss"] = nlohmann::ordered_json::array();
  auto& accuracies = out["epoch_accuracy"] = nlohmann::ordered_json::array();
  for (const EpochFigures& e : result.epochs) {
    losses.push_back(e.train_loss);
    accuracies.push_back(e.test_accuracy);
  }
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

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
  const TrainResult result = train(command.options, data, progress);
  if (!command.no_report) write_report(command.report, report_html(command.options, data, result));

  std::FILE* stream = command.json ? stderr : stdout;
  if (!command.json || !command.quiet) {
    const std::size_t total = data.test.count();
    std::fprintf(stream, "accuracy   %s on held-out digits (%s of %s), trained in %s\n",
                 percent(result.test_accuracy()).c_str(), grouped(total - result.mistakes.size()).c_str(),
                 grouped(total).c_str(), duration(result.seconds).c_str());
    if (!command.no_report) {
      std::fprintf(stream, "report     %s\n", std::filesystem::absolute(command.report).lexically_normal().c_str());
    }
  }
  if (command.json) print_json(command, data, result);
  return 0;
}

// Help lines with the option, what it takes, what it means and its default; the rules are in the error messages.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_default_str();
    return option->get_description() + (value.empty() ? "" : " [" + value + "]");
  }
};

// CLI::Range lets NaN through (it is neither below nor above), and its description would crowd the help.
CLI::Validator range(double low, double high) {
  const auto check = [low, high](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool good = *end == '\0' && value >= low && value <= high;
    return good ? std::string() : format("%s is not in the range %.9g to %.9g", text.c_str(), low, high);
  };
  return CLI::Validator(check, "");
}

void add_train_options(CLI::App& app, TrainCommand& c) {
  TrainOptions& o = c.options;
  const auto number = [&](const char* name, auto& value, const char* meaning, double low, double high) {
    return app.add_option(name, value, meaning)->check(range(low, high))->type_name("N")->capture_default_str();
  };
  app.add_option("--model", o.model, "cnn: two convolutions with batch normalization; mlp: one hidden layer")
      ->check(CLI::IsMember({"cnn", "mlp"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  number("--epochs", o.epochs, "Passes over the training digits", 1, 10000)
      ->default_str(format("%zu, mlp %zu", default_epochs("cnn"), default_epochs("mlp")));
  number("--batch", o.batch, "Digits per step", 1, 16384);
  number("--hidden", o.hidden, "Width of the hidden layer (mlp)", 1, 16384);
  number("--lr", o.learning_rate, "Adam's learning rate; falls to 0 on a straight line", 1e-8, 10)
      ->default_str("0.002");
  number("--shift", o.shift, "Move training digits by up to N pixels", 0, 4);
  app.add_option("--seed", o.seed, "Same seed, same digits, order and weights")->type_name("N")->capture_default_str();
  number("--threads", o.threads, "Changes the time, not the result; 0 = all there are", 0, 1024);
  auto* data =
      app.add_option("--data", c.data, "Folder with IDX files to use instead of drawn digits")->type_name("DIR");
  number("--train-size", c.train_size, "Drawn digits to train on", 10, 1000000)->excludes(data);
  number("--test-size", c.test_size, "Drawn digits to hold out", 10, 1000000)->excludes(data);
  auto* report =
      app.add_option("--report", c.report, "Where the HTML report goes")->type_name("FILE")->capture_default_str();
  app.add_flag("--no-report", c.no_report, "Write no report")->excludes(report);
  app.add_flag("--json", c.json, "Print the figures as one JSON object on stdout, progress on stderr");
  app.add_flag("--quiet", c.quiet, "Print the result only");
}

int run(int argc, char** argv) {
  CLI::App app("OpenBNNS: the classic BNNS neural-network API on Linux.", "bnns");
  app.set_version_flag("--version", std::string("bnns ") + BNNSExtVersion());
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "Environment: BNNS_NUM_THREADS, BNNS_MAX_ISA (sse4, avx2, avx512, avx512_bf16, amx), BNNS_VERBOSE=1, NO_COLOR.");

  TrainCommand command;
  CLI::App* train = app.add_subcommand("train", "Train a digit classifier and write a report");
  train->footer(
      "Without --data the digits are drawn by the tool itself. A folder holds the train and t10k pairs\n"
      "(train-images-idx3-ubyte, train-labels-idx1-ubyte, ..., each plain or .gz); a single pair is split\n"
      "80 : 20 in file order. Exit codes: 0 done, 1 the run failed, 2 the options or the data are wrong.");
  add_train_options(*train, command);

  bool json = false, all = false;
  CLI::App* info = app.add_subcommand("info", "Show version, instruction set, threads and functions");
  info->add_flag("--json", json, "As one JSON object");
  info->add_flag("--all", all, "List every function");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return complain(std::string(error.what()) + " (see bnns --help)", kBadInput);
  }
  if (info->parsed()) {
    print_info(json, all);
    return 0;
  }
  if (command.options.epochs == 0) command.options.epochs = default_epochs(command.options.model);
  if (command.options.model != "mlp" && train->count("--hidden") != 0) {
    return complain("--hidden is for --model mlp (see bnns train --help)", kBadInput);
  }
  return run_train(command);
}

}  // namespace
}  // namespace bnns::tool

int main(int argc, char** argv) {
  using namespace bnns::tool;
  try {
    return run(argc, argv);
  } catch (const DataError& error) {
    return complain(error.what(), kBadInput);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}

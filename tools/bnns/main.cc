// The command-line tool: options in, one of the subcommands out.
// Exit codes: 0 done, 1 the run failed or its output was lost, 2 the options or the data are wrong, 130 Ctrl-C.

#include <bnns/bnns_extensions.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tools/bnns/idx.h"
#include "tools/bnns/info.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"
#include "tools/bnns/train_command.h"

namespace bnns::tool {
namespace {

constexpr int kFailed = 1, kBadInput = 2;

// One line on stderr whatever the text holds (a file name may contain anything).
int complain(std::string text, int code) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  put(stderr, wrapped("bnns: " + text, terminal_columns(stderr), 6) + "\n");
  return code;
}

// Edits that turn one word into the other: letters put in, taken out or changed.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string closest(const std::string& word, const std::vector<std::string>& known) {
  return *std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return distance(word, a) < distance(word, b);
  });
}

// What was not understood and, where it is an option, the one that was probably meant.
std::string explained(const CLI::ParseError& error, const CLI::App& app, const CLI::App& train) {
  const auto extras = app.remaining(true);
  const auto option =
      std::find_if(extras.begin(), extras.end(), [](const std::string& e) { return e.rfind("--", 0) == 0; });
  if (option == extras.end() || !app.got_subcommand("train")) return error.what();
  std::vector<std::string> names;
  for (const CLI::Option* known : train.get_options()) names.push_back("--" + known->get_lnames().at(0));
  const std::string near = closest(*option, names), text = *option + " is not an option of bnns train";
  return distance(*option, near) <= 2 ? text + "; did you mean " + near + "?" : text;
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
  number("--threads", o.threads, "Changes the time, not the result; 0 = all there are", 0, 256);
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
  const std::size_t columns = terminal_columns(stdout);
  const auto formatter = std::make_shared<HelpFormatter>();
  if (columns != 0 && columns < 80) formatter->column_width(6);  // meanings below their options
  app.formatter(formatter);
  app.footer(
      "Environment: BNNS_NUM_THREADS, BNNS_MAX_ISA (sse4, avx2, avx512, avx512_bf16, amx), BNNS_VERBOSE (0, error, "
      "all), NO_COLOR.");

  TrainCommand command;
  CLI::App* train = app.add_subcommand("train", "Train a digit classifier and write a report");
  train->footer(
      "Without --data the digits are drawn by the tool itself. A folder holds the train and t10k pairs\n"
      "(train-images-idx3-ubyte, train-labels-idx1-ubyte, ..., each plain or .gz); a single pair is split\n"
      "80 : 20 in file order. Ctrl-C ends the training and reports what there is. Exit codes: 0 done,\n"
      "1 the run failed or its output was lost, 2 the options or the data are wrong, 130 Ctrl-C.");
  add_train_options(*train, command);

  bool json = false, all = false;
  CLI::App* info = app.add_subcommand("info", "Show version, instruction set, threads and functions");
  info->add_flag("--json", json, "As one JSON object");
  info->add_flag("--all", all, "List every function");

  const std::string word = argc > 1 ? argv[1] : "";
  if (!word.empty() && word[0] != '-' && word != "train" && word != "info") {
    return complain(word + " is not a command of bnns; did you mean " + closest(word, {"train", "info"}) +
                        "? (train or info; see bnns --help)",
                    kBadInput);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const std::string page = word == "train" || word == "info" ? "bnns " + word : "bnns";
      return complain(explained(error, app, *train) + " (see " + page + " --help)", kBadInput);
    }
    std::ostringstream out;  // --help, --version
    app.exit(error, out, out);
    put(stdout, wrapped(out.str(), columns, 0));
    return 0;
  }
  if (info->parsed()) {
    print_info(json, all);
    return 0;
  }
  if (command.options.epochs == 0) command.options.epochs = default_epochs(command.options.model);
  if (command.options.model != "mlp" && train->count("--hidden") != 0) {
    return complain("--hidden is for --model mlp (see bnns train --help)", kBadInput);
  }
  if (train->count("--data") != 0 && command.data.empty()) {
    return complain("--data is empty, expected a folder with IDX files", kBadInput);
  }
  return run_train(command);
}

}  // namespace
}  // namespace bnns::tool

int main(int argc, char** argv) {
  using namespace bnns::tool;
  try {
    const int code = run(argc, argv);
    if (lost_output() == 0) return code;
    return complain(std::string("output was lost: stdout: ") + std::strerror(lost_output()), kFailed);
  } catch (const DataError& error) {
    return complain(error.what(), kBadInput);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}

// The command-line tool: options in, one of the subcommands out.
// Exit codes: 0 done, 1 the run failed or its output was lost, 2 the options or the data are wrong, 130 Ctrl-C.

#include <bnns/bnns_extensions.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tools/bnns/bench/bench_command.h"
#include "tools/bnns/bench/families.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/explain/explain_command.h"
#include "tools/bnns/explain/layers.h"
#include "tools/bnns/info.h"
#include "tools/bnns/options.h"
#include "tools/bnns/predict_command.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"
#include "tools/bnns/train_command.h"

namespace bnns::tool {
namespace {

constexpr int kFailed = 1, kBadInput = 2;
constexpr char kEnvironment[] =
    "Environment: BNNS_NUM_THREADS, BNNS_MAX_ISA (sse4, avx2, avx512, avx512_bf16, amx), BNNS_VERBOSE (0, error, "
    "all), BNNS_TRACE (file.json), BNNS_PROFILE (1), NO_COLOR.";

// One line on stderr whatever the text holds (a file name may contain anything).
int complain(std::string text, int code) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  put(stderr, wrapped("bnns: " + text, terminal_columns(stderr), 6) + "\n");
  return code;
}

Options train_options(TrainCommand& c, const std::string& epochs) {
  TrainOptions& o = c.options;
  Options all("train", "Train on digits, pictures, a table or a text and write a report", "[OPTIONS]",
              "Without --data the digits are drawn by the tool itself. PATH is a folder with a sub-folder of PNG or\n"
              "JPEG files for each class, or with train and test, which have such sub-folders; a CSV file of numbers\n"
              "with a class in each row; a text (.txt), whose next characters an lstm learns; or a folder of IDX\n"
              "files (train-images-idx3-ubyte, train-labels-idx1-ubyte, and t10k-..., each plain or .gz). Where there\n"
              "is nothing to test on, a part is held out. Schedules: linear and cosine fall to 0, step is a tenth\n"
              "after half of the run and a hundredth after three quarters.\n"
              "Ctrl-C ends the training and reports what there is; with --save the run can be resumed, and ends with\n"
              "the same weights. Files of weights are safetensors, with PyTorch's names. mpirun -n 4 bnns train:\n"
              "ranks share each batch, and any number of them ends with the same weights.\n"
              "Exit codes: 0 done, 1 the run failed or its output was lost, 2 the options or the data are wrong,\n"
              "130 Ctrl-C.");
  all.choice("--model", o.model, "cnn, resnet (pictures), mlp (one hidden layer), lstm (text)",
             {"cnn", "mlp", "resnet", "lstm"});
  all.number("--epochs", o.epochs, "Passes over the training part", 1, 10000, epochs.c_str());
  all.number("--batch", o.batch, "Examples per step", 1, 16384);
  all.number("--hidden", o.hidden, "Width of the hidden layer (mlp, lstm)", 1, kMaxHidden);
  all.number("--lr", o.learning_rate, "Adam's learning rate at the start", 1e-8, 10);
  all.choice("--schedule", o.schedule, "What becomes of it: linear, constant, step or cosine",
             {"linear", "constant", "step", "cosine"});
  all.number("--patience", o.patience, "End after N epochs without a better accuracy and keep the best", 0, 10000,
             "never");
  all.choice("--augment", c.augment, "none, shift, or mirror: shift, and flip half of the pictures",
             {"none", "shift", "mirror"});
  all.number("--shift", o.shift, "Move training pictures by up to N pixels", 0, 4);
  all.number("--seed", o.seed, "Same seed, same data, order and weights", 0, SIZE_MAX);
  all.number("--threads", o.threads, "Changes the time, not the result; 0 = all there are", 0, 256);
  all.number("--shards", o.shards, "Parts of a batch, for mpirun; a power of two", 1, kMaxShards, "8 under mpirun");
  all.text("--data", "PATH", c.data, "Folder, CSV file or text to use instead of drawn digits");
  all.number("--test-share", c.test_share, "Part to hold out of data without a part for tests", kMinShare, kMaxShare);
  all.number("--size", c.size, "Scale pictures to N x N pixels", 4, kMaxSize, "all must have one size");
  all.text("--target", "COLUMN", c.target, "Column of the class, a name or a number from 1");
  all.number("--generate", o.generate, "Write N characters at the end (lstm)", 1, 100000, "none");
  all.number("--train-size", c.train_size, "Drawn digits to train on", 10, 1000000);
  all.number("--test-size", c.test_size, "Drawn digits to hold out", 10, 1000000);
  all.text("--save", "FILE", c.save, "Where the weights go, after every epoch and at the end");
  all.text("--load", "FILE", c.load, "Weights to start from");
  all.flag("--resume", c.resume, "Go on with the unfinished run in the file of --save");
  all.text("--report", "FILE", c.report, "Where the HTML report goes");
  all.flag("--no-report", c.no_report, "Write no report");
  all.flag("--json", c.json, "Print the figures as one JSON object on stdout, progress on stderr");
  all.flag("--quiet", c.quiet, "Print the result only");
  all.excludes("--data", "--train-size");
  all.excludes("--data", "--test-size");
  all.excludes("--report", "--no-report");
  all.excludes("--resume", "--load");
  return all;
}

Options predict_options(PredictCommand& c) {
  Options all("predict", "Say which class pictures or rows have, or go on with a text", "[OPTIONS] WEIGHTS FILES...",
              "Prints the three most likely classes of each one with their probabilities and the accuracy, where\n"
              "the labels of an IDX file lie beside it, a CSV file has a column of classes, or a folder has a\n"
              "sub-folder of pictures for each class. Pictures have the size that the network was trained on, or\n"
              "are scaled as the training's were. Digits are light on dark.\n"
              "Exit codes as of bnns train.");
  all.word("WEIGHTS", c.weights, "The file of bnns train --save, or a PyTorch file with the same names");
  all.words("FILES", c.files, "PNG and JPEG files, folders of them, files of IDX pictures, CSV files, texts");
  all.number("--generate", c.generate, "Go on with each text for N characters", 1, 100000, "none");
  all.number("--seed", c.seed, "Same seed, same characters", 0, SIZE_MAX);
  all.flag("--invert", c.invert, "Exchange light and dark");
  all.number("--threads", c.threads, "Changes the time, not the result; 0 = all there are", 0, 256);
  all.flag("--json", c.json, "Print one JSON object");
  all.flag("--quiet", c.quiet, "Print the accuracy only; where there are no labels, the class of each one");
  return all;
}

Options bench_options(BenchCommand& c) {
  Options all(
      "bench", "Measure how fast operators are on this machine", "[OPTIONS] [FAMILY]",
      "Times layers of all families, of one (convolution, pooling, ...), or one that you name. A rate is in\n"
      "GFLOP/s where a call computes, in GB/s where it moves numbers. Times are medians; what else runs on the\n"
      "machine is in them. Exit codes as of bnns train.\n" +
          wrapped("Families: " + listed(family_names()) + ".", 100, 0));
  all.optional_word("FAMILY", c.family, "Layers of one family only");
  all.text("--problem", "LINE", c.problem, "One problem, as BNNS_VERBOSE=1 or a refusal prints it");
  all.number("--threads", c.threads, "Changes the time, not the result; 0 = all there are", 0, 256);
  all.number("--seconds", c.seconds, "For each line of the table", 1e-6, 1e4);
  all.text("--json", "FILE", c.json, "Write the figures as one JSON object; - is stdout, without the table");
  all.excludes("FAMILY", "--problem");
  return all;
}

Options explain_options(ExplainCommand& c) {
  Options all(
      "explain", "Say which algorithms a layer would take, or why it is refused", "[OPTIONS] [FILE]",
      "A description has the members of the C structures by name, and enumerators with or without their prefix;\n"
      "what is left out is zero. Nothing is computed. Exit codes: 0 accepted, 1 refused, 2 the options or the\n"
      "description are wrong.\n" +
          wrapped("Layers: " + listed(layer_names()) + ".", 100, 0));
  all.optional_word("FILE", c.file, "A description in JSON; - is stdin");
  all.text("--example", "LAYER", c.example, "Print a complete description of such a layer, to start from");
  all.flag("--json", c.json, "Answer with one JSON object");
  all.excludes("FILE", "--example");
  return all;
}

int run(const std::vector<std::string>& arguments) {
  TrainCommand training;
  PredictCommand prediction;
  BenchCommand benchmark;
  ExplainCommand explanation;
  bool json = false, everything = false;
  const std::string epochs = format("%zu, mlp %zu, more for little data", default_epochs("cnn"), default_epochs("mlp"));
  Options info("info", "Show version, instruction set, threads and functions", "[OPTIONS]", kEnvironment);
  info.flag("--json", json, "As one JSON object");
  info.flag("--all", everything, "List every function");
  Options commands[] = {train_options(training, epochs), predict_options(prediction), info, bench_options(benchmark),
                        explain_options(explanation)};

  const std::size_t columns = terminal_columns(stdout);
  const bool narrow = columns != 0 && columns < 80;  // meanings below their options
  const auto print = [&](const std::string& text) {
    put(stdout, wrapped(text, columns, 0));
    return 0;
  };
  if (arguments.empty() || arguments[0].empty())
    return complain("A subcommand is required (see bnns --help)", kBadInput);
  const std::string& word = arguments[0];
  if (word == "--version") return print(std::string("bnns ") + BNNSExtVersion() + "\n");
  if (word == "-h" || word == "--help") {
    std::string text =
        "OpenBNNS: the classic BNNS neural-network API on Linux.\nUsage: bnns [OPTIONS] SUBCOMMAND\n\nOptions:\n" +
        help_line("-h,--help", "Print this help message and exit", narrow) +
        help_line("--version", "Display program version information and exit", narrow) + "\nSubcommands:\n";
    for (const Options& each : commands) text += help_line(each.name(), each.about(), narrow);
    return print(text + "\n" + kEnvironment + "\n");
  }
  for (Options& each : commands) {
    if (word != each.name()) continue;
    try {
      if (!each.parse({arguments.begin() + 1, arguments.end()})) return print(each.help(narrow));
      if (word == "bench") {
        benchmark.one_problem = each.given().count("--problem") != 0;
        return run_bench(benchmark);
      }
      if (word == "explain") {
        if (each.given().empty() || each.given() == std::set<std::string>{"--json"}) {
          throw UsageError("FILE is missing: a description in JSON, or --example");
        }
        return run_explain(explanation);
      }
    } catch (const UsageError& error) {
      return complain(error.what() + (" (see bnns " + word + " --help)"), kBadInput);
    }
    if (word == "info") return print_info(json, everything), 0;
    if (word == "predict") return run_predict(prediction);
    training.given = each.given();
    return run_train(training);
  }
  if (!word.empty() && word[0] == '-') return complain(word + " is not an option of bnns (see bnns --help)", kBadInput);
  std::vector<std::string> names;
  for (const Options& each : commands) names.push_back(each.name());
  return complain(word + " is not a command of bnns; did you mean " + closest(word, names) + "? (" + listed(names) +
                      "; see bnns --help)",
                  kBadInput);
}

}  // namespace
}  // namespace bnns::tool

int main(int argc, char** argv) {
  using namespace bnns::tool;
  try {
    const int code = run({argv + (argc > 0 ? 1 : 0), argv + argc});
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

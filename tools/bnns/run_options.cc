#include "tools/bnns/run_options.h"

#include <cstdlib>
#include <filesystem>

#include "tools/bnns/data/idx.h"
#include "tools/bnns/data/sha256.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

std::string digest(const DataSplit& data) {
  std::string text;
  for (const Dataset* set : {&data.train, &data.test}) {
    text += format("%zu x %zu ", set->rows, set->columns) + sha256_hex(set->pixels.data(), set->pixels.size()) +
            sha256_hex(set->labels.data(), set->labels.size());
  }
  return sha256_hex(text.data(), text.size());
}

// The fewest digits that give the same float again.
std::string rate_text(float rate) {
  std::string text;
  for (int digits = 1; digits <= 9; ++digits) {
    text = format("%.*g", digits, static_cast<double>(rate));
    if (std::strtof(text.c_str(), nullptr) == rate) break;
  }
  return text;
}

[[noreturn]] void refuse_option(const std::string& option, const std::string& given, const std::string& there,
                                const std::string& file) {
  throw DataError(option + " is " + given + ", expected " + there + " as in " + file);
}

// One option of the file: taken, or compared with what the user gave.
void adopt(const WeightsFile& file, const TrainCommand& command, const char* option, const char* key,
           std::size_t& value, std::size_t low, std::size_t high) {
  const std::size_t there = file.number(key);
  if (there < low || there > high) {
    throw DataError(file.path() + format(": %s is %zu, expected %zu to %zu", key, there, low, high));
  }
  if (command.given.count(option) != 0 && value != there) {
    refuse_option(option, std::to_string(value), std::to_string(there), file.path());
  }
  value = there;
}

void adopt_model(const WeightsFile& file, TrainCommand& command) {
  TrainOptions& o = command.options;
  const std::string model = file.model();
  if (command.given.count("--model") != 0 && o.model != model) refuse_option("--model", o.model, model, file.path());
  o.model = model;
  if (model != "mlp") return;
  const std::size_t hidden = file.hidden();
  if (command.given.count("--hidden") != 0 && o.hidden != hidden) {
    refuse_option("--hidden", std::to_string(o.hidden), std::to_string(hidden), file.path());
  }
  if (hidden < 1 || hidden > kMaxHidden) {
    throw DataError(file.path() + format(": fc1.weight has %zu rows, expected 1 to %zu", hidden, kMaxHidden));
  }
  o.hidden = hidden;
}

void adopt_run(const WeightsFile& file, TrainCommand& command) {
  TrainOptions& o = command.options;
  if (file.text("epochs") == nullptr) {
    throw DataError(file.path() + ": holds no run of bnns train, expected one that --save wrote");
  }
  if (file.text("steps") == nullptr) {
    throw DataError(file.path() +
                    ": the run is finished, there is nothing to resume; --load starts a new run from its weights");
  }
  std::size_t seed = o.seed;
  adopt(file, command, "--epochs", "epochs", o.epochs, 1, 10000);
  adopt(file, command, "--batch", "batch", o.batch, 1, 16384);
  adopt(file, command, "--shift", "shift", o.shift, 0, 4);
  adopt(file, command, "--seed", "seed", seed, 0, SIZE_MAX);
  o.seed = seed;
  adopt(file, command, "--train-size", "train_size", command.train_size, 10, 1000000);
  adopt(file, command, "--test-size", "test_size", command.test_size, 10, 1000000);
  const char* const rate = file.text("lr");
  const float there = rate != nullptr ? std::strtof(rate, nullptr) : 0.0f;
  if (!(there >= 1e-8f && there <= 10.0f)) throw DataError(file.path() + ": lr is damaged, expected 1e-08 to 10");
  if (command.given.count("--lr") != 0 && rate_text(o.learning_rate) != rate_text(there)) {
    refuse_option("--lr", rate_text(o.learning_rate), rate_text(there), file.path());
  }
  o.learning_rate = there;
  if (file.text("shards") != nullptr) {
    adopt(file, command, "--shards", "shards", o.shards, 1, kMaxShards);
  } else if (o.shards != 0 || Ranks::launched()) {
    throw DataError(file.path() + ": the run was started without mpirun and --shards, expected to go on without");
  }
  const char* const data = file.text("data");
  if (command.given.count("--data") == 0 && data != nullptr) command.data = data;
}

}  // namespace

Texts run_texts(const TrainCommand& command, const DataSplit& data) {
  const TrainOptions& o = command.options;
  Texts texts{{"model", o.model},
              {"rows", std::to_string(data.train.rows)},
              {"columns", std::to_string(data.train.columns)},
              {"epochs", std::to_string(o.epochs)},
              {"batch", std::to_string(o.batch)},
              {"lr", rate_text(o.learning_rate)},
              {"shift", std::to_string(o.shift)},
              {"seed", std::to_string(o.seed)},
              {"train_size", std::to_string(command.train_size)},
              {"test_size", std::to_string(command.test_size)},
              {"data", command.data.empty() ? "" : std::filesystem::absolute(command.data).lexically_normal().string()},
              {"data_sha256", digest(data)}};
  if (o.shards != 0) texts["shards"] = std::to_string(o.shards);
  return texts;
}

void adopt_options(TrainCommand& command) {
  if (command.resume) {
    const WeightsFile file(command.save);
    adopt_model(file, command);
    adopt_run(file, command);
  } else if (!command.load.empty()) {
    adopt_model(WeightsFile(command.load), command);
  }
}

void check_same_digits(const TrainCommand& command, const DataSplit& data) {
  const WeightsFile file(command.save);
  const char* const there = file.text("data_sha256");
  if (there == nullptr || digest(data) != there) {
    throw DataError(data.source + ": these are not the digits that the run in " + command.save + " was trained on");
  }
}

}  // namespace bnns::tool

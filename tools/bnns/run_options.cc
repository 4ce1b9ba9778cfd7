#include "tools/bnns/run_options.h"

#include <cstdlib>
#include <filesystem>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/sha256.h"
#include "tools/bnns/model/item_texts.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

std::string digest(const DataSplit& data) {
  std::string text;
  for (const Dataset* set : {&data.train, &data.test}) {
    text += format("%zu x %zu x %zu ", set->channels, set->rows, set->columns) +
            sha256_hex(set->pixels.data(), set->pixels.size()) +
            sha256_hex(set->values.data(), set->values.size() * sizeof(float)) +
            sha256_hex(set->labels.data(), set->labels.size() * sizeof(set->labels[0]));
  }
  for (const std::string& name : data.classes) text += "/" + name;
  return sha256_hex(text.data(), text.size());
}

// The fewest digits that give the same float again.
std::string number_text(float number) {
  std::string text;
  for (int digits = 1; digits <= 9; ++digits) {
    text = format("%.*g", digits, static_cast<double>(number));
    if (std::strtof(text.c_str(), nullptr) == number) break;
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

// An option with words for values. Files that were written before there was such an option do not have it.
void adopt(const WeightsFile& file, const TrainCommand& command, const char* option, const char* key,
           std::string& value) {
  const char* const there = file.text(key);
  if (there == nullptr) return;
  if (command.given.count(option) != 0 && value != there) refuse_option(option, value, there, file.path());
  value = there;
}

void adopt(const WeightsFile& file, const TrainCommand& command, const char* option, const char* key, float& value,
           double low, double high) {
  const char* const text = file.text(key);
  const double number = text != nullptr ? std::strtod(text, nullptr) : 0;
  if (!(number >= low && number <= high)) {
    throw DataError(file.path() + format(": %s is damaged, expected %g to %g", key, low, high));
  }
  const auto there = static_cast<float>(number);
  if (command.given.count(option) != 0 && number_text(value) != number_text(there)) {
    refuse_option(option, number_text(value), number_text(there), file.path());
  }
  value = there;
}

void adopt_model(const WeightsFile& file, TrainCommand& command) {
  TrainOptions& o = command.options;
  const std::string model = file.model();
  if (command.given.count("--model") != 0 && o.model != model) refuse_option("--model", o.model, model, file.path());
  o.model = model;
  if (model != "mlp" && model != "lstm") return;
  const std::size_t hidden = file.hidden();
  if (command.given.count("--hidden") != 0 && o.hidden != hidden) {
    refuse_option("--hidden", std::to_string(o.hidden), std::to_string(hidden), file.path());
  }
  if (hidden < 1 || hidden > kMaxHidden) {
    throw DataError(file.path() + format(": the hidden layer has %zu units, expected 1 to %zu", hidden, kMaxHidden));
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
  adopt(file, command, "--lr", "lr", o.learning_rate, 1e-8, 10);
  adopt(file, command, "--schedule", "schedule", o.schedule);
  adopt(file, command, "--augment", "augment", command.augment);
  o.mirror = command.augment == "mirror";
  adopt(file, command, "--target", "target_option", command.target);
  if (file.text("patience") != nullptr) adopt(file, command, "--patience", "patience", o.patience, 0, 10000);
  if (file.text("size") != nullptr) adopt(file, command, "--size", "size", command.size, 0, kMaxSize);
  if (file.text("test_share") != nullptr) {
    adopt(file, command, "--test-share", "test_share", command.test_share, kMinShare, kMaxShare);
  }
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
              {"epochs", std::to_string(o.epochs)},
              {"batch", std::to_string(o.batch)},
              {"lr", number_text(o.learning_rate)},
              {"schedule", o.schedule},
              {"patience", std::to_string(o.patience)},
              {"augment", command.augment},
              {"test_share", number_text(command.test_share)},
              {"size", std::to_string(command.size)},
              {"target_option", command.target},
              {"shift", std::to_string(o.shift)},
              {"seed", std::to_string(o.seed)},
              {"train_size", std::to_string(command.train_size)},
              {"test_size", std::to_string(command.test_size)},
              {"data", command.data.empty() ? "" : std::filesystem::absolute(command.data).lexically_normal().string()},
              {"data_sha256", digest(data)}};
  texts.merge(item_texts(data, command.size));
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
    throw DataError(data.source + ": these are not the " + data.noun + " that the run in " + command.save +
                    " was trained on");
  }
}

void check_same_classes(const TrainCommand& command, const DataSplit& data) {
  const WeightsFile file(command.load);
  const std::vector<std::string> there = read_item_kind(file).classes;
  if (there.size() != data.classes.size()) {
    throw DataError(file.path() + format(": has %zu classes, expected %zu as in ", there.size(), data.classes.size()) +
                    data.source);
  }
  for (std::size_t k = 0; k < there.size() && file.text("classes") != nullptr; ++k) {
    if (there[k] != data.classes[k]) {
      throw DataError(file.path() + format(": class %zu is ", k) + there[k] + ", expected " + data.classes[k] +
                      " as in " + data.source);
    }
  }
}

}  // namespace bnns::tool

#include "tools/bnns/model/item_texts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxTextSteps = 4096;

template <class T>
std::string text_of(const std::vector<T>& list) {
  return json(list).dump(-1, ' ', false, json::error_handler_t::replace);
}

// A list of the file; nothing where there is no such key.
template <class T>
std::vector<T> list_of(const WeightsFile& file, const char* key) {
  const char* const text = file.text(key);
  if (text == nullptr) return {};
  const json list = json::parse(text, nullptr, false);
  std::vector<T> all;
  bool good = list.is_array();
  for (const json& each : list) {
    if constexpr (std::is_same_v<T, std::string>) {
      good = good && each.is_string();
      if (good) all.push_back(printable(each.get<std::string>()));
    } else {
      good = good && each.is_number();
      if (good) all.push_back(each.get<T>());
    }
  }
  if (!good) throw DataError(file.path() + ": " + key + " is damaged, expected a list");
  return all;
}

}  // namespace

Texts item_texts(const DataSplit& data, std::size_t size) {
  Texts texts{{"rows", std::to_string(data.train.rows)},
              {"columns", std::to_string(data.train.columns)},
              {"channels", std::to_string(data.train.channels)},
              {"classes", text_of(data.classes)}};
  if (size != 0) texts["scaled"] = "1";
  if (data.columns.count() == 0) return texts;
  texts["column_names"] = text_of(data.columns.names);
  texts["target"] = data.columns.target;
  texts["target_at"] = std::to_string(data.columns.target_at);
  texts["scale_mean"] = text_of(data.columns.mean);
  texts["scale_deviation"] = text_of(data.columns.deviation);
  return texts;
}

ItemKind read_item_kind(const WeightsFile& file) {
  ItemKind kind;
  kind.like.classes = file.classes();
  if (kind.like.classes < 2 || kind.like.classes > kMaxClasses) {
    throw DataError(file.path() + format(": has %zu classes, expected 2 to %zu", kind.like.classes, kMaxClasses));
  }
  kind.classes = list_of<std::string>(file, "classes");
  if (file.text("classes") == nullptr) {
    for (std::size_t k = 0; k < kind.like.classes; ++k) kind.classes.push_back(std::to_string(k));
  }
  if (kind.classes.size() != kind.like.classes) {
    throw DataError(file.path() + format(": classes has %zu names, expected %zu = rows of the last layer",
                                         kind.classes.size(), kind.like.classes));
  }
  if (file.text("rows") != nullptr) {
    kind.sized = true;
    kind.like.rows = file.number("rows"), kind.like.columns = file.number("columns");
  }
  if (file.text("channels") != nullptr) kind.like.channels = file.number("channels");
  if (file.model() == "lstm") {
    if (!kind.sized) kind.like.rows = 1, kind.like.columns = kTextSteps;
    kind.sized = true, kind.like.steps = kind.like.columns;
    if (kind.like.steps < 2 || kind.like.steps > kMaxTextSteps || kind.like.classes > 256) {
      throw DataError(file.path() + ": columns is damaged, expected the steps of a text");
    }
  } else if (file.model() != "mlp")
    kind.like.channels = file.shape("conv1.weight")[1];
  if (kind.like.channels != 1 && kind.like.channels != 3) {
    throw DataError(file.path() + format(": takes pictures of %zu channels, expected 1 or 3", kind.like.channels));
  }
  kind.scaled = file.text("scaled") != nullptr;
  Columns& columns = kind.columns;
  columns.mean = list_of<float>(file, "scale_mean");
  columns.deviation = list_of<float>(file, "scale_deviation");
  columns.names = list_of<std::string>(file, "column_names");
  if (!kind.is_table()) return kind;
  if (file.text("target") != nullptr) columns.target = printable(file.text("target"));
  columns.target_at = file.number("target_at");
  bool good = columns.deviation.size() == columns.count() && columns.target_at <= columns.count() &&
              (columns.names.empty() || columns.names.size() == columns.count()) && file.model() == "mlp" &&
              kind.like.columns == columns.count() && kind.like.rows == 1;
  for (const float each : columns.mean) good = good && std::isfinite(each);
  for (const float each : columns.deviation) good = good && std::isfinite(each) && each > 0;
  if (!good) throw DataError(file.path() + ": what it says of the table's columns is damaged");
  return kind;
}

}  // namespace bnns::tool

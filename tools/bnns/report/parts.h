// Parts of the report.
#pragma once

#include <string>

#include "tools/bnns/data/dataset.h"
#include "tools/bnns/model/train.h"

namespace bnns::tool {

std::string escaped(const std::string& text);
// A part that is wider than a phone can be scrolled, by keys too.
std::string scrollable(const std::string& label, const std::string& content);

// What is taken for what: a matrix, or a list where the classes are many.
std::string confusion_section(const DataSplit& data, const TrainResult& result);
// The wrong answers that the network was surest of: pictures, or rows of a table.
std::string mistakes_section(const DataSplit& data, const TrainResult& result);

}  // namespace bnns::tool

#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

std::vector<std::string> digit_names() {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < kClasses; ++k) names.push_back(std::to_string(k));
  return names;
}

std::string printable(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  return name;
}

}  // namespace bnns::tool

// Texts as windows of characters, each with the characters that follow.
#include "tools/bnns/text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/own_data.h"

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxCharacters = 256;

// Bytes of the UTF-8 character at `at`; 0 where there is none.
std::size_t length_at(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u; };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(at + i) >> 6 != 2) return 0;
  }
  return length;
}

std::vector<std::string> characters_of(const fs::path& file) {
  const std::string text = read_all(file);
  std::vector<std::string> all;
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = length_at(text, at);
    if (length == 0) throw DataError(file.string() + format(": byte %zu is not UTF-8, expected a text", at + 1));
    all.push_back(text.substr(at, length));
  }
  return all;
}

struct Named {
  const char *character, *name;
};
constexpr Named kNamed[] = {{" ", "space"}, {"\n", "newline"}, {"\t", "tab"}, {"\r", "return"}};

// The windows of characters [begin, end), each with the one that follows it.
Dataset windows(const std::vector<std::uint8_t>& symbols, std::size_t begin, std::size_t end, std::size_t classes,
                std::size_t steps) {
  Dataset set;
  set.rows = 1, set.columns = steps, set.steps = steps, set.classes = classes;
  for (; begin + steps < end; begin += steps) {
    const auto first = symbols.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = first + static_cast<std::ptrdiff_t>(steps);
    set.pixels.insert(set.pixels.end(), first, last);
    set.labels.insert(set.labels.end(), first + 1, last + 1);
  }
  return set;
}

}  // namespace

std::string character_name(const std::string& character) {
  for (const Named& each : kNamed) {
    if (character == each.character) return each.name;
  }
  const auto byte = static_cast<unsigned char>(character[0]);
  return byte < 32 || byte == 127 ? format("code %u", unsigned{byte}) : character;
}

std::string named_character(const std::string& name) {
  for (const Named& each : kNamed) {
    if (name == each.name) return each.character;
  }
  return name.rfind("code ", 0) == 0 ? "?" : name;
}

std::string text_of(const std::vector<std::uint8_t>& symbols, const std::vector<std::string>& classes) {
  std::string text;
  for (const std::uint8_t each : symbols) text += named_character(classes[each]);
  return text;
}

DataSplit read_text(const fs::path& file, const DataOptions& options) {
  const std::vector<std::string> characters = characters_of(file);
  std::map<std::string, std::uint8_t> index;
  DataSplit data;
  for (const std::string& each : characters) {
    if (index.count(each) != 0) continue;
    if (index.size() == kMaxCharacters) {
      throw DataError(file.string() + format(": has more than %zu different characters", kMaxCharacters));
    }
    index[each] = 0;
  }
  for (auto& [character, symbol] : index) {
    symbol = static_cast<std::uint8_t>(data.classes.size());
    data.classes.push_back(character_name(character));
  }
  std::vector<std::uint8_t> symbols;
  for (const std::string& each : characters) symbols.push_back(index[each]);
  // The end of the text is held out.
  const auto cut =
      static_cast<std::size_t>((1 - static_cast<double>(options.test_share)) * static_cast<double>(symbols.size()));
  data.train = windows(symbols, 0, cut, index.size(), kTextSteps);
  data.test = windows(symbols, cut, symbols.size(), index.size(), kTextSteps);
  if (index.size() < 2 || data.train.count() == 0 || data.test.count() == 0) {
    throw DataError(file.string() +
                    format(": has %zu characters, %zu different, expected two or more and %zu in each part",
                           symbols.size(), index.size(), kTextSteps + 1));
  }
  data.noun = "characters";
  data.source = printable(file.string()) + format(", %zu different characters", index.size());
  return data;
}

std::vector<std::uint8_t> read_text_like(const fs::path& file, const std::vector<std::string>& classes) {
  std::map<std::string, std::uint8_t> index;
  for (std::size_t k = 0; k < classes.size(); ++k) index[classes[k]] = static_cast<std::uint8_t>(k);
  std::vector<std::uint8_t> symbols;
  std::size_t line = 1;
  for (const std::string& each : characters_of(file)) {
    const auto found = index.find(character_name(each));
    if (found == index.end()) {
      throw DataError(file.string() + format(":%zu: the character ", line) + character_name(each) +
                      " was not in the text of the training");
    }
    symbols.push_back(found->second);
    line += each == "\n" ? 1 : 0;
  }
  if (symbols.empty()) throw DataError(file.string() + ": is empty, expected a text");
  return symbols;
}

Dataset windows_of(const std::vector<std::uint8_t>& symbols, std::size_t classes, std::size_t steps) {
  return windows(symbols, 0, symbols.size(), classes, steps);
}

}  // namespace bnns::tool

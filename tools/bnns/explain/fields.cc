#include "tools/bnns/explain/fields.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/core/enum_name.h"
#include "tools/bnns/data/idx.h"
#include "tools/bnns/options.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kMostListed = 12;

[[noreturn]] void refuse(const std::string& path, const Json& json, const std::string& expected) {
  std::string there = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (there.size() > 40) there = there.substr(0, 37) + "...";
  throw DataError(path + " is " + there + ", expected " + expected);
}

// What all names of the type begin with: "BNNSDataLayout", "BNNSArithmetic", "BNNS".
std::size_t shared_letters(const EnumTable& table) {
  const std::string first = table.names.front().name;
  std::size_t shared = first.size();
  for (const EnumName& each : table.names) {
    const std::string name = each.name;
    const auto end = std::mismatch(first.begin(), first.end(), name.begin(), name.end()).first;
    shared = std::min(shared, static_cast<std::size_t>(end - first.begin()));
  }
  return std::min(shared, std::strlen(table.type));  // the type's own name where words share more
}

const EnumTable& table_of(const char* type) {
  for (const EnumTable* each : enum_tables()) {
    if (std::strcmp(each->type, type) == 0) return *each;
  }
  throw std::runtime_error(std::string("no enumeration ") + type);
}

}  // namespace

Zeros::~Zeros() {
  for (const auto& [memory, bytes] : taken_) munmap(memory, bytes);
}

void* Zeros::take(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  // A page is enough where so much cannot be had: the library reads no weights before it computes.
  for (const std::size_t size : {std::max(bytes, kPage), kPage}) {
    void* const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    taken_.emplace_back(memory, size);
    return memory;
  }
  throw std::bad_alloc();
}

void check_word(const std::string& word, const std::vector<std::string>& known, const std::string& path,
                const char* what) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const auto longer = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.rfind(word, 0) == 0; });
  const bool begun = longer != known.end() && !word.empty();
  const std::string meant = begun ? *longer : closest(word, known), refusal = path + ": " + word + " is not " + what;
  // Where nothing is near, a short list says more than a guess.
  if (!begun && known.size() <= kMostListed && distance(word, meant) > kLikelyMeant) {
    throw DataError(refusal + ", expected one of " + listed(known));
  }
  throw DataError(refusal + "; did you mean " + meant + "?");
}

Fields& Fields::on(const char* name, Read read) {
  fields_.emplace_back(name, std::move(read));
  return *this;
}

void Fields::read(const Json& object, const std::string& path) const {
  if (!object.is_object()) refuse(path.empty() ? "the description" : path, object, "an object");
  std::vector<std::string> known;
  for (const auto& [name, read] : fields_) known.push_back(name);
  for (const auto& [key, value] : object.items()) {
    check_word(key, known, path.empty() ? "the description" : path, "a key here");
    const auto field =
        std::find_if(fields_.begin(), fields_.end(), [&key = key](const auto& f) { return f.first == key; });
    field->second(value, path.empty() ? key : path + "." + key);
  }
}

std::uint64_t Fields::whole(const Json& json, const std::string& path, std::uint64_t most) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > most) {
    refuse(path, json, "a whole number from 0 to " + std::to_string(most));
  }
  return json.get<std::uint64_t>();
}

bool Fields::truth(const Json& json, const std::string& path) {
  if (!json.is_boolean()) refuse(path, json, "true or false");
  return json.get<bool>();
}

std::uint32_t Fields::enumerator(const Json& json, const std::string& path, const char* type) {
  if (json.is_number_unsigned()) {
    return static_cast<std::uint32_t>(whole(json, path, std::numeric_limits<std::uint32_t>::max()));
  }
  if (!json.is_string()) refuse(path, json, std::string("the name of a ") + type);
  const std::string word = json.get<std::string>();
  const EnumTable& table = table_of(type);
  const std::size_t shared = shared_letters(table);
  std::vector<std::string> known;
  for (const EnumName& each : table.names) {
    const std::string name = each.name, rest = name.substr(shared);
    if (word == name || word == rest) return each.value;
    known.push_back(word.rfind(name.substr(0, shared), 0) == 0 ? name : rest);
  }
  check_word(word, known, path, (std::string("a ") + type).c_str());
  return 0;
}

Fields& Fields::add(const char* name, float& value) {
  return on(name, [&value](const Json& json, const std::string& path) {
    if (!json.is_number()) refuse(path, json, "a number");
    value = json.get<float>();
  });
}

Fields& Fields::add(const char* name, std::size_t* values, std::size_t most) {
  return on(name, [=](const Json& json, const std::string& path) {
    if (!json.is_array() || json.size() > most) {
      refuse(path, json, "a list of at most " + std::to_string(most) + " whole numbers");
    }
    for (std::size_t k = 0; k < json.size(); ++k) {
      values[k] = whole(json[k], path + "[" + std::to_string(k) + "]", std::numeric_limits<std::size_t>::max());
    }
  });
}

Fields& Fields::add(const char* name, BNNSActivation& value) {
  return on(name, [this, &value](const Json& json, const std::string& path) {
    Fields fields(zeros_);
    fields.add("function", value.function, "BNNSActivationFunction").add("alpha", value.alpha).add("beta", value.beta);
    fields.read(json, path);
  });
}

Fields& Fields::add(const char* name, BNNSNDArrayDescriptor& value) {
  return on(name, [this, &value](const Json& json, const std::string& path) {
    bool absent = false;
    Fields fields(zeros_);
    fields.add("layout", value.layout, "BNNSDataLayout").add("size", value.size, BNNS_MAX_TENSOR_DIMENSION);
    fields.add("stride", value.stride, BNNS_MAX_TENSOR_DIMENSION);
    fields.add("data_type", value.data_type, "BNNSDataType");
    fields.add("data_scale", value.data_scale).add("data_bias", value.data_bias);
    fields.on("data", [&absent](const Json& data, const std::string& at) {
      if (!data.is_null()) refuse(at, data, "null (no data), or no such key: there are data");
      absent = true;
    });
    fields.read(json, path);
    if (!absent) value.data = zeros_.take(BNNSNDArrayGetDataSize(&value));
  });
}

}  // namespace bnns::tool

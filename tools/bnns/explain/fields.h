// A JSON object into a structure of the C interface: keys are the structure's members, what is left out is zero.
#pragma once

#include <bnns/bnns.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bnns::tool {

using Json = nlohmann::ordered_json;

// What the data pointers of descriptors point to: zeros that take no memory until they are written.
class Zeros {
 public:
  Zeros() = default;
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros();
  void* take(std::size_t bytes);

 private:
  std::vector<std::pair<void*, std::size_t>> taken_;
};

// Each throws DataError: the path of the key, what is there and what was expected; for a word that is not known also
// the one that was probably meant.
class Fields {
 public:
  explicit Fields(Zeros& zeros) : zeros_(zeros) {}

  template <class T>
  requires std::is_unsigned_v<T> Fields& add(const char* name, T& value) {
    return on(name, [&value](const Json& json, const std::string& path) {
      if constexpr (std::is_same_v<T, bool>) {
        value = truth(json, path);
      } else {
        value = static_cast<T>(whole(json, path, std::numeric_limits<T>::max()));
      }
    });
  }
  Fields& add(const char* name, float& value);
  // An enumerator by its name, whole or without what all of its type begin with; or its number.
  template <class E>
  requires std::is_enum_v<E> Fields& add(const char* name, E& value, const char* type) {
    return on(name, [&value, type](const Json& json, const std::string& path) {
      value = static_cast<E>(enumerator(json, path, type));
    });
  }
  Fields& add(const char* name, BNNSNDArrayDescriptor& value);
  Fields& add(const char* name, BNNSActivation& value);
  // Up to `most` whole numbers.
  Fields& add(const char* name, std::size_t* values, std::size_t most);

  void read(const Json& object, const std::string& path) const;

 private:
  using Read = std::function<void(const Json&, const std::string&)>;
  Fields& on(const char* name, Read read);
  static std::uint64_t whole(const Json& json, const std::string& path, std::uint64_t most);
  static bool truth(const Json& json, const std::string& path);
  static std::uint32_t enumerator(const Json& json, const std::string& path, const char* type);

  Zeros& zeros_;
  std::vector<std::pair<std::string, Read>> fields_;
};

// One of `known`, or a DataError with the one that was probably meant.
void check_word(const std::string& word, const std::vector<std::string>& known, const std::string& path,
                const char* what);

}  // namespace bnns::tool

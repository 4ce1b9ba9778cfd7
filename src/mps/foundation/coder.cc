// NS::Coder: a map from names to integers, texts and nested archives.
//
// Bytes, all numbers little-endian:
//   "BNNSARC1", u32 entries, then per entry: u32 key length, key, u8 type (0 integer, 1 text, 2 archive),
//   and 8 bytes of two's complement, or u32 length and that many bytes. Keys are sorted: equal objects, equal bytes.
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "Foundation/Foundation.hpp"
#include "src/mps/foundation/guard.h"

namespace NS {
namespace {

constexpr char kMagic[] = "BNNSARC1";
enum Type : unsigned char { kInteger = 0, kText = 1, kArchive = 2 };

struct Value {
  Type type = kInteger;
  std::string bytes;  // integers: 8 bytes
};

template <class Number>
std::string number_bytes(Number number) {
  auto bits = static_cast<std::uint64_t>(number);
  std::string bytes(sizeof(Number), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(bits & 0xFF);
    bits >>= 8;
  }
  return bytes;
}

std::uint64_t number_of(const char* bytes, size_t count) {
  std::uint64_t bits = 0;
  for (size_t i = count; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(bytes[i]);
  return bits;
}

// Reads the archive front to back; ok turns false at the first piece that is not there.
struct Reader {
  const char* next;
  size_t left;
  bool ok = true;

  std::string bytes(size_t count) {
    if (!ok || count > left) {
      ok = false;
      return {};
    }
    std::string piece(next, count);
    next += count;
    left -= count;
    return piece;
  }
  size_t length() {
    const std::string piece = bytes(4);
    return ok ? static_cast<size_t>(number_of(piece.data(), 4)) : 0;
  }
};

}  // namespace

struct Coder::Values {
  std::map<std::string, Value> map;
  bool failed = false;
};

Coder::Coder() : values_(new Values) {}

Coder::~Coder() {
  delete values_;
}

Coder* Coder::coder() {
  return (new Coder)->autorelease();
}

Coder* Coder::coder(const Data* data) {
  if (!data) return nullptr;
  Reader reader{static_cast<const char*>(data->bytes()), data->length()};
  if (reader.bytes(8) != kMagic) return nullptr;
  Coder* made = coder();
  const size_t entries = reader.length();
  for (size_t i = 0; i < entries && reader.ok; ++i) {
    std::string key = reader.bytes(reader.length());
    Value value;
    const std::string type = reader.bytes(1);
    if (!reader.ok || static_cast<unsigned char>(type[0]) > kArchive) return nullptr;
    value.type = static_cast<Type>(type[0]);
    value.bytes = reader.bytes(value.type == kInteger ? 8 : reader.length());
    made->values_->map[std::move(key)] = std::move(value);
  }
  return reader.ok && reader.left == 0 ? made : nullptr;
}

void Coder::encodeInteger(Integer value, const char* key) {
  values_->map[key] = {kInteger, number_bytes(static_cast<std::int64_t>(value))};
}

void Coder::encodeString(const String* value, const char* key) {
  if (value) values_->map[key] = {kText, value->utf8String()};
}

void Coder::encodeCoder(const Coder* value, const char* key) {
  Data* bytes = value ? value->data() : nullptr;
  if (!bytes) {
    fail("an inner archive failed");
    return;
  }
  values_->map[key] = {kArchive, std::string(static_cast<const char*>(bytes->bytes()), bytes->length())};
}

void Coder::fail(const char* reason) {
  values_->failed = true;
  bnns::mps::refuse("NSCoder", "%s", reason ? reason : "");
}

bool Coder::containsValue(const char* key) const {
  return values_->map.count(key) != 0;
}

Integer Coder::decodeInteger(const char* key, Integer fallback) const {
  const auto found = values_->map.find(key);
  if (found == values_->map.end() || found->second.type != kInteger) return fallback;
  return static_cast<Integer>(number_of(found->second.bytes.data(), 8));
}

String* Coder::decodeString(const char* key) const {
  const auto found = values_->map.find(key);
  return found == values_->map.end() || found->second.type != kText ? nullptr
                                                                    : String::string(found->second.bytes.c_str());
}

Coder* Coder::decodeCoder(const char* key) const {
  const auto found = values_->map.find(key);
  if (found == values_->map.end() || found->second.type != kArchive) return nullptr;
  return coder(Data::data(found->second.bytes.data(), found->second.bytes.size()));
}

bool Coder::failed() const noexcept {
  return values_->failed;
}

Data* Coder::data() const {
  if (values_->failed) return nullptr;
  std::string bytes = kMagic + number_bytes(static_cast<std::uint32_t>(values_->map.size()));
  for (const auto& [key, value] : values_->map) {
    bytes += number_bytes(static_cast<std::uint32_t>(key.size())) + key + static_cast<char>(value.type);
    if (value.type != kInteger) bytes += number_bytes(static_cast<std::uint32_t>(value.bytes.size()));
    bytes += value.bytes;
  }
  return Data::data(bytes.data(), bytes.size());
}

const char* Coder::className() const noexcept {
  return "NSCoder";
}

}  // namespace NS

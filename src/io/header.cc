#include "src/io/header.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/io/element_type.h"
#include "src/io/json.h"

namespace bnns::io {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths and elements are little-endian in the file");

// A record is: the name and its NUL, type, rank, begin, end (8 bytes each), then each extent with 7 bits a byte.
constexpr size_t kFixedBytes = 18;

char* put_extent(char* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<char>(value | 0x80);
  *out++ = static_cast<char>(value);
  return out;
}

const char* get_extent(const char* at, size_t* value) {
  *value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    *value |= size_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return at;
  }
}

size_t type_index(const char* file, const char* name, const char* text) {
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    if (std::strcmp(kElementTypes[i].name, text) == 0) return i;
  }
  fail_invalid("%s: %s: dtype is %s, expected %s (or F64, C64, F8_E4M3, F8_E5M2, which are listed only)", file,
               shown(name).text, shown(text).text, kTypesOfBnns);
}

// The text of the header, object by object. `out_` is where the next record goes.
class Parser {
 public:
  Parser(const char* file, char* text, size_t bytes) : file_(file), text_(text), out_(text), json_(file, text, bytes) {}

  void run() {
    json_.expect('{', "'{', the beginning of the header");
    if (!json_.take('}')) {
      do {
        read_member();
      } while (json_.take(','));
      json_.expect('}', "',' or '}' after an array");
    }
    json_.expect_end();
  }

  size_t arrays = 0, metadata = 0, metadata_begin = 0;
  size_t records_end() const { return static_cast<size_t>(out_ - text_); }
  bool has_metadata = false;
  size_t metadata_end = 0;

 private:
  void read_member() {
    char* const name = out_;
    const size_t length = json_.string(name);
    json_.expect(':', "':' after a name");
    if (std::strcmp(name, kMetadataName) == 0) {
      if (has_metadata) fail_invalid("%s: %s is there twice, expected once", file_, kMetadataName);
      has_metadata = true;
      read_metadata();
    } else {
      read_array(name, name + length + 1);
    }
  }

  void read_metadata() {
    metadata_begin = records_end();
    json_.expect('{', "'{', the beginning of __metadata__");
    if (!json_.take('}')) {
      do {
        out_ += json_.string(out_) + 1;
        json_.expect(':', "':' after a key");
        out_ += json_.string(out_) + 1;
        ++metadata;
      } while (json_.take(','));
      json_.expect('}', "',' or '}' after a pair of __metadata__");
    }
    metadata_end = records_end();
  }

  void read_array(const char* name, char* after_name) {
    Entry e;
    bool seen[3] = {};
    static constexpr const char* kFields[] = {"dtype", "shape", "data_offsets"};
    json_.expect('{', "'{', the beginning of an array");
    do {
      json_.string(after_name);
      size_t field = 0;
      while (field < 3 && std::strcmp(kFields[field], after_name) != 0) ++field;
      if (field == 3) {
        fail_invalid("%s: %s: field %s, expected dtype, shape or data_offsets", file_, shown(name).text,
                     shown(after_name).text);
      }
      if (seen[field])
        fail_invalid("%s: %s: %s is there twice, expected once", file_, shown(name).text, kFields[field]);
      seen[field] = true;
      json_.expect(':', "':' after a field");
      if (field == 0) {
        json_.string(after_name);
        e.type = type_index(file_, name, after_name);
      } else if (field == 1) {
        read_shape(name, &e);
      } else {
        read_offsets(&e);
      }
    } while (json_.take(','));
    json_.expect('}', "',' or '}' after a field");
    for (size_t field = 0; field < 3; ++field) {
      if (!seen[field]) fail_invalid("%s: %s: %s is missing", file_, shown(name).text, kFields[field]);
    }
    check_bytes(name, e);
    write_record(after_name, e);
    ++arrays;
  }

  void read_shape(const char* name, Entry* e) {
    json_.expect('[', "'[', the beginning of a shape");
    if (json_.take(']')) return;
    do {
      if (e->rank == kMaxRank) {
        fail_unsupported("%s: %s: shape has more than %zu axes, expected at most %zu, as many as a descriptor has",
                         file_, shown(name).text, kMaxRank, kMaxRank);
      }
      e->shape[e->rank++] = json_.number();
    } while (json_.take(','));
    json_.expect(']', "',' or ']' after an extent");
  }

  void read_offsets(Entry* e) {
    json_.expect('[', "'[', the beginning of data_offsets");
    e->begin = json_.number();
    json_.expect(',', "',' between two offsets");
    e->end = json_.number();
    json_.expect(']', "']' after two offsets");
  }

  void check_bytes(const char* name, const Entry& e) {
    size_t bytes = kElementTypes[e.type].bytes;
    bool empty = false, too_large = false;
    for (size_t k = 0; k < e.rank; ++k) empty |= e.shape[k] == 0;
    for (size_t k = 0; k < e.rank && !empty; ++k) too_large |= __builtin_mul_overflow(bytes, e.shape[k], &bytes);
    if (too_large) fail_invalid("%s: %s: shape does not fit in 64 bits", file_, shown(name).text);
    if (empty) bytes = 0;
    if (e.begin > e.end || e.end - e.begin != bytes) {
      fail_invalid("%s: %s: data_offsets are %zu and %zu, expected %zu bytes between them = shape and dtype %s", file_,
                   shown(name).text, e.begin, e.end, bytes, kElementTypes[e.type].name);
    }
  }

  void write_record(char* out, const Entry& e) {
    *out++ = static_cast<char>(e.type);
    *out++ = static_cast<char>(e.rank);
    std::memcpy(out, &e.begin, 8);
    std::memcpy(out + 8, &e.end, 8);
    out += 16;
    for (size_t k = 0; k < e.rank; ++k) out = put_extent(out, e.shape[k]);
    out_ = out;
  }

  const char* file_;
  char *text_, *out_;
  JsonCursor json_;
};

const char* skip_text(const char* at) {
  return at + std::strlen(at) + 1;
}

}  // namespace

size_t Header::checked_length(const char* file, const char* first, size_t file_bytes) {
  if (file_bytes < kLengthBytes) {
    fail_invalid("%s: the file has %zu bytes, expected 8 and more: the length of the header comes first", file,
                 file_bytes);
  }
  uint64_t length;
  std::memcpy(&length, first, sizeof length);
  if (length > kMaxHeaderBytes) {
    fail_invalid("%s: the length of the header is %zu, expected at most %zu: damaged, or no safetensors file", file,
                 size_t{length}, kMaxHeaderBytes);
  }
  if (length > file_bytes - kLengthBytes) {
    fail_invalid("%s: the length of the header is %zu, expected at most %zu = the rest of the file", file,
                 size_t{length}, file_bytes - kLengthBytes);
  }
  if (length < 2 || first[kLengthBytes] != '{') {
    fail_invalid("%s: the header does not begin with '{': damaged, or no safetensors file", file);
  }
  return length;
}

Header::Header(const char* file, char* text, size_t bytes, size_t data_bytes) : text_(text) {
  Parser parser(file, text, bytes);
  parser.run();
  records_.reserve(parser.arrays);
  for (size_t at = 0; at < parser.records_end();) {
    if (parser.has_metadata && at == parser.metadata_begin && parser.metadata_end > at) {
      at = parser.metadata_end;
      continue;
    }
    records_.push_back(static_cast<uint32_t>(at));
    const char* p = skip_text(text + at);
    const auto rank = static_cast<size_t>(p[1]);
    p += kFixedBytes;
    for (size_t k = 0, extent; k < rank; ++k) p = get_extent(p, &extent);
    at = static_cast<size_t>(p - text);
  }
  check_names(file);
  check_offsets(file, data_bytes);
  list_metadata(file, parser.metadata_begin, parser.metadata);
}

void Header::check_names(const char* file) {
  by_name_.resize(count());
  for (size_t i = 0; i < count(); ++i) by_name_[i] = static_cast<uint32_t>(i);
  const auto name = [&](uint32_t i) { return text_ + records_[i]; };
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return std::strcmp(name(a), name(b)) < 0; });
  for (size_t i = 1; i < count(); ++i) {
    if (std::strcmp(name(by_name_[i - 1]), name(by_name_[i])) == 0) {
      fail_invalid("%s: %s is there twice, expected once", file, shown(name(by_name_[i])).text);
    }
  }
}

void Header::check_offsets(const char* file, size_t data_bytes) const {
  std::vector<uint32_t> order(by_name_);
  const auto offset = [&](uint32_t i, size_t which) {
    size_t value;
    std::memcpy(&value, skip_text(text_ + records_[i]) + 2 + 8 * which, 8);
    return value;
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const size_t x = offset(a, 0), y = offset(b, 0);
    return x != y ? x < y : offset(a, 1) < offset(b, 1);
  });
  size_t end = 0;
  for (uint32_t i : order) {
    const Entry e = entry(i);
    if (e.begin != end) {
      fail_invalid("%s: %s: data_offsets begin at %zu, expected %zu = the end of the array before it: %s", file,
                   shown(e.name).text, e.begin, end, e.begin < end ? "they overlap" : "there is a hole");
    }
    end = e.end;
    if (end > data_bytes) {
      fail_invalid("%s: %s: data_offsets end at %zu, expected at most %zu = the bytes after the header", file,
                   shown(e.name).text, end, data_bytes);
    }
  }
  if (end != data_bytes) {
    fail_invalid("%s: the arrays have %zu bytes, expected %zu = the bytes after the header", file, end, data_bytes);
  }
}

void Header::list_metadata(const char* file, size_t begin, size_t count) {
  keys_.reserve(count);
  for (const char* p = text_ + begin; keys_.size() < count; p = skip_text(skip_text(p))) {
    keys_.push_back(static_cast<uint32_t>(p - text_));
  }
  std::sort(keys_.begin(), keys_.end(), [&](uint32_t a, uint32_t b) { return std::strcmp(text_ + a, text_ + b) < 0; });
  for (size_t i = 1; i < count; ++i) {
    if (std::strcmp(key(i - 1), key(i)) == 0) {
      fail_invalid("%s: %s: key %s is there twice, expected once", file, kMetadataName, shown(key(i)).text);
    }
  }
}

Entry Header::entry(size_t index) const {
  Entry e;
  e.name = text_ + records_[index];
  const char* p = skip_text(e.name);
  e.type = static_cast<size_t>(p[0]);
  e.rank = static_cast<size_t>(p[1]);
  std::memcpy(&e.begin, p + 2, 8);
  std::memcpy(&e.end, p + 10, 8);
  p += kFixedBytes;
  for (size_t k = 0; k < e.rank; ++k) p = get_extent(p, &e.shape[k]);
  return e;
}

size_t Header::find(const char* name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name, [&](uint32_t i, const char* wanted) {
    return std::strcmp(text_ + records_[i], wanted) < 0;
  });
  return found != by_name_.end() && std::strcmp(text_ + records_[*found], name) == 0 ? *found : SIZE_MAX;
}

const char* Header::value(const char* wanted) const {
  const auto found = std::lower_bound(keys_.begin(), keys_.end(), wanted,
                                      [&](uint32_t k, const char* w) { return std::strcmp(text_ + k, w) < 0; });
  if (found == keys_.end() || std::strcmp(text_ + *found, wanted) != 0) return nullptr;
  return skip_text(text_ + *found);
}

}  // namespace bnns::io

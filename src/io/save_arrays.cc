// The writer. Everything is checked and the header composed before a file is created.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/io/array_file.h"
#include "src/io/new_file.h"

namespace bnns::io {
namespace {

constexpr size_t kHeaderAlignment = 8;  // spaces after the object bring the elements to a multiple of it

struct Item {
  const char* name;
  size_t type;
  Tensor tensor;
};

struct Field {
  char text[40];
};
Field field_name(const char* list, size_t index, const char* member) {
  Field f;
  std::snprintf(f.text, sizeof f.text, "%s[%zu].%s", list, index, member);
  return f;
}

// A text that JSON can carry: UTF-8.
void check_text(const char* text, const Field& field, const char* file) {
  if (!text) fail_invalid("%s: %s is NULL, expected a text", file, field.text);
  const char* const end = text + std::strlen(text);
  for (const char* at = text; at < end;) {
    const size_t length = utf8_length(at, end);
    if (length == 0) {
      fail_invalid("%s: %s is %s, whose byte %td is 0x%02x, expected UTF-8", file, field.text, shown(text).text,
                   at - text, static_cast<unsigned char>(*at));
    }
    at += length;
  }
}

Item make_item(const BNNSExtNamedArray& given, size_t index, const char* file) {
  check_text(given.name, field_name("arrays", index, "name"), file);
  const Shown label = shown(given.name);
  if (std::strcmp(given.name, kMetadataName) == 0) {
    fail_invalid("%s: arrays[%zu].name is %s, expected another name: the format keeps this one", file, index,
                 kMetadataName);
  }
  if (!given.array) fail_invalid("%s: %s: array is NULL, expected a descriptor", file, label.text);
  if (given.array->layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is %s, expected one without gaps in groups of 32", file, label.text,
                     enum_text(given.array->layout).text);
  }
  const Tensor tensor = resolve_with_data(*given.array, file, label.text);
  for (size_t type = 0; type < kElementTypeCount; ++type) {
    if (kElementTypes[type].data_type == tensor.type) return {given.name, type, tensor};
  }
  fail_unsupported("%s: %s.data_type is %s, expected %s: the format has no such type", file, label.text,
                   enum_text(tensor.type).text, kTypesOfBnns);
}

void append_text(std::string& out, const char* text) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr char kPlain[] = "\"\\\b\f\n\r\t", kNames[] = "\"\\bfnrt";
  out += '"';
  for (; *text; ++text) {
    if (const char* at = std::strchr(kPlain, *text)) {
      out += '\\';
      out += kNames[at - kPlain];
    } else if (static_cast<unsigned char>(*text) < 0x20) {
      out += "\\u00";
      out += kHex[*text >> 4];
      out += kHex[*text & 15];
    } else {
      out += *text;
    }
  }
  out += '"';
}

void append_metadata(std::string& out, size_t count, const BNNSExtMetadata* metadata, const char* file) {
  std::vector<BNNSExtMetadata> pairs(metadata, metadata + count);
  for (size_t i = 0; i < count; ++i) {
    check_text(pairs[i].key, field_name("metadata", i, "key"), file);
    check_text(pairs[i].value, field_name("metadata", i, "value"), file);
  }
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return std::strcmp(a.key, b.key) < 0; });
  out += "\"__metadata__\":{";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && std::strcmp(pairs[i - 1].key, pairs[i].key) == 0) {
      fail_invalid("%s: metadata: key %s is there twice, expected once", file, shown(pairs[i].key).text);
    }
    if (i > 0) out += ',';
    append_text(out, pairs[i].key);
    out += ':';
    append_text(out, pairs[i].value);
  }
  out += '}';
}

std::string compose_header(const std::vector<Item>& items, size_t metadata_count, const BNNSExtMetadata* metadata,
                           const char* file) {
  std::string out(kLengthBytes, '\0');
  out += '{';
  if (metadata_count > 0) append_metadata(out, metadata_count, metadata, file);
  size_t begin = 0;
  for (const Item& item : items) {
    if (out.back() != '{' || metadata_count > 0) out += ',';
    append_text(out, item.name);
    out += ":{\"dtype\":\"";
    out += kElementTypes[item.type].name;
    out += "\",\"shape\":[";
    for (size_t k = 0; k < item.tensor.rank; ++k) {
      if (k > 0) out += ',';
      out += std::to_string(file_extent(item.tensor, k));
    }
    const size_t bytes = checked_mul(item.tensor.count, kElementTypes[item.type].bytes, file);
    const size_t end = checked_add(begin, bytes, file);
    out += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    begin = end;
  }
  out += '}';
  out.resize(round_up(out.size(), kHeaderAlignment), ' ');
  const uint64_t length = out.size() - kLengthBytes;
  if (length > kMaxHeaderBytes) {
    fail_invalid("%s: names, shapes and metadata take %zu bytes, expected at most %zu", file, size_t{length},
                 kMaxHeaderBytes);
  }
  std::memcpy(out.data(), &length, sizeof length);
  return out;
}

void write_elements(NewFile& file, const Item& item) {
  const size_t bytes = kElementTypes[item.type].bytes;
  const char* const base = static_cast<const char*>(item.tensor.data);
  for_each_run(item.tensor, [&](size_t offset, size_t n, size_t stride) {
    const char* const from = base + offset * bytes;
    if (stride == 1) return file.write(from, n * bytes);
    for (size_t i = 0; i < n; ++i) file.write(from + i * stride * bytes, bytes);
  });
}

}  // namespace

void save_arrays(const char* path, size_t count, const BNNSExtNamedArray* arrays, size_t metadata_count,
                 const BNNSExtMetadata* metadata) {
  if (!path) fail_invalid("file is NULL, expected a path");
  if (!*path) fail_invalid("file is \"\", expected a path");
  const Shown name = shown_path(path);
  const char* const file = name.text;
  if (count > 0 && !arrays) fail_invalid("%s: arrays is NULL, expected %zu arrays", file, count);
  if (metadata_count > 0 && !metadata) fail_invalid("%s: metadata is NULL, expected %zu pairs", file, metadata_count);

  // An array takes 50 bytes of the header and more, a pair 6: numbers past that are no sizes of lists.
  if (count > kMaxHeaderBytes / 50 || metadata_count > kMaxHeaderBytes / 6) {
    fail_invalid("%s: %zu arrays and %zu pairs of metadata, expected as many as fit in a header of %zu bytes", file,
                 count, metadata_count, kMaxHeaderBytes);
  }

  std::vector<Item> items;
  items.reserve(count);
  for (size_t i = 0; i < count; ++i) items.push_back(make_item(arrays[i], i, file));
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.type != b.type ? a.type > b.type : std::strcmp(a.name, b.name) < 0;
  });
  std::vector<std::string_view> names;
  for (const Item& item : items) names.emplace_back(item.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail_invalid("%s: %s is there twice, expected once", file, shown(twice->data()).text);

  const std::string header = compose_header(items, metadata_count, metadata, file);
  NewFile out(path, file);
  out.write(header.data(), header.size());
  for (const Item& item : items) write_elements(out, item);
  out.commit();
}

}  // namespace bnns::io

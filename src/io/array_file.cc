#include "src/io/array_file.h"

#include <cstdio>
#include <cstring>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns::io {
namespace {

struct ShapeText {
  char text[8 * 21 + 3];
};

ShapeText shape_text(size_t rank, const size_t* shape) {
  ShapeText s;
  size_t used = 0;
  s.text[used++] = '[';
  for (size_t k = 0; k < rank; ++k) {
    used += static_cast<size_t>(std::snprintf(s.text + used, sizeof s.text - used, k ? ",%zu" : "%zu", shape[k]));
  }
  s.text[used++] = ']';
  s.text[used] = '\0';
  return s;
}

void check_shape(const Entry& e, const Tensor& t, const char* file, const char* name) {
  size_t given[kMaxRank];
  for (size_t k = 0; k < t.rank; ++k) given[k] = file_extent(t, k);
  if (e.rank == 0 && t.rank == 1 && t.count == 1) return;
  if (e.rank == t.rank && std::memcmp(given, e.shape, t.rank * sizeof given[0]) == 0) return;
  fail_invalid("%s: %s: the array is %s, expected %s = shape in the file", file, name, shape_text(t.rank, given).text,
               shape_text(e.rank, e.shape).text);
}

void check_booleans(const char* data, size_t count, const char* file, const char* name) {
  for (size_t i = 0; i < count; ++i) {
    if (static_cast<unsigned char>(data[i]) > 1) {
      fail_invalid("%s: %s: element %zu of type BOOL is %d, expected 0 or 1", file, name, i,
                   static_cast<unsigned char>(data[i]));
    }
  }
}

size_t checked_header(const char* file, const FileBytes& bytes) {
  return Header::checked_length(file, bytes.data(), bytes.size());
}

const char* checked_path(const char* path) {
  if (!path) fail_invalid("file is NULL, expected a path");
  if (!*path) fail_invalid("file is \"\", expected a path");
  return path;
}

}  // namespace

ArrayFile::ArrayFile(const char* path, BNNSExtArrayFileMode mode)
    : shown_(shown_path(checked_path(path))),
      bytes_(path, mode, shown_.text),
      data_bytes_(bytes_.size() - kLengthBytes - checked_header(shown_.text, bytes_)),
      header_(shown_.text, bytes_.data() + kLengthBytes, bytes_.size() - kLengthBytes - data_bytes_, data_bytes_) {
  bytes_.forbid_writing();
}

BNNSExtArrayInfo ArrayFile::info(size_t index) const {
  if (index >= header_.count()) {
    fail_invalid("%s: index is %zu, expected less than %zu = number of arrays", shown(), index, header_.count());
  }
  const Entry e = header_.entry(index);
  BNNSExtArrayInfo info{};
  info.name = e.name;
  info.type_name = kElementTypes[e.type].name;
  info.data_type = kElementTypes[e.type].data_type;
  info.rank = e.rank;
  std::memcpy(info.shape, e.shape, sizeof info.shape);
  info.bytes = e.end - e.begin;
  info.data = info.bytes ? elements(e) : nullptr;
  return info;
}

Entry ArrayFile::required(const char* name) const {
  if (!name) fail_invalid("%s: name is NULL, expected the name of an array", shown());
  const size_t index = header_.find(name);
  if (index == SIZE_MAX) {
    fail_invalid("%s: %s is not there, expected one of its %zu arrays", shown(), io::shown(name).text, header_.count());
  }
  return header_.entry(index);
}

Entry ArrayFile::required_of_bnns(const char* name) const {
  const Entry e = required(name);
  const ElementType& type = kElementTypes[e.type];
  if (type.data_type == kNoDataType) {
    fail_unsupported("%s: %s: dtype is %s, expected %s: BNNS has no such type", shown(), io::shown(name).text,
                     type.name, kTypesOfBnns);
  }
  if (e.begin == e.end) {
    fail_unsupported("%s: %s: shape is %s, expected at least one element", shown(), io::shown(name).text,
                     shape_text(e.rank, e.shape).text);
  }
  return e;
}

void ArrayFile::copy(const char* name, const BNNSNDArrayDescriptor* array) const {
  const Entry e = required_of_bnns(name);
  const Shown label = io::shown(name);
  if (!array) fail_invalid("%s: %s: array is NULL, expected a descriptor", shown(), label.text);
  if (array->layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is %s, expected one without gaps in groups of 32", shown(), label.text,
                     enum_text(array->layout).text);
  }
  const Tensor t = resolve_with_data(*array, shown(), label.text);
  const ElementType& type = kElementTypes[e.type];
  if (t.type != type.data_type) {
    fail_invalid("%s: %s.data_type is %s, expected %s = dtype %s in the file", shown(), label.text,
                 enum_text(t.type).text, enum_text(type.data_type).text, type.name);
  }
  check_shape(e, t, shown(), label.text);
  check_distinct(t, shown(), label.text);
  check_disjoint(t.data, t.span_bytes(), "the array", bytes_.data(), bytes_.size(), "the open file", shown());
  const char* from = elements(e);
  if (t.type == BNNSDataTypeBoolean) check_booleans(from, t.count, shown(), label.text);

  char* const base = static_cast<char*>(t.data);
  for_each_run(t, [&](size_t offset, size_t n, size_t stride) {
    char* to = base + offset * type.bytes;
    if (stride == 1) {
      std::memcpy(to, from, n * type.bytes);
    } else {
      for (size_t i = 0; i < n; ++i) std::memcpy(to + i * stride * type.bytes, from + i * type.bytes, type.bytes);
    }
    from += n * type.bytes;
  });
}

BNNSNDArrayDescriptor ArrayFile::view(const char* name, BNNSDataLayout layout) const {
  const Entry e = required_of_bnns(name);
  const Shown label = io::shown(name);
  const size_t rank = layout_rank(layout), axes = e.rank ? e.rank : 1;
  if (rank != axes) {
    fail_invalid("%s: %s: layout is %s, expected one of %zu axes for the shape %s", shown(), label.text,
                 enum_text(layout).text, axes, shape_text(e.rank, e.shape).text);
  }
  if (layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32 || layout == BNNSDataLayoutFullyConnectedSparse) {
    fail_unsupported("%s: %s: layout is %s, expected one that holds elements in order", shown(), label.text,
                     enum_text(layout).text);
  }
  const ElementType& type = kElementTypes[e.type];
  BNNSNDArrayDescriptor d{};
  d.layout = layout;
  d.data_type = type.data_type;
  d.data = const_cast<char*>(elements(e));
  for (size_t k = 0; k < rank; ++k) d.size[k] = 1;
  const Tensor order = resolve(d, shown(), label.text);  // which size is which axis of the shape
  for (size_t k = 0; k < e.rank; ++k) d.size[order.axis[rank - 1 - k]] = e.shape[k];
  if (reinterpret_cast<uintptr_t>(d.data) % type.bytes != 0) {
    fail_unsupported("%s: %s: the elements begin at byte %zu of the file, expected a multiple of %zu; copy the array",
                     shown(), label.text, bytes_.size() - data_bytes_ + e.begin, type.bytes);
  }
  return d;
}

}  // namespace bnns::io

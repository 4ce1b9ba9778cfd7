// OpenBNNS C++ overlay: arrays saved to a file and loaded again (safetensors). Swift's classes have nothing like it.
//
//   saveArrays("model.safetensors", {{"fc.weight", w}, {"fc.bias", b}}, {{"epoch", "12"}});
//
//   ArrayFile file("model.safetensors");
//   file.copy("fc.weight", w);                    // shape and type are compared
//   NDArray bias = file.array("fc.bias");
#pragma once

#include "array.hpp"

#if __has_include(<bnns/bnns_io.h>)
#include <bnns/bnns_io.h>

namespace bnns {

/// An array with its name in a file. An array of several samples is refused: save `array.flat()`, or give it the shape
/// that the file shall have.
struct NamedArray {
  std::string name;
  Input array;
};
/// A key and its text, which a file carries beside its arrays.
using Metadata = std::pair<std::string, std::string>;

/// Writes the file as a whole, or throws and leaves the old one as it was (BNNSExtArraysSave).
inline void saveArrays(const std::string& file, std::span<const NamedArray> arrays,
                       std::span<const Metadata> metadata = {}) {
  std::vector<::BNNSExtNamedArray> named;
  std::vector<::BNNSExtMetadata> pairs;
  for (const NamedArray& a : arrays) {
    if (a.array.batchSize() != 1) {
      detail::badArray("saveArrays", a.name + " has " + std::to_string(a.array.batchSize()) +
                                         " samples, expected 1: save flat(), or a shape with an axis for the samples");
    }
    named.push_back({a.name.c_str(), &a.array.descriptor()});
  }
  for (const Metadata& m : metadata) pairs.push_back({m.first.c_str(), m.second.c_str()});
  detail::check(::BNNSExtArraysSave(file.c_str(), named.size(), named.data(), pairs.size(), pairs.data()), "saveArrays",
                "BNNSExtArraysSave", Error::Code::arrayDescriptorInvalidData);
}
inline void saveArrays(const std::string& file, std::initializer_list<NamedArray> arrays,
                       std::initializer_list<Metadata> metadata = {}) {
  saveArrays(file, std::span<const NamedArray>(arrays.begin(), arrays.size()),
             std::span<const Metadata>(metadata.begin(), metadata.size()));
}

/// A file of arrays that is open; checked as a whole by the constructor. Move-only; using one that was moved from
/// throws.
class ArrayFile {
 public:
  enum class Mode : std::uint32_t { read = BNNSExtArrayFileRead, map = BNNSExtArrayFileMap };
  using Info = ::BNNSExtArrayInfo;

  /// Reads the file, or maps it; Error where it cannot be read or is damaged.
  explicit ArrayFile(const std::string& file, Mode mode = Mode::read)
      : handle_(::BNNSExtArrayFileOpen(file.c_str(), static_cast<::BNNSExtArrayFileMode>(mode))) {
    if (!handle_) refuse("ArrayFile", "BNNSExtArrayFileOpen");
  }
  ~ArrayFile() { ::BNNSExtArrayFileClose(handle_); }
  ArrayFile(ArrayFile&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)) {}
  ArrayFile& operator=(ArrayFile&& o) noexcept {
    ::BNNSExtArrayFileClose(std::exchange(handle_, std::exchange(o.handle_, nullptr)));
    return *this;
  }

  /// Arrays in the file, and what it says about each. What Info points to lives as long as the file is open.
  std::size_t count() const { return ::BNNSExtArrayFileCount(handle_); }
  Info info(std::size_t index) const {
    Info info{};
    check(::BNNSExtArrayFileInfo(handle_, index, &info), "ArrayFile::info", "BNNSExtArrayFileInfo");
    return info;
  }
  bool contains(const std::string& name) const {
    return ::BNNSExtArrayFileFind(handle_, name.c_str()) != static_cast<std::size_t>(-1);
  }
  Info info(const std::string& name) const {
    const std::size_t index = ::BNNSExtArrayFileFind(handle_, name.c_str());
    if (index == static_cast<std::size_t>(-1)) detail::badArray("ArrayFile::info", name + " is not in the file");
    return info(index);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count(); ++i) all.emplace_back(info(i).name);
    return all;
  }

  /// Copies an array into one of the same shape and type (BNNSExtArrayFileCopy says what a layout's shape is).
  void copy(const std::string& name, const Output& array) const {
    check(::BNNSExtArrayFileCopy(handle_, name.c_str(), &array.descriptor()), "ArrayFile::copy",
          "BNNSExtArrayFileCopy");
  }
  /// An array where it lies in the file, in a layout of as many axes. It must not be written, and lives as long as the
  /// file is open.
  InputView view(const std::string& name, DataLayout layout) const {
    Desc d{};
    check(::BNNSExtArrayFileView(handle_, name.c_str(), static_cast<BNNSDataLayout>(layout), &d), "ArrayFile::view",
          "BNNSExtArrayFileView");
    return {View{d, 1, 1}};
  }
  /// A copy as a new array; without a layout a vector, or the first-major layout: sizes as NumPy has them.
  NDArray array(const std::string& name, std::optional<DataLayout> layout = {}) const {
    const std::size_t rank = info(name).rank;
    const auto firstMajor = rank < 2 ? DataLayout::vector : static_cast<DataLayout>((rank << 16) | 0x8001u);
    const InputView here = view(name, layout.value_or(firstMajor));
    NDArray copied = NDArray::uninitialized(here.data_type, shapeOf(here));
    copy(name, copied);
    return copied;
  }

  /// The text of a key, and all pairs by rising key.
  std::optional<std::string> metadata(const std::string& key) const {
    const char* const text = ::BNNSExtArrayFileMetadata(handle_, key.c_str());
    return text ? std::optional<std::string>(text) : std::nullopt;
  }
  std::vector<Metadata> metadata() const {
    std::vector<Metadata> all(::BNNSExtArrayFileMetadataCount(handle_));
    for (std::size_t i = 0; i < all.size(); ++i) {
      ::BNNSExtMetadata pair{};
      check(::BNNSExtArrayFileMetadataAt(handle_, i, &pair), "ArrayFile::metadata", "BNNSExtArrayFileMetadataAt");
      all[i] = {pair.key, pair.value};
    }
    return all;
  }

 private:
  [[noreturn]] static void refuse(const char* where, const char* function) {
    detail::refused(-1, where, function, Error::Code::arrayDescriptorInvalidData);
  }
  static void check(int status, const char* where, const char* function) {
    if (status != 0) refuse(where, function);
  }
  ::BNNSExtArrayFile handle_;
};

}  // namespace bnns

#endif

// The bytes of a file in order, unpacked on the way when the file is gzip (told by its first two bytes, not its name).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace bnns::tool {

class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& file);  // throws DataError where it cannot be read
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills up to `size` bytes; fewer mean the end of the data. Throws DataError on damaged gzip data.
  std::size_t read(std::uint8_t* out, std::size_t size);

  // Bytes in all, where they are known without reading (plain files).
  std::optional<std::uint64_t> total() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All bytes of a file. Throws DataError where they are more than kMaxDataBytes.
std::string read_all(const std::filesystem::path& file);

// What a file seems to be by its beginning: "a PNG file", "a JPEG file", "an IDX file", "a safetensors file", "a CSV
// file" or "a text"; "" where nobody can tell, and where it cannot be read.
std::string file_kind(const std::filesystem::path& file);

}  // namespace bnns::tool

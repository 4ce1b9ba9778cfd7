// What the tests of saving and loading share: a folder that goes away, files as bytes, headers as text.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "bnns/bnns_extensions.h"
#include "bnns/bnns_io.h"

namespace bnns::io::testing {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/bnns-io-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  size_t files() const {
    return size_t(std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  ASSERT_TRUE(out.good()) << path;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The length, the header and the elements, as the format has them.
inline std::string file_of(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

struct Close {
  void operator()(BNNSExtArrayFile file) const { BNNSExtArrayFileClose(file); }
};
using File = std::unique_ptr<BNNSExtArrayFile_, Close>;

inline File open_file(const std::string& path, BNNSExtArrayFileMode mode = BNNSExtArrayFileRead) {
  return File(BNNSExtArrayFileOpen(path.c_str(), mode));
}

inline BNNSNDArrayDescriptor describe(BNNSDataLayout layout, std::initializer_list<size_t> sizes, BNNSDataType type,
                                      void* data, std::initializer_list<size_t> strides = {}) {
  BNNSNDArrayDescriptor d{};
  d.layout = layout;
  std::copy(sizes.begin(), sizes.end(), d.size);
  std::copy(strides.begin(), strides.end(), d.stride);
  d.data_type = type;
  d.data = data;
  return d;
}

inline std::vector<size_t> shape_of(BNNSExtArrayFile file, const char* name) {
  BNNSExtArrayInfo info{};
  EXPECT_EQ(BNNSExtArrayFileInfo(file, BNNSExtArrayFileFind(file, name), &info), 0) << BNNSExtLastError();
  return {info.shape, info.shape + info.rank};
}

}  // namespace bnns::io::testing

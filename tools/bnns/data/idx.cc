#include "tools/bnns/data/idx.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "tools/bnns/data/byte_source.h"

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw DataError(file.string() + ": " + what);
}

std::string hex(std::uint32_t word) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", static_cast<unsigned>(word));
  return text.data();
}

struct IdxFile {
  std::vector<std::uint32_t> dims;
  std::vector<std::uint8_t> data;
};

// "5 x 28 x 28": the dimensions as the file states them.
std::string shape_text(const std::vector<std::uint32_t>& dims) {
  std::string text;
  for (std::uint32_t d : dims) text += (text.empty() ? "" : " x ") + std::to_string(d);
  return text;
}

// Product of the dimensions, refused before it can wrap: dims are below 2^32 and the limit is 2^31.
std::uint64_t checked_bytes(const fs::path& file, const std::vector<std::uint32_t>& dims) {
  std::uint64_t bytes = 1;
  for (std::uint32_t d : dims) {
    if (d == 0) fail(file, "dimensions are " + shape_text(dims) + ", expected each to be at least 1");
  }
  for (std::uint32_t d : dims) {
    bytes *= d;
    if (bytes > kMaxDataBytes) {
      fail(file, "dimensions are " + shape_text(dims) + ", expected at most " + std::to_string(kMaxDataBytes) +
                     " bytes in all");
    }
  }
  return bytes;
}

IdxFile read_idx(const fs::path& file, std::size_t rank) {
  ByteSource source(file);
  const std::size_t header_bytes = 4 * (1 + rank);
  std::array<std::uint8_t, 16> header{};
  const std::size_t got = source.read(header.data(), header_bytes);
  const auto word = [&](std::size_t i) {
    return std::uint32_t{header[4 * i]} << 24 | std::uint32_t{header[4 * i + 1]} << 16 |
           std::uint32_t{header[4 * i + 2]} << 8 | std::uint32_t{header[4 * i + 3]};
  };
  const std::uint32_t expected = 0x00000800u + static_cast<std::uint32_t>(rank);
  if (got >= 4 && word(0) != expected) {
    fail(file, "magic number is " + hex(word(0)) + ", expected " + hex(expected) + " (bytes in " +
                   std::to_string(rank) + (rank == 1 ? " dimension)" : " dimensions)"));
  }
  if (got < header_bytes) {
    fail(file, "header is " + std::to_string(got) + " bytes, expected " + std::to_string(header_bytes));
  }

  IdxFile idx;
  for (std::size_t i = 1; i <= rank; ++i) idx.dims.push_back(word(i));
  const std::uint64_t bytes = checked_bytes(file, idx.dims);
  const auto wrong_length = [&](const std::string& found) {
    fail(file, "data is " + found + " bytes, expected " + std::to_string(bytes) + " = " + shape_text(idx.dims));
  };
  if (source.total() && *source.total() - header_bytes != bytes) {
    wrong_length(std::to_string(*source.total() - header_bytes));
  }

  // A gzip file does not say how long it is: grow with what arrives instead of trusting the header.
  constexpr std::uint64_t kChunk = 1 << 20;
  while (idx.data.size() < bytes) {
    const std::size_t have = idx.data.size();
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, bytes - have));
    idx.data.resize(have + want);
    const std::size_t read = source.read(idx.data.data() + have, want);
    if (read < want) wrong_length(std::to_string(have + read));
  }
  std::uint8_t extra = 0;
  if (source.read(&extra, 1) != 0) wrong_length("more than " + std::to_string(bytes));
  return idx;
}

// The file as its usual spellings have it; empty where there is none.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& name, const std::string& kind) {
  for (const char* separator : {"-", "."}) {  // the second is what some archives unpack to
    for (const char* ending : {"", ".gz"}) {
      fs::path file = folder / (name + separator + kind + ending);
      std::error_code error;
      if (fs::exists(file, error)) return file;
    }
  }
  return std::nullopt;
}

std::optional<Dataset> read_set(const fs::path& folder, const std::string& set) {
  const auto images = find_file(folder, set + "-images", "idx3-ubyte");
  const auto labels = find_file(folder, set + "-labels", "idx1-ubyte");
  if (!images && !labels) return std::nullopt;
  if (!images) fail(*labels, "has no partner, expected " + set + "-images-idx3-ubyte[.gz] beside it");
  if (!labels) fail(*images, "has no partner, expected " + set + "-labels-idx1-ubyte[.gz] beside it");
  return read_idx_pair(*images, *labels);
}

Dataset slice(const Dataset& all, std::size_t begin, std::size_t end) {
  const auto pixel = [&](std::size_t i) { return all.pixels.begin() + static_cast<std::ptrdiff_t>(i * all.inputs()); };
  const auto label = [&](std::size_t i) { return all.labels.begin() + static_cast<std::ptrdiff_t>(i); };
  return {all.rows, all.columns, {pixel(begin), pixel(end)}, {label(begin), label(end)}};
}

}  // namespace

Dataset read_idx_pair(const fs::path& images, const fs::path& labels) {
  IdxFile pictures = read_idx(images, 3), classes = read_idx(labels, 1);
  if (pictures.dims[0] != classes.dims[0]) {
    fail(labels, "holds " + std::to_string(classes.dims[0]) + " labels, expected " + std::to_string(pictures.dims[0]) +
                     ", one for each picture of " + images.filename().string());
  }
  for (std::size_t i = 0; i < classes.data.size(); ++i) {
    if (classes.data[i] >= kClasses) {
      fail(labels, "label " + std::to_string(i) + " is " + std::to_string(classes.data[i]) + ", expected 0 to 9");
    }
  }
  return {pictures.dims[1], pictures.dims[2], std::move(pictures.data), {classes.data.begin(), classes.data.end()}};
}

Dataset read_idx_images(const fs::path& images) {
  IdxFile pictures = read_idx(images, 3);
  return {pictures.dims[1], pictures.dims[2], std::move(pictures.data),
          std::vector<std::uint16_t>(pictures.dims[0], std::uint16_t{0})};
}

fs::path labels_beside(const fs::path& images) {
  std::string name = images.filename().string();
  for (const auto& [from, to] : {std::pair("images", "labels"), std::pair("idx3", "idx1")}) {
    const std::size_t at = name.find(from);
    if (at == name.npos) return {};
    name.replace(at, std::string(from).size(), to);
  }
  const bool packed = name.size() > 3 && name.compare(name.size() - 3, 3, ".gz") == 0;
  for (const std::string& each : {name, packed ? name.substr(0, name.size() - 3) : name + ".gz"}) {
    const fs::path file = images.parent_path() / each;
    std::error_code error;
    if (fs::is_regular_file(file, error)) return file;
  }
  return {};
}

DataSplit read_idx_folder(const fs::path& folder, float test_share, bool share_given) {
  std::error_code error;
  if (!fs::exists(folder, error)) fail(folder, error ? "cannot be read: " + error.message() : "no such folder");
  if (!fs::is_directory(folder, error)) fail(folder, "is not a folder, expected one with IDX files");
  fs::directory_iterator listed(folder, error);
  if (error) fail(folder, "cannot be read: " + error.message());
  auto train = read_set(folder, "train"), test = read_set(folder, "t10k");
  if (!train && !test) {
    fail(folder,
         "holds no IDX files, expected train-images-idx3-ubyte[.gz] and train-labels-idx1-ubyte[.gz], or "
         "the same names with t10k; or a folder of PNG or JPEG files for each class");
  }
  if (train && test) {
    if (share_given) fail(folder, "has t10k digits to hold out: leave out --test-share");
    if (train->rows != test->rows || train->columns != test->columns) {
      fail(folder, "train pictures are " + std::to_string(train->rows) + " x " + std::to_string(train->columns) +
                       ", t10k pictures " + std::to_string(test->rows) + " x " + std::to_string(test->columns) +
                       ", expected the same size");
    }
    return {std::move(*train), std::move(*test), folder.string() + ", train and t10k pairs", digit_names()};
  }
  const Dataset all = std::move(train ? *train : *test);
  if (all.count() < 2) fail(folder, "holds 1 digit, expected at least 2: one part is held out");
  const auto millionths = static_cast<std::size_t>(std::lround(1e6 * static_cast<double>(test_share)));
  const std::size_t cut = std::clamp<std::size_t>(all.count() * (1000000 - millionths) / 1000000, 1, all.count() - 1);
  return {slice(all, 0, cut), slice(all, cut, all.count()), folder.string() + ", the last of them held out",
          digit_names()};
}

}  // namespace bnns::tool

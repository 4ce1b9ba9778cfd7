#include "tools/bnns/data/own_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/bnns/data/idx.h"
#include "tools/bnns/data/picture.h"
#include "tools/bnns/data/prng.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHoldOutStream = 3;  // 1 and 2 are the order's and the shifts'

void refuse_option(bool given, const char* option, const fs::path& path, const char* what) {
  if (given) throw DataError(std::string(option) + " is for " + what + ", and " + path.string() + " is not one");
}

}  // namespace

std::vector<bool> held_out(const std::vector<std::uint16_t>& labels, std::size_t classes, float share,
                           std::uint64_t seed, const std::string& source) {
  std::vector<std::vector<std::uint32_t>> of_class(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) of_class[labels[i]].push_back(static_cast<std::uint32_t>(i));
  std::vector<bool> held(labels.size());
  for (std::size_t k = 0; k < classes; ++k) {
    std::vector<std::uint32_t>& items = of_class[k];
    if (items.size() < 2) continue;
    const auto part =
        static_cast<std::size_t>(std::lround(static_cast<double>(share) * static_cast<double>(items.size())));
    Prng(seed, kHoldOutStream, k).shuffle(items);
    for (std::size_t i = 0; i < std::clamp<std::size_t>(part, 1, items.size() - 1); ++i) held[items[i]] = true;
  }
  if (std::find(held.begin(), held.end(), true) == held.end()) {
    throw DataError(source + ": every class has one example, expected two or more: one part is held out");
  }
  return held;
}

DataSplit read_own_data(const fs::path& path, const DataOptions& options) {
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) {
    throw DataError(path.string() + ": no such folder or file");
  }
  if (fs::is_regular_file(path, error)) {
    const std::string name = path.filename().string();
    if (picture_format(path.string()) != PictureKind::none || name.find("-ubyte") != name.npos) {
      throw DataError(path.string() + ": is one file of several, expected the folder that they lie in");
    }
    refuse_option(options.size != 0, "--size", path, "a folder of pictures");
    refuse_option(options.text && !options.target.empty(), "--target", path, "a CSV file");
    return options.text ? read_text(path, options) : read_table(path, options);
  }
  refuse_option(!options.target.empty(), "--target", path, "a CSV file");
  if (has_class_folders(path)) return read_picture_folder(path, options);
  refuse_option(options.size != 0, "--size", path, "a folder of pictures");
  return read_idx_folder(path, options.test_share, options.share_given);
}

}  // namespace bnns::tool

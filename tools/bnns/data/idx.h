// Reader of MNIST-style IDX files, plain or gzip.
//
// An images file is: magic 0x00000803, count, rows, columns (big-endian 32-bit words), then count x rows x columns
// bytes. A labels file is: magic 0x00000801, count, then count bytes. Nothing may follow. Every length is checked
// before memory is taken for it, so a damaged or hostile header costs no more memory than the file has bytes.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

// What is wrong with the data, in one line that names the file, what was found and what was expected.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Most bytes one file may hold once unpacked: 30 times the largest MNIST-style set in common use.
inline constexpr std::uint64_t kMaxIdxBytes = std::uint64_t{1} << 31;

// Reads one images file and its labels file. Throws DataError.
Dataset read_idx_pair(const std::filesystem::path& images, const std::filesystem::path& labels);

// Reads one images file alone; every label is 0.
Dataset read_idx_images(const std::filesystem::path& images);

// The labels file that belongs to an images file by its name and lies beside it; empty where there is none.
std::filesystem::path labels_beside(const std::filesystem::path& images);

// Reads a folder: the train and t10k pairs where both are there; a single pair is split 80 : 20 in file order.
// Names are train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-..., each with or without ".gz". Throws DataError.
DataSplit read_idx_folder(const std::filesystem::path& folder);

}  // namespace bnns::tool

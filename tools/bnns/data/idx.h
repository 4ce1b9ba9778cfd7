// Reader of MNIST-style IDX files, plain or gzip.
//
// An images file is: magic 0x00000803, count, rows, columns (big-endian 32-bit words), then count x rows x columns
// bytes. A labels file is: magic 0x00000801, count, then count bytes. Nothing may follow. Every length is checked
// before memory is taken for it, so a damaged or hostile header costs no more memory than the file has bytes.
#pragma once

#include <filesystem>
#include <string>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

// Reads one images file and its labels file. Throws DataError.
Dataset read_idx_pair(const std::filesystem::path& images, const std::filesystem::path& labels);

// Reads one images file alone; every label is 0.
Dataset read_idx_images(const std::filesystem::path& images);

// The labels file that belongs to an images file by its name and lies beside it; empty where there is none.
std::filesystem::path labels_beside(const std::filesystem::path& images);

// Reads a folder: the train and t10k pairs where both are there; of a single pair the last `test_share` is held out.
// Names are train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-..., each with or without ".gz". A share that was
// given is refused where both pairs are there. Throws DataError.
DataSplit read_idx_folder(const std::filesystem::path& folder, float test_share = 0.2f, bool share_given = false);

}  // namespace bnns::tool

// The data that a user names: a folder of IDX files, a folder of pictures, or a table.
//
// A folder of pictures has one sub-folder for each class, whose name is the class's; PNG and JPEG files lie in them.
// Two sub-folders "train" and "test" with such folders in them are the two parts. A table is a CSV file, a text any
// file in UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/bnns/data/dataset.h"

namespace bnns::tool {

struct DataOptions {
  std::uint64_t seed = 1;    // of the choice what is held out
  float test_share = 0.2f;   // held out of data without a part of its own for that
  std::size_t size = 0;      // pictures are scaled to size x size pixels; 0: they have one size
  bool text = false;         // a file is a text, not a table
  std::string target{};      // a table's column of the class, by name or counted from 1; "": the last
  bool share_given = false;  // by the user, who is then told where it has no meaning
};

// Throws DataError.
DataSplit read_own_data(const std::filesystem::path& path, const DataOptions& options);

// Whether a folder has class folders, or train and test.
bool has_class_folders(const std::filesystem::path& folder);
// The pictures in the class folders of `folder`, whose names are among the classes.
struct LabelledFile {
  std::filesystem::path file;
  std::uint16_t label;
};
std::vector<LabelledFile> labelled_pictures(const std::filesystem::path& folder,
                                            const std::vector<std::string>& classes);
DataSplit read_picture_folder(const std::filesystem::path& folder, const DataOptions& options);
DataSplit read_table(const std::filesystem::path& file, const DataOptions& options);

// A table for a network that was trained on one with these columns and classes, scaled as that was. Its class column
// may be missing: `labelled` says so.
Dataset read_table_like(const std::filesystem::path& file, const Columns& columns,
                        const std::vector<std::string>& classes, bool* labelled);

// The last part of a text is held out. Windows have kTextSteps characters.
inline constexpr std::size_t kTextSteps = 64;
DataSplit read_text(const std::filesystem::path& file, const DataOptions& options);
// The characters of a text as a network with these classes has them, and their windows, which may be none.
std::vector<std::uint8_t> read_text_like(const std::filesystem::path& file, const std::vector<std::string>& classes);
Dataset windows_of(const std::vector<std::uint8_t>& symbols, std::size_t classes, std::size_t steps);
// "space" for " ", and back.
std::string character_name(const std::string& character);
std::string named_character(const std::string& name);
std::string text_of(const std::vector<std::uint8_t>& symbols, const std::vector<std::string>& classes);

// Which items are held out: `share` of each class, chosen by the seed; at least one of each class with two or more, and
// never all of one. Throws DataError, in the name of `source`, where nothing would be.
std::vector<bool> held_out(const std::vector<std::uint16_t>& labels, std::size_t classes, float share,
                           std::uint64_t seed, const std::string& source);

}  // namespace bnns::tool

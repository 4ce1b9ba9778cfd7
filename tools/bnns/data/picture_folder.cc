#include <algorithm>
#include <map>
#include <utility>

#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/data/picture.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw DataError(file.string() + ": " + what);
}

// What a folder holds but for hidden files, by name.
std::vector<fs::path> listed(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) fail(folder, "cannot be read: " + error.message());
  std::vector<fs::path> all;
  for (const fs::directory_entry& each : entries) {
    if (each.path().filename().string()[0] != '.') all.push_back(each.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> all = listed(folder);
  std::error_code error;
  all.erase(std::remove_if(all.begin(), all.end(), [&](const fs::path& p) { return !fs::is_directory(p, error); }),
            all.end());
  return all;
}

void append_files(std::vector<LabelledFile>& all, const fs::path& of_class, std::size_t label) {
  const std::size_t before = all.size();
  for (const fs::path& file : listed(of_class)) {
    std::error_code error;
    if (fs::is_directory(file, error)) fail(file, "is a folder, expected PNG or JPEG files in each class folder");
    if (!fs::is_regular_file(file, error)) fail(file, "is no regular file, expected PNG or JPEG files");
    all.push_back({file, static_cast<std::uint16_t>(label)});
  }
  if (all.size() == before) fail(of_class, "holds no pictures: add PNG or JPEG files, or remove this class folder");
}

// The pictures of the class folders in `folder`, class by class. `classes` gets their names, or, where it has them, is
// what they must be.
std::vector<LabelledFile> entries_of(const fs::path& folder, std::vector<std::string>& classes) {
  std::vector<LabelledFile> all;
  std::vector<std::string> names;
  for (const fs::path& of_class : folders_in(folder)) {
    if (names.size() == kMaxClasses) fail(folder, format("has more than %zu class folders", kMaxClasses));
    append_files(all, of_class, names.size());
    names.push_back(of_class.filename().string());
  }
  if (names.size() < 2) {
    fail(folder, format("holds %zu class folder, expected two or more: what would be told apart?", names.size()));
  }
  if (!classes.empty() && names != classes) fail(folder, "has other class folders than train beside it");
  classes = names;
  return all;
}

// The size and the channels of all pictures: what they say of themselves, before memory is taken for any.
struct Shape {
  std::size_t rows = 0, columns = 0, channels = 1;
};

Shape shape_of(const fs::path& folder, const std::vector<const LabelledFile*>& entries, std::size_t size) {
  Shape shape{size, size, 1};
  for (const LabelledFile* each : entries) {
    const PictureKind kind = picture_kind(each->file.string());
    if (kind.colour) shape.channels = 3;
    if (size != 0) continue;
    if (shape.rows == 0) shape.rows = kind.rows, shape.columns = kind.columns;
    if (kind.rows != shape.rows || kind.columns != shape.columns) {
      fail(each->file, "is of " + size_text(kind.rows, kind.columns) + " pixels, " +
                           entries.front()->file.filename().string() + " of " + size_text(shape.rows, shape.columns) +
                           ": --size N scales all pictures to N x N");
    }
  }
  const std::uint64_t each = std::uint64_t{shape.rows} * shape.columns * shape.channels;
  if (each * entries.size() > kMaxDataBytes) {
    fail(folder, "its pictures have " + std::to_string(each * entries.size()) + " bytes, expected at most " +
                     std::to_string(kMaxDataBytes) + ": --size N scales all pictures to N x N");
  }
  return shape;
}

void append(Dataset& set, const LabelledFile& entry, std::size_t size) {
  const std::string name = entry.file.string();
  Picture picture = read_picture(name, set.channels);
  if (size != 0) picture = scaled(picture, size, size);
  if (picture.pixels.size() != set.inputs()) fail(entry.file, "changed while it was read");
  set.pixels.insert(set.pixels.end(), picture.pixels.begin(), picture.pixels.end());
  set.labels.push_back(entry.label);
  set.origins.push_back(printable((entry.file.parent_path().filename() / entry.file.filename()).string()));
}

}  // namespace

bool has_class_folders(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && !folders_in(folder).empty();
}

std::vector<LabelledFile> labelled_pictures(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<LabelledFile> all;
  for (const fs::path& of_class : folders_in(folder)) {
    const auto found = std::find(classes.begin(), classes.end(), printable(of_class.filename().string()));
    if (found == classes.end()) {
      if (has_class_folders(of_class)) fail(of_class, "is no class of the network; if its sub-folders are, name it");
      std::string names;
      for (const std::string& each : classes) names += (names.empty() ? "" : ", ") + each;
      if (names.size() > 120) names = names.substr(0, 120) + " ...";
      fail(of_class, "is no class of the network, expected folders named " + names);
    }
    append_files(all, of_class, static_cast<std::size_t>(found - classes.begin()));
  }
  return all;
}

DataSplit read_picture_folder(const fs::path& folder, const DataOptions& options) {
  std::error_code error;
  const auto part = [&](const char* name) {
    return fs::is_directory(folder / name, error) && !folders_in(folder / name).empty();
  };
  const bool parts = part("train") && part("test");
  if (parts && options.share_given) fail(folder, "has a folder test to hold out: leave out --test-share");
  DataSplit data;
  data.noun = "pictures";
  std::vector<LabelledFile> training = entries_of(parts ? folder / "train" : folder, data.classes), testing;
  if (parts) testing = entries_of(folder / "test", data.classes);
  std::vector<const LabelledFile*> all;
  for (const auto* entries : {&training, &testing}) {
    for (const LabelledFile& each : *entries) all.push_back(&each);
  }
  const Shape shape = shape_of(folder, all, options.size);
  for (Dataset* set : {&data.train, &data.test}) {
    set->rows = shape.rows, set->columns = shape.columns, set->channels = shape.channels;
    set->classes = data.classes.size();
  }
  std::vector<std::uint16_t> labels;
  for (const LabelledFile& each : training) labels.push_back(each.label);
  const std::vector<bool> held =
      parts ? std::vector<bool>(labels.size())
            : held_out(labels, data.classes.size(), options.test_share, options.seed, folder.string());
  for (std::size_t i = 0; i < training.size(); ++i) append(held[i] ? data.test : data.train, training[i], options.size);
  for (const LabelledFile& each : testing) append(data.test, each, options.size);
  data.source = printable(folder.string()) + format(", %zu classes of pictures", data.classes.size());
  for (std::string& name : data.classes) name = printable(name);
  return data;
}

}  // namespace bnns::tool

#include "tools/bnns/predict_command.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/idx.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/data/picture.h"
#include "tools/bnns/model/cnn.h"
#include "tools/bnns/model/train.h"
#include "tools/bnns/model/weights_file.h"
#include "tools/bnns/progress.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kShown = 3;  // classes of a picture

// The items of one file.
struct Source {
  std::string file;
  Dataset set;
  bool labelled = false, single = false;  // single: a PNG or JPEG file
};

[[noreturn]] void wrong_size(const std::string& file, const std::string& what, const Dataset& set, const Dataset& like,
                             const char* remedy = "") {
  throw DataError(file + ": " + what + " of " + size_text(set.rows, set.columns) + " pixels, expected " +
                  size_text(like.rows, like.columns) + remedy);
}

// One PNG or JPEG file.
Source read_one(const std::string& file, const ItemKind& kind) {
  const Dataset& like = kind.like;
  Source source{file, {}, false, true};
  Dataset& set = source.set;
  const PictureKind there = picture_kind(file);
  set.rows = there.rows, set.columns = there.columns, set.labels = {0};
  if (kind.sized && !kind.scaled && (set.rows != like.rows || set.columns != like.columns)) {
    wrong_size(file, "is", set, like, ": scale it, or train with --size N, and predict scales");
  }
  Picture picture = read_picture(file, like.channels);
  if (kind.scaled) picture = scaled(picture, like.rows, like.columns);
  set.rows = picture.rows, set.columns = picture.columns, set.pixels = std::move(picture.pixels);
  set.channels = like.channels, set.classes = like.classes;
  return source;
}

// A PNG or JPEG file, or the pictures of an IDX file.
Source read_pictures(const std::string& file, const ItemKind& kind) {
  if (picture_format(file) != PictureKind::none) return read_one(file, kind);
  const Dataset& like = kind.like;
  if (const std::string found = file_kind(file); !found.empty() && found != "an IDX file") {
    throw DataError(file + ": is " + found + "; this network reads pictures (PNG, JPEG or IDX files)");
  }
  const std::filesystem::path labels = labels_beside(file);
  Source source{file, {}, !labels.empty(), false};
  Dataset& set = source.set;
  set = source.labelled ? read_idx_pair(file, labels) : read_idx_images(file);
  if (kind.sized && (set.rows != like.rows || set.columns != like.columns)) {
    wrong_size(file, "pictures are", set, like);
  }
  if (like.channels != 1) throw DataError(file + ": the network takes pictures in colour, expected PNG or JPEG files");
  for (const std::uint16_t label : set.labels) {
    if (label >= like.classes)
      throw DataError(file + format(": its labels go to %d, the network's classes to %zu", label, like.classes - 1));
  }
  set.channels = like.channels, set.classes = like.classes;
  return source;
}

// The pictures of a folder with a sub-folder for each class, as one set.
Source read_folder(const std::string& folder, ItemKind kind) {
  Source source{folder, {}, true, false};
  Dataset& set = source.set;
  for (const LabelledFile& each : labelled_pictures(folder, kind.classes)) {
    const std::string file = each.file.string();
    const Dataset one = read_one(file, kind).set;
    kind.like.rows = set.rows = one.rows, kind.like.columns = set.columns = one.columns, kind.sized = true;
    if (set.pixels.size() > kMaxDataBytes) throw DataError(folder + ": has more than 2 GB of pixels");
    set.pixels.insert(set.pixels.end(), one.pixels.begin(), one.pixels.end());
    set.labels.push_back(each.label);
    set.origins.push_back(printable((each.file.parent_path().filename() / each.file.filename()).string()));
  }
  set.channels = kind.like.channels, set.classes = kind.like.classes;
  return source;
}

std::vector<Source> read_sources(const PredictCommand& command, ItemKind& kind) {
  std::vector<Source> sources;
  for (const std::string& file : command.files) {
    std::error_code error;
    const bool is_folder = std::filesystem::is_directory(file, error);
    if (is_folder && (kind.is_table() || !has_class_folders(file))) {
      throw DataError(file + ": is a folder, expected " +
                      (kind.is_table() ? "CSV files"
                                       : "PNG files, JPEG files, a folder with a sub-folder for each class, or a file "
                                         "of IDX pictures in it"));
    }
    if (kind.is_table()) {
      const std::string found = file_kind(file);
      if (!found.empty() && found != "a CSV file" && found != "a text") {
        throw DataError(file + ": is " + found + "; this network reads rows of CSV files");
      }
      Source source{file, {}, false, false};
      source.set = read_table_like(file, kind.columns, kind.classes, &source.labelled);
      sources.push_back(std::move(source));
      continue;
    }
    sources.push_back(is_folder ? read_folder(file, kind) : read_pictures(file, kind));
    Dataset& set = sources.back().set;
    // Without a word of the file the first picture decides.
    kind.like.rows = set.rows, kind.like.columns = set.columns, kind.sized = true;
    if (command.invert) {
      for (std::uint8_t& pixel : set.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
    }
  }
  return sources;
}

// The last layer, or the only one that sees pixels, says how large the pictures are; looked at before there is a
// network.
void check_fit(const WeightsFile& file, const Dataset& set) {
  const std::string model = file.model();
  if (model == "resnet") return;  // takes any size
  const bool cnn = model == "cnn";
  const char* const name = cnn ? "fc.weight" : "fc1.weight";
  const std::size_t inputs =
      cnn ? Cnn::kChannels[Cnn::kStages - 1] * (set.rows / 2 / 2) * (set.columns / 2 / 2) : set.inputs();
  if (const std::size_t there = file.shape(name).back(); there != inputs) {
    const std::string items = set.is_pictures() ? "pictures of " + size_text(set.rows, set.columns) + " pixels"
                                                : format("rows of %zu numbers", set.columns);
    throw DataError(file.path() + format(": %s has %zu columns, expected %zu for ", name, there, inputs) + items);
  }
}

// The most likely classes first.
std::vector<std::size_t> most_likely(const float* probabilities, std::size_t classes) {
  std::vector<std::size_t> order(classes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, classes));
  std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
    return probabilities[a] > probabilities[b] || (probabilities[a] == probabilities[b] && a < b);
  });
  order.erase(end, order.end());
  return order;
}

struct Counts {
  std::size_t right = 0, labelled = 0;
};

std::string base_name(const Source& source) {
  const std::filesystem::path path = std::filesystem::path(source.file).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

// "7.png", "cat/7.png", "line 12", or the picture's number in its file
std::string item_name(const Source& source, std::size_t i) {
  if (source.single) return base_name(source);
  return source.set.origins.empty() ? std::to_string(i) : source.set.origins[i];
}

// As wide as the longest name, but for very long ones.
std::size_t width_of(const std::vector<std::string>& names) {
  std::size_t width = 1;
  for (const std::string& each : names) width = std::max(width, std::min<std::size_t>(each.size(), 16));
  return width;
}

// "  17  7  99.81 %  1   0.12 %  9   0.05 %  is 1"; without the last word 40 columns where names have one letter
std::string line_of(const Source& source, std::size_t i, std::size_t name_width, const float* p,
                    const std::vector<std::string>& names) {
  const std::string name = item_name(source, i);
  const bool numbered = !source.single && source.set.origins.empty();
  const std::string space(name_width - std::min(name_width, name.size()), ' ');
  std::string line = numbered ? space + name : name + space;
  const std::vector<std::size_t> best = most_likely(p, names.size());
  const std::size_t width = width_of(names);
  for (const std::size_t c : best) {
    line += "  " + names[c] + std::string(width - std::min(width, names[c].size()), ' ') +
            format(" %6.2f %%", 100 * static_cast<double>(p[c]));
  }
  if (source.labelled && best[0] != source.set.labels[i]) line += "  is " + names[source.set.labels[i]];
  return line;
}

nlohmann::ordered_json json_of(const Source& source, std::size_t i, const float* p,
                               const std::vector<std::string>& names) {
  nlohmann::ordered_json out;
  out["file"] = source.file;
  if (!source.single) out["index"] = i;
  if (!source.set.origins.empty()) out["origin"] = source.set.origins[i];
  const std::vector<std::size_t> best = most_likely(p, names.size());
  out["class"] = best[0];
  out["name"] = names[best[0]];
  out["probability"] = p[best[0]];
  for (const std::size_t c : best) out["top"].push_back({{"class", c}, {"name", names[c]}, {"probability", p[c]}});
  if (source.labelled) out["label"] = source.set.labels[i];
  return out;
}

}  // namespace

int run_predict(const PredictCommand& command) {
  const WeightsFile file(command.weights);
  TrainOptions options;
  options.model = file.model();
  options.threads = command.threads;
  if (options.model == "mlp" || options.model == "lstm") options.hidden = file.hidden();
  ItemKind kind = read_item_kind(file);
  if (command.invert && (kind.is_table() || options.model == "lstm")) {
    throw DataError("--invert is for pictures, and " + command.weights + " takes none");
  }
  if (options.model == "lstm") return predict_texts(command, options, file, kind);
  if (command.generate != 0) throw DataError(command.weights + ": is no lstm, expected one for --generate");
  const std::vector<Source> sources = read_sources(command, kind);
  const std::vector<std::string>& names = kind.classes;
  const Dataset& first = sources.front().set;
  check_items(options, first);
  check_fit(file, first);
  const std::unique_ptr<Network> network = make_network(options, first, kTestBatch);
  file.load(*network);

  const std::size_t columns = terminal_columns(stdout);
  const auto line = [&](const std::string& text) {
    if (!command.json) put(stdout, wrapped(text, columns, kNoteIndent) + "\n");
  };
  if (!command.quiet) line("network    " + network_name(options, first) + " of " + command.weights);
  auto pictures = nlohmann::ordered_json::array();
  Counts counts;
  const bool any_labels = std::any_of(sources.begin(), sources.end(), [](const Source& s) { return s.labelled; });
  for (const Source& source : sources) {
    const std::vector<float> probabilities = predict_all(*network, source.set);
    if (!source.single && !command.quiet) {
      line((kind.is_table() ? "rows       " : "pictures   ") + base_name(source) + ": " + grouped(source.set.count()) +
           (source.labelled ? ", with labels" : ", without labels"));
    }
    std::size_t name_width = 4;
    for (const std::string& each : source.set.origins) {
      name_width = std::max(name_width, std::min<std::size_t>(each.size(), 32));
    }
    std::string text;
    for (std::size_t i = 0; i < source.set.count(); ++i) {
      const float* p = &probabilities[i * names.size()];
      if (source.labelled) {
        counts.right += most_likely(p, names.size())[0] == source.set.labels[i] ? 1 : 0;
        ++counts.labelled;
      }
      if (command.json) pictures.push_back(json_of(source, i, p, names));
      if (command.json) continue;
      if (!command.quiet) text += wrapped(line_of(source, i, name_width, p, names), columns, kNoteIndent) + "\n";
      if (command.quiet && !any_labels)
        text += item_name(source, i) + "  " + names[most_likely(p, names.size())[0]] + "\n";
    }
    if (!text.empty()) put(stdout, text);
  }
  const double accuracy =
      counts.labelled != 0 ? static_cast<double>(counts.right) / static_cast<double>(counts.labelled) : 0;
  if (counts.labelled != 0) {
    line("accuracy   " + percent(accuracy) + " (" + grouped(counts.right) + " of " + grouped(counts.labelled) + ")");
  }
  if (command.json) {
    nlohmann::ordered_json out;
    out["network"] = network_name(options, first);
    out["weights"] = command.weights;
    out["classes"] = names;
    out["pictures"] = std::move(pictures);
    out["accuracy"] = counts.labelled != 0 ? nlohmann::ordered_json(accuracy) : nlohmann::ordered_json();
    put(stdout, out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  return 0;
}

}  // namespace bnns::tool

#include "tools/bnns/predict_command.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "tools/bnns/data/idx.h"
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

// The pictures of one file.
struct Source {
  std::string file;
  Dataset set;
  bool labelled = false, single = false;  // single: a PNG file
};

Source read_source(const std::string& file, std::size_t rows, std::size_t columns) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw DataError(file + ": is a folder, expected PNG files, or a file of IDX pictures in it");
  }
  Source source{file, {}, false, is_png(file)};
  if (source.single) {
    Picture picture = read_png(file, rows, columns);
    source.set = {picture.rows, picture.columns, std::move(picture.pixels), {0}};
    return source;
  }
  const std::filesystem::path labels = labels_beside(file);
  source.labelled = !labels.empty();
  source.set = source.labelled ? read_idx_pair(file, labels) : read_idx_images(file);
  if (rows != 0 && (source.set.rows != rows || source.set.columns != columns)) {
    throw DataError(file + format(": pictures are of %zu x %zu pixels, expected %zu x %zu", source.set.rows,
                                  source.set.columns, rows, columns));
  }
  return source;
}

std::vector<Source> read_sources(const PredictCommand& command, const WeightsFile& file) {
  std::size_t rows = 0, columns = 0;
  if (file.text("rows") != nullptr) rows = file.number("rows"), columns = file.number("columns");
  std::vector<Source> sources;
  for (const std::string& each : command.pictures) {
    sources.push_back(read_source(each, rows, columns));
    Dataset& set = sources.back().set;
    rows = set.rows, columns = set.columns;  // without a word of the file the first picture decides
    if (command.invert) {
      for (std::uint8_t& pixel : set.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
    }
  }
  return sources;
}

// The last layer, or the only one that sees pixels, says how large the pictures are; looked at before there is a
// network.
void check_fit(const WeightsFile& file, const Dataset& set) {
  const bool cnn = file.model() == "cnn";
  const char* const name = cnn ? "fc.weight" : "fc1.weight";
  const std::size_t inputs =
      cnn ? Cnn::kChannels[Cnn::kStages - 1] * (set.rows / 2 / 2) * (set.columns / 2 / 2) : set.pixels_per_image();
  if (const std::size_t there = file.shape(name).back(); there != inputs) {
    throw DataError(file.path() + format(": %s has %zu columns, expected %zu for pictures of %zu x %zu pixels", name,
                                         there, inputs, set.rows, set.columns));
  }
}

std::array<std::size_t, kShown> most_likely(const float* probabilities) {
  std::array<std::size_t, kClasses> order;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  return {order[0], order[1], order[2]};
}

struct Counts {
  std::size_t right = 0, labelled = 0;
};

std::string base_name(const Source& source) {
  return std::filesystem::path(source.file).filename().string();
}

// "  17  7  99.81 %  1   0.12 %  9   0.05 %  is 1"; without the last word 40 columns
std::string line_of(const Source& source, std::size_t i, const float* p) {
  const std::string name = source.single ? base_name(source) : std::to_string(i);
  std::string line(4 - std::min<std::size_t>(4, name.size()), ' ');
  line += name;
  const auto best = most_likely(p);
  for (const std::size_t c : best) line += format("  %zu %6.2f %%", c, 100 * static_cast<double>(p[c]));
  if (source.labelled && best[0] != source.set.labels[i]) line += format("  is %d", source.set.labels[i]);
  return line;
}

nlohmann::ordered_json json_of(const Source& source, std::size_t i, const float* p) {
  nlohmann::ordered_json out;
  out["file"] = source.file;
  if (!source.single) out["index"] = i;
  const auto best = most_likely(p);
  out["class"] = best[0];
  out["probability"] = p[best[0]];
  for (const std::size_t c : best) out["top"].push_back({{"class", c}, {"probability", p[c]}});
  if (source.labelled) out["label"] = source.set.labels[i];
  return out;
}

}  // namespace

int run_predict(const PredictCommand& command) {
  const WeightsFile file(command.weights);
  TrainOptions options;
  options.model = file.model();
  options.threads = command.threads;
  if (options.model == "mlp") options.hidden = file.hidden();
  const std::vector<Source> sources = read_sources(command, file);
  const Dataset& first = sources.front().set;
  check_pictures(options, first);
  check_fit(file, first);
  const std::unique_ptr<Network> network = make_network(options, first.rows, first.columns, kTestBatch);
  file.load(*network);

  const std::size_t columns = terminal_columns(stdout);
  const auto line = [&](const std::string& text) {
    if (!command.json) put(stdout, wrapped(text, columns, kNoteIndent) + "\n");
  };
  if (!command.quiet) line("network    " + network_name(options, first) + " of " + command.weights);
  auto pictures = nlohmann::ordered_json::array();
  Counts counts;
  for (const Source& source : sources) {
    const std::vector<float> probabilities = predict_all(*network, source.set);
    if (!source.single && !command.quiet) {
      line("pictures   " + base_name(source) + ": " + grouped(source.set.count()) +
           (source.labelled ? ", with labels" : ", without labels"));
    }
    std::string text;
    for (std::size_t i = 0; i < source.set.count(); ++i) {
      const float* p = &probabilities[i * kClasses];
      if (source.labelled) counts.right += most_likely(p)[0] == source.set.labels[i] ? 1 : 0, ++counts.labelled;
      if (command.json) pictures.push_back(json_of(source, i, p));
      if (!command.json && !command.quiet) text += wrapped(line_of(source, i, p), columns, kNoteIndent) + "\n";
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
    out["pictures"] = std::move(pictures);
    out["accuracy"] = counts.labelled != 0 ? nlohmann::ordered_json(accuracy) : nlohmann::ordered_json();
    put(stdout, out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  return 0;
}

}  // namespace bnns::tool

// `bnns predict` for networks that foresee the next character.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/own_data.h"
#include "tools/bnns/model/network.h"
#include "tools/bnns/predict_command.h"
#include "tools/bnns/progress.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
int predict_texts(const PredictCommand& command, const TrainOptions& options, const WeightsFile& file,
                  const ItemKind& kind) {
  std::vector<std::vector<std::uint8_t>> texts;
  for (const std::string& each : command.files) {
    if (const std::string found = file_kind(each); !found.empty() && found != "a text" && found != "a CSV file") {
      throw DataError(each + ": is " + found + "; this network reads texts");
    }
    texts.push_back(read_text_like(each, kind.classes));
  }
  const std::unique_ptr<Network> network = make_network(options, kind.like, kTestBatch);
  file.load(*network);
  const std::size_t columns = terminal_columns(stdout), steps = kind.like.steps;
  const auto line = [&](const std::string& text) {
    if (!command.json) put(stdout, wrapped(text, columns, kNoteIndent) + "\n");
  };
  if (!command.quiet) line("network    " + network_name(options, kind.like) + " of " + command.weights);
  nlohmann::ordered_json out;
  out["network"] = network_name(options, kind.like);
  out["weights"] = command.weights;
  std::size_t right = 0, all = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Dataset set = windows_of(texts[i], kind.classes.size(), steps);
    right += count_right(predict_all(*network, set), set), all += set.labels.size();
    const std::vector<std::uint8_t> more =
        generate(*network, texts[i], command.generate, kind.classes.size(), steps, command.seed);
    if (!command.quiet) {
      line("text       " + std::filesystem::path(command.files[i]).filename().string() + ": " +
           grouped(texts[i].size()) + " characters");
    }
    if (!command.json && !more.empty()) put(stdout, "\n" + text_of(more, kind.classes) + "\n\n");
    out["texts"].push_back({{"file", command.files[i]}, {"generated", text_of(more, kind.classes)}});
  }
  const double accuracy = all != 0 ? static_cast<double>(right) / static_cast<double>(all) : 0;
  if (all != 0) {
    line("accuracy   " + percent(accuracy) + " of the next characters (" + grouped(right) + " of " + grouped(all) +
         ")");
  }
  out["accuracy"] = all != 0 ? nlohmann::ordered_json(accuracy) : nlohmann::ordered_json();
  if (command.json) put(stdout, out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  return 0;
}

}  // namespace bnns::tool

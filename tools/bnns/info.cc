#include "tools/bnns/info.h"

#include <bnns/bnns_extensions.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/bnns/machine.h"
#include "tools/bnns/terminal.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

struct Symbol {
  const char* name;
  const char* types;
  const char* note;
};

// The library's own list: the one that docs/bnns.md is written from.
constexpr Symbol kSymbols[] = {
#define BNNS_SYMBOL(name, group, types, note) {#name, types, note},
#include "src/c_api/symbols.h"
#undef BNNS_SYMBOL
};

// The machine's best set: ask for the highest there is and see what is granted, then put the limit back.
std::string best_isa() {
  const std::string now = BNNSExtGetISA();
  if (BNNSExtSetMaxISA("amx") != 0) return now;
  const std::string best = BNNSExtGetISA();
  BNNSExtSetMaxISA(now.c_str());
  return best;
}

}  // namespace

void print_info(bool json, bool list_all) {
  const std::string chosen = BNNSExtGetISA(), best = best_isa();
  const Machine machine = this_machine();
  const auto settings = settings_in_force();
  const std::size_t threads = BNNSExtGetNumThreads();

  if (json) {
    nlohmann::ordered_json out;
    out["version"] = BNNSExtVersion();
    out["isa"] = chosen;
    out["best_isa"] = best;
    out["threads"] = threads;
    out["threads_from"] = source_of_threads(threads);
    out["cpu"] = machine.cpu;
    out["cores"] = machine.cores;
    out["cores_allowed"] = machine.allowed;
    out["cores_quota"] = machine.quota > 0 ? nlohmann::ordered_json(machine.quota) : nlohmann::ordered_json();
    out["gpus"] = machine.gpus;
    auto& set = out["settings"] = nlohmann::ordered_json::object();
    for (const auto& [name, value] : settings) set[name] = value;
    auto& functions = out["functions"] = nlohmann::ordered_json::array();
    for (const Symbol& s : kSymbols) functions.push_back({{"name", s.name}, {"types", s.types}, {"note", s.note}});
    // A variable may hold any bytes.
    put(stdout, out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    return;
  }
  const std::size_t columns = terminal_columns(stdout);
  const auto line = [&](const std::string& text) { put(stdout, wrapped(text, columns, 17) + "\n"); };
  line(std::string("OpenBNNS         ") + BNNSExtVersion());
  line("instruction set  " + chosen +
       (chosen == best ? ", the best of this machine" : " (limited; this machine has " + best + ")"));
  line("threads          " + std::to_string(threads) + ", from " + source_of_threads(threads));
  line("CPU              " + (machine.cpu.empty() ? "not named by the system" : machine.cpu));
  line("cores            " + std::to_string(machine.cores) +
       (machine.allowed < machine.cores ? ", of which this process may use " + std::to_string(machine.allowed) : "") +
       (machine.quota > 0 ? format("; its container may use the time of %.3g", machine.quota) : ""));
  for (const std::string& gpu : machine.gpus) line("GPU              " + gpu);
  if (machine.gpus.empty()) line("GPU              none with a driver");
  for (const auto& [name, value] : settings) line("setting          " + name + "=" + value);
  if (settings.empty()) line("setting          none in the environment");
  line("functions        " + std::to_string(std::size(kSymbols)) + (list_all ? "" : " (bnns info --all lists them)"));
  if (!list_all) return;
  for (const Symbol& s : kSymbols) {
    const std::string about = std::string(s.types) + (*s.note != '\0' ? "; " : "") + s.note;
    put(stdout, columns != 0 && columns < 80 ? s.name + wrapped("\n  " + about, columns, 2) + "\n"
                                             : wrapped(format("  %-44s ", s.name) + about, columns, 6) + "\n");
  }
}

}  // namespace bnns::tool

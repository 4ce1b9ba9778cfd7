#include "tools/bnns/info.h"

#include <bnns/bnns_extensions.h>

#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

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

  if (json) {
    nlohmann::ordered_json out;
    out["version"] = BNNSExtVersion();
    out["isa"] = chosen;
    out["best_isa"] = best;
    out["threads"] = BNNSExtGetNumThreads();
    auto& functions = out["functions"] = nlohmann::ordered_json::array();
    for (const Symbol& s : kSymbols) functions.push_back({{"name", s.name}, {"types", s.types}, {"note", s.note}});
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("OpenBNNS         %s\n", BNNSExtVersion());
  std::printf("instruction set  %s%s\n", chosen.c_str(),
              chosen == best ? ", the best of this machine" : (" (limited; this machine has " + best + ")").c_str());
  std::printf("threads          %zu\n", BNNSExtGetNumThreads());
  std::printf("functions        %zu%s\n", std::size(kSymbols), list_all ? "" : " (bnns info --all lists them)");
  for (const Symbol& s : kSymbols) {
    if (list_all) std::printf("  %-44s %s%s%s\n", s.name, s.types, *s.note != '\0' ? "; " : "", s.note);
  }
}

}  // namespace bnns::tool

#include "tools/bnns/info.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bnns::tool {
namespace {

enum class State { offered, not_offered };

struct Symbol {
  const char* name;
  State state;
  const char* note;
};

// The library's own list: the one that docs/bnns.md is written from.
constexpr Symbol kSymbols[] = {
#define BNNS_SYMBOL(name, group, state, note) {#name, State::state, note},
#include "src/c_api/symbols.h"
#undef BNNS_SYMBOL
};

// The machine's best set: ask for the highest there is and see what is granted, then put the limit back.
std::string best_isa() {
  const std::string now = BNNSExtGetISA();
  if (BNNSExtSetMaxISA("avx512") != 0) return now;
  const std::string best = BNNSExtGetISA();
  BNNSExtSetMaxISA(now.c_str());
  return best;
}

void print_names(const char* title, const std::vector<const Symbol*>& symbols) {
  std::printf("\n%s\n", title);
  for (const Symbol* s : symbols) {
    std::printf("  %s%s%s\n", s->name, *s->note != '\0' ? "  " : "", s->note);
  }
}

}  // namespace

void print_info(bool json, bool list_all) {
  std::vector<const Symbol*> offered, not_offered;
  for (const Symbol& s : kSymbols) (s.state == State::offered ? offered : not_offered).push_back(&s);
  std::vector<std::string> families;  // of what is not offered, in the order of the list
  for (const Symbol* s : not_offered) {
    if (std::find(families.begin(), families.end(), s->note) == families.end()) families.emplace_back(s->note);
  }
  const std::string chosen = BNNSExtGetISA(), best = best_isa();

  if (json) {
    const auto names = [](const std::vector<const Symbol*>& symbols) {
      auto list = nlohmann::ordered_json::array();
      for (const Symbol* s : symbols) list.push_back(s->name);
      return list;
    };
    nlohmann::ordered_json out;
    out["version"] = BNNSExtVersion();
    out["isa"] = chosen;
    out["best_isa"] = best;
    out["threads"] = BNNSExtGetNumThreads();
    out["offered"] = names(offered);
    out["not_offered"] = names(not_offered);
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("OpenBNNS         %s\n", BNNSExtVersion());
  std::printf("instruction set  %s%s\n", chosen.c_str(),
              chosen == best ? ", the best of this machine" : (" (limited; this machine has " + best + ")").c_str());
  std::printf("threads          %zu\n", BNNSExtGetNumThreads());
  std::printf("functions        %zu of %zu are offered\n", offered.size(), offered.size() + not_offered.size());
  if (list_all) {
    print_names("Offered", offered);
    print_names("Not offered yet", not_offered);
  } else if (!families.empty()) {
    std::printf("not offered yet  ");
    std::size_t column = 17;
    for (std::size_t i = 0; i < families.size(); ++i) {
      const std::string word = families[i] + (i + 1 < families.size() ? ";" : "");
      if (i > 0 && column + 1 + word.size() > 100) {
        std::printf("\n%17s", "");
        column = 17;
      } else if (i > 0) {
        std::printf(" ");
        ++column;
      }
      std::printf("%s", word.c_str());
      column += word.size();
    }
    std::printf("\n                 (bnns info --all lists every function)\n");
  }
}

}  // namespace bnns::tool

// What `bnns bench` times without a problem of the user's: some layers of each family, small enough that all of them
// take less than a minute.
#pragma once

#include <string>
#include <vector>

namespace bnns::tool {

struct Family {
  const char* name;
  std::vector<const char*> problems;  // as bench/description.h reads them
};
const std::vector<Family>& bench_families();
std::vector<std::string> family_names();

}  // namespace bnns::tool

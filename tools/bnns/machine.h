// What `bnns info` says of the machine and of the settings of the environment.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace bnns::tool {

struct Machine {
  std::string cpu;                // as the kernel names it; "" where it does not
  std::size_t cores = 0;          // that are online
  std::size_t allowed = 0;        // that this process may use (affinity mask)
  double quota = 0;               // cores' worth of time that its container may take; 0: no limit
  std::vector<std::string> gpus;  // NVIDIA's, as their driver names them
};
Machine this_machine();

// The variables of the environment that the library reads and that are set, with their values.
std::vector<std::pair<std::string, std::string>> settings_in_force();

// Where the number of threads came from, in words.
std::string source_of_threads(std::size_t threads);

}  // namespace bnns::tool

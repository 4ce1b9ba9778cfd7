// What is wrong with a user's data.
#pragma once

#include <stdexcept>

namespace bnns::tool {

// In one line that names the file, what was found and what was expected.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace bnns::tool

// openbnns.Error, for both extensions.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace openbnns {

namespace nb = nanobind;

// openbnns.Error of the function `where`.
[[noreturn]] void refuse(const std::string& where, const std::string& reason);

}  // namespace openbnns

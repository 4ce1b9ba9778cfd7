// `bnns info`: what this library is and what it can do here.
#pragma once

namespace bnns::tool {

// Writes to stdout, as text or as one JSON object.
void print_info(bool json, bool list_all);

}  // namespace bnns::tool

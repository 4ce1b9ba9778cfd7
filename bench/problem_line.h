// From what the library prints to what a row is made of:
//
//     bnns_verbose,backward,fully_connected f32 i784 o128 nobias,batch 32,gemm/tiles,avx512,2 threads,12.3 us
//
// becomes "fully_connected fully_connected dx f32 n=32 in=784 out=128" and the same with dw. Of the problem alone, as
// refusals have it, all passes are meant.
#pragma once

#include <string>
#include <vector>

namespace bnns::bench {

// Lines for Description. A line that is one already (it has an "=") is returned as it is. Throws std::runtime_error
// that says why, in one line, for what no row computes.
std::vector<std::string> descriptions_of(const std::string& line);

}  // namespace bnns::bench

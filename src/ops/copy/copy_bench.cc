// Copies and transposes in GB/s (bytes read plus bytes written), beside memcpy of the same size in the same run.
//
// Usage: copy_bench [threads]      Best of all repetitions, since neighbours only slow.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/check.h"
#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

namespace {

using bnns::bench::check;

template <class Body>
double fastest(Body&& body) {
  return bnns::bench::fastest(0.3, body);
}

BNNSNDArrayDescriptor matrix(BNNSDataLayout layout, size_t rows, size_t columns, void* data, BNNSDataType type) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = layout;
  d.size[0] = rows;
  d.size[1] = columns;
  d.data = data;
  d.data_type = type;
  return d;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : bnns::default_threads();
  BNNSFilterParameters options = {};
  options.n_threads = threads;
  std::printf("%zu threads; GB/s, and in brackets the share of memcpy on one thread\n", threads);
  for (size_t side : {64, 500, 1000, 2048, 5000}) {
    const size_t n = side * side;
    std::vector<float> x(n, 1), y(n, 2);
    std::vector<uint16_t> h(n, 3);
    const double bytes = 8e-9 * double(n);
    const double plain = bytes / fastest([&] { std::memcpy(y.data(), x.data(), 4 * n); });
    auto from = matrix(BNNSDataLayout2DFirstMajor, side, side, x.data(), BNNSDataTypeFloat32);
    auto to = matrix(BNNSDataLayout2DFirstMajor, side, side, y.data(), BNNSDataTypeFloat32);
    auto half = matrix(BNNSDataLayout2DFirstMajor, side, side, h.data(), BNNSDataTypeFloat16);
    const double copy = bytes / fastest([&] { check(BNNSCopy(&to, &from, &options)); });
    const double transpose = bytes / fastest([&] { check(BNNSTranspose(&to, &from, 0, 1, &options)); });
    const double convert = 0.75 * bytes / fastest([&] { check(BNNSCopy(&half, &from, &options)); });
    std::printf("%5zu x %-5zu memcpy %6.1f  copy %6.1f (%.2f)  transpose %6.1f (%.2f)  f32 to f16 %6.1f (%.2f)\n", side,
                side, plain, copy, copy / plain, transpose, transpose / plain, convert, convert / plain);
  }
}

// Permutations in GB/s (bytes read plus bytes written), beside BNNSCopy of as many bytes in the same run.
//
// Usage: permute_bench [threads]      Best of all repetitions, since neighbours only slow.

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
  return bnns::bench::fastest(0.2, body);
}

struct Case {
  const char* name;
  size_t batch, rank;
  size_t size[4];  // FirstMajor: the last is fastest
  size_t permutation[4];
};
// Samples of a batch; the sizes are those of known networks.
const Case kCases[] = {
    {"CHW to HWC, RGB 224", 16, 3, {3, 224, 224}, {1, 2, 0}},
    {"HWC to CHW, RGB 224", 16, 3, {224, 224, 3}, {2, 0, 1}},
    {"CHW to HWC, 64 x 56 x 56", 32, 3, {64, 56, 56}, {1, 2, 0}},
    {"HWC to CHW, 56 x 56 x 64", 32, 3, {56, 56, 64}, {2, 0, 1}},
    {"CHW to HWC, 512 x 7 x 7", 64, 3, {512, 7, 7}, {1, 2, 0}},
    {"HWC to CHW, 7 x 7 x 512", 64, 3, {7, 7, 512}, {2, 0, 1}},
    {"heads, 512 x 12 x 64", 16, 3, {512, 12, 64}, {1, 0, 2}},
    {"CHW to WHC, 64 x 56 x 56", 32, 3, {64, 56, 56}, {2, 1, 0}},
    {"rows, 64 x 56 x 56", 32, 3, {64, 56, 56}, {0, 2, 1}},
    {"4-D reversed, 24 x 28 x 26 x 30", 8, 4, {24, 28, 26, 30}, {3, 2, 1, 0}},
    {"small CHW to HWC, 16 x 14 x 14", 4, 3, {16, 14, 14}, {1, 2, 0}},
};

void run(const Case& c, BNNSDataType type, size_t threads) {
  const size_t element = (type & 0x7fff) / 8;
  size_t count = 1;
  BNNSLayerParametersPermute layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc.layout = layer.o_desc.layout = c.rank == 3 ? BNNSDataLayout3DFirstMajor : BNNSDataLayout4DFirstMajor;
  layer.i_desc.data_type = layer.o_desc.data_type = type;
  for (size_t k = 0; k < c.rank; ++k) {
    count *= c.size[k];
    layer.i_desc.size[k] = c.size[k];
    layer.o_desc.size[k] = c.size[c.permutation[k]];
    layer.permutation[k] = c.permutation[k];
  }
  BNNSFilterParameters options = {};
  options.n_threads = threads;
  const size_t total = c.batch * count;
  std::vector<unsigned char> x(total * element, 1), y(total * element, 2);
  BNNSNDArrayDescriptor from;
  std::memset(&from, 0, sizeof from);
  from.layout = BNNSDataLayoutVector;
  from.size[0] = total;
  from.data_type = type;
  BNNSNDArrayDescriptor to = from;
  from.data = x.data();
  to.data = y.data();
  BNNSFilter filter = BNNSFilterCreateLayerPermute(&layer, &options);
  if (!filter) check(-1);
  const double bytes = 2e-9 * double(total * element);
  const double copy = bytes / fastest([&] { check(BNNSCopy(&to, &from, &options)); });
  const double permute =
      bytes / fastest([&] { check(BNNSFilterApplyBatch(filter, c.batch, x.data(), 0, y.data(), 0)); });
  std::printf("%-34s %2zu bytes %6.1f MB  copy %6.1f  permute %6.1f (%.2f)\n", c.name, element,
              double(total * element) * 1e-6, copy, permute, permute / copy);
  BNNSFilterDestroy(filter);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : bnns::default_threads();
  std::printf("%zu threads; GB/s, and in brackets the share of a copy\n", threads);
  for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeInt8}) {
    for (const Case& c : kCases) run(c, type, threads);
  }
}

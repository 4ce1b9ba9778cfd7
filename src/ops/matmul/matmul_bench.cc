// Batched matrix products beside a loop of OpenBLAS's sgemm and oneDNN's batched matmul, in interleaved rounds.
//
// Usage: matmul_bench [threads] [rounds]     GFLOP/s are of the fastest round, since neighbours only slow; the ratio is
// that of ours to the best peer's: above 1 we are faster. The last cases are contractions that no peer takes as they
// are; their yardstick is the same product with plain dense operands.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

#ifdef BNNS_PEER_OPENBLAS
#include <cblas.h>
#endif
#ifdef BNNS_PEER_ONEDNN
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace {

using namespace bnns::bench;

struct Shape {
  size_t batch, m, n, k;
  bool trans_b;
  const char* name;
};
const Shape kShapes[] = {
    {64, 64, 64, 64, false, "64 x 64^3"},          {256, 32, 32, 32, false, "256 x 32^3"},
    {1000, 8, 8, 8, false, "1000 x 8^3"},          {96, 128, 128, 64, true, "attention scores"},
    {96, 128, 64, 128, false, "attention values"}, {8, 256, 256, 256, false, "8 x 256^3"},
    {2, 1024, 1024, 1024, false, "2 x 1024^3"},
};

struct Contender {
  std::string name;
  std::function<void()> call;
  double seconds = 1e9;
};

BNNSNDArrayDescriptor tensor(BNNSDataLayout layout, std::vector<size_t> size, float* data) {
  BNNSNDArrayDescriptor d = {};
  d.layout = layout;
  std::copy(size.begin(), size.end(), d.size);
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

std::vector<float> numbers(size_t n) {
  std::vector<float> v(n);
  uint32_t state = 1;
  for (float& x : v) x = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1;
  return v;
}

void must(bool ok) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", BNNSExtLastError());
  std::exit(1);
}

// Rounds of every contender in turn, each for about 2 ms.
void measure(const char* name, double flops, std::vector<Contender>& contenders, int rounds) {
  for (Contender& c : contenders) c.call();
  const double start = now();
  contenders[0].call();
  const size_t repeats = std::max<size_t>(1, static_cast<size_t>(0.002 / std::max(1e-7, now() - start)));
  for (int r = 0; r < rounds; ++r) {
    for (Contender& c : contenders) {
      settle();
      c.call();
      const double begin = now();
      for (size_t i = 0; i < repeats; ++i) c.call();
      c.seconds = std::min(c.seconds, (now() - begin) / static_cast<double>(repeats));
    }
  }
  double best_peer = 1e9;
  std::printf("%-22s", name);
  for (const Contender& c : contenders) {
    std::printf("  %s %7.1f", c.name.c_str(), 1e-9 * flops / c.seconds);
    if (&c != &contenders[0]) best_peer = std::min(best_peer, c.seconds);
  }
  if (contenders.size() > 1) std::printf("   ratio %.2f", best_peer / contenders[0].seconds);
  std::printf("\n");
  std::fflush(stdout);
}

void run_matmul(const Shape& s, size_t threads, int rounds) {
  std::vector<float> a = numbers(s.batch * s.m * s.k), b = numbers(s.batch * s.k * s.n), c(s.batch * s.m * s.n);
  std::vector<float> peer(c.size());
  const size_t b_rows = s.trans_b ? s.n : s.k, b_columns = s.trans_b ? s.k : s.n;
  const auto da = tensor(BNNSDataLayout3DFirstMajor, {s.batch, s.m, s.k}, a.data());
  const auto db = tensor(BNNSDataLayout3DFirstMajor, {s.batch, b_rows, b_columns}, b.data());
  const auto dc = tensor(BNNSDataLayout3DFirstMajor, {s.batch, s.m, s.n}, c.data());
  BNNSFilterParameters options = {};
  options.n_threads = threads;
  const ssize_t bytes = BNNSMatMulWorkspaceSize(false, s.trans_b, 1, &da, &db, &dc, &options);
  must(bytes >= 0);
  std::vector<char> workspace(static_cast<size_t>(bytes));
  std::vector<Contender> contenders;
  contenders.push_back(
      {"ours", [&] { must(BNNSMatMul(false, s.trans_b, 1, &da, &db, &dc, workspace.data(), &options) == 0); }});
#ifdef BNNS_PEER_OPENBLAS
  openblas_set_num_threads(static_cast<int>(threads));
  contenders.push_back({"openblas", [&] {
                          const int m = int(s.m), n = int(s.n), k = int(s.k);
                          for (size_t i = 0; i < s.batch; ++i) {
                            cblas_sgemm(CblasRowMajor, CblasNoTrans, s.trans_b ? CblasTrans : CblasNoTrans, m, n, k, 1,
                                        a.data() + i * s.m * s.k, k, b.data() + i * s.k * s.n, int(b_columns), 0,
                                        peer.data() + i * s.m * s.n, n);
                          }
                        }});
#endif
#ifdef BNNS_PEER_ONEDNN
  using namespace dnnl;
  omp_set_num_threads(static_cast<int>(threads));
  engine cpu(engine::kind::cpu, 0);
  stream queue(cpu);
  using tag = memory::format_tag;
  const auto dim = [](size_t x) { return static_cast<memory::dim>(x); };
  const memory::desc a_md({dim(s.batch), dim(s.m), dim(s.k)}, memory::data_type::f32, tag::abc);
  const memory::desc b_md({dim(s.batch), dim(s.k), dim(s.n)}, memory::data_type::f32, s.trans_b ? tag::acb : tag::abc);
  const memory::desc c_md({dim(s.batch), dim(s.m), dim(s.n)}, memory::data_type::f32, tag::abc);
  const matmul::primitive_desc pd(cpu, a_md, b_md, c_md);
  matmul primitive(pd);
  memory a_mem(a_md, cpu, a.data()), b_mem(b_md, cpu, b.data()), c_mem(c_md, cpu, peer.data());
  contenders.push_back(
      {"onednn", [&] {
         primitive.execute(queue, {{DNNL_ARG_SRC, a_mem}, {DNNL_ARG_WEIGHTS, b_mem}, {DNNL_ARG_DST, c_mem}});
         queue.wait();
       }});
#endif
  for (Contender& contender : contenders) contender.call();
  for (size_t i = 0; i < c.size() && contenders.size() > 1; ++i) {  // the peers compute the same thing
    if (!(std::fabs(c[i] - peer[i]) <= 1e-5f * static_cast<float>(s.k))) {
      std::fprintf(stderr, "%s: element %zu is %g and %g\n", s.name, i, double(c[i]), double(peer[i]));
      std::exit(1);
    }
  }
  measure(s.name, 2.0 * double(s.batch * s.m * s.n * s.k), contenders, rounds);
}

// A contraction beside the same number of multiply-adds with plain operands.
void run_contraction(const char* operation, std::vector<size_t> sa, std::vector<size_t> sb, std::vector<size_t> sc,
                     BNNSDataLayout (*layout)(size_t), double macs, const char* plain, std::vector<size_t> pa,
                     std::vector<size_t> pb, std::vector<size_t> pc, size_t threads, int rounds) {
  const auto count = [](const std::vector<size_t>& v) {
    size_t n = 1;
    for (size_t x : v) n *= x;
    return n;
  };
  std::vector<float> a = numbers(count(sa)), b = numbers(count(sb)), c(count(sc));
  BNNSFilterParameters options = {};
  options.n_threads = threads;
  const auto make = [&](const char* text, const std::vector<size_t>& x, const std::vector<size_t>& y,
                        const std::vector<size_t>& z, bool first_major) {
    const auto pick = [&](size_t rank) { return first_major ? BNNSDataLayout((rank << 16) | 0x8001) : layout(rank); };
    BNNSLayerParametersTensorContraction l = {};
    l.operation = text;
    l.alpha = 1;
    l.iA_desc = tensor(pick(x.size()), x, nullptr);
    l.iB_desc = tensor(pick(y.size()), y, nullptr);
    l.o_desc = tensor(pick(z.size()), z, nullptr);
    BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&l, &options);
    must(filter != nullptr);
    return filter;
  };
  BNNSFilter filter = make(operation, sa, sb, sc, false), dense = make(plain, pa, pb, pc, true);
  std::vector<Contender> contenders;
  contenders.push_back({"ours", [&] { must(BNNSFilterApplyTwoInput(filter, a.data(), b.data(), c.data()) == 0); }});
  contenders.push_back({"plain", [&] { must(BNNSFilterApplyTwoInput(dense, a.data(), b.data(), c.data()) == 0); }});
  measure(operation, 2 * macs, contenders, rounds);
  BNNSFilterDestroy(filter);
  BNNSFilterDestroy(dense);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : bnns::default_threads();
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
  std::printf("%zu threads, GFLOP/s\n", threads);
  for (const Shape& s : kShapes) run_matmul(s, threads, rounds);
  const auto first = [](size_t rank) { return BNNSDataLayout((rank << 16) | 0x8001); };
  const auto last = [](size_t rank) { return BNNSDataLayout((rank << 16) | 0x8000); };
  run_contraction("a_ijk, b_kl -> c_jil", {64, 48, 256}, {256, 256}, {48, 64, 256}, first, 48.0 * 64 * 256 * 256,
                  "a_mk, b_kn -> c_mn", {3072, 256}, {256, 256}, {3072, 256}, threads, rounds);
  run_contraction("a_ijk, b_kl -> c_jil", {12, 256, 256}, {256, 256}, {256, 12, 256}, last, 48.0 * 64 * 256 * 256,
                  "a_mk, b_kn -> c_mn", {3072, 256}, {256, 256}, {3072, 256}, threads, rounds);
  run_contraction("a_iabj, b_bka -> c_ikj", {64, 16, 32, 8}, {32, 128, 16}, {64, 128, 8}, first, 64.0 * 8 * 128 * 512,
                  "a_mk, b_kn -> c_mn", {512, 512}, {512, 128}, {512, 128}, threads, rounds);
  run_contraction("a_xyc, b_xcd -> o_xyd", {64, 64, 64}, {64, 64, 64}, {64, 64, 64}, last, 64.0 * 64 * 64 * 64,
                  "a_nik, b_nkj -> c_nij", {64, 64, 64}, {64, 64, 64}, {64, 64, 64}, threads, rounds);
}

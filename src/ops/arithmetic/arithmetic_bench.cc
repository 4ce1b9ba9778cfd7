// How fast arithmetic is, beside a copy of the same memory by the same threads in the same run.
//
//   large   6.4 M elements (32 x 64 x 56 x 56), out of cache: GB/s counts each operand once, so a copy is 8 bytes per
//   element small   what one call costs, in nanoseconds, on the caller's thread
//
// Usage: arithmetic_bench [threads]      Prints a table; best of all repetitions, since neighbours only slow.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/timing.h"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"
#include "src/core/parallel.h"

namespace {

using Sizes = std::vector<size_t>;

template <class Body>
double fastest(Body&& body, int calls = 1) {
  return bnns::bench::fastest(0.3, body, calls);
}

BNNSNDArrayDescriptor image(const Sizes& size, float* data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutImageCHW;
  for (size_t k = 0; k < 3; ++k) d.size[k] = size[k];
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

size_t product(const Sizes& s) {
  return s[0] * s[1] * s[2];
}

struct Case {
  const char* name;
  BNNSArithmeticFunction function;
  size_t batch;
  Sizes out, second;  // second empty: unary
  BNNSDescriptorType role = BNNSSample;
  BNNSActivationFunction act = BNNSActivationFunctionIdentity;
};

class Run {
 public:
  Run(const Case& c, size_t threads)
      : c_(c),
        n_(c.batch * product(c.out)),
        m_(c.second.empty() ? 0 : product(c.second) * (c.role == BNNSSample ? c.batch : 1)),
        a_(n_, 1.5f),
        b_(m_, 0.5f),
        y_(n_),
        g_(n_, 1.0f),
        da_(n_),
        db_(m_) {
    delta_a_ = image(c.out, da_.data());
    dy_ = image(c.out, g_.data());
    if (m_) delta_b_ = image(c.second, db_.data());
    BNNSArithmeticUnary u{image(c.out, nullptr), BNNSSample, image(c.out, nullptr), BNNSSample};
    BNNSArithmeticBinary b{
        image(c.out, nullptr), BNNSSample, m_ ? image(c.second, nullptr) : u.in, c.role, u.out, BNNSSample};
    BNNSLayerParametersArithmetic layer;
    BNNSFilterParameters parameters;
    std::memset(&layer, 0, sizeof layer);
    std::memset(&parameters, 0, sizeof parameters);
    layer.arithmetic_function = c.function;
    layer.arithmetic_function_fields = m_ ? static_cast<void*>(&b) : &u;
    layer.activation.function = c.act;
    parameters.n_threads = threads;
    filter_ = BNNSFilterCreateLayerArithmetic(&layer, &parameters);
  }
  ~Run() { BNNSFilterDestroy(filter_); }

  void forward() {
    if (BNNSArithmeticFilterApplyBatch(filter_, c_.batch, inputs(), in_, strides_, y_.data(), 0) != 0) fail();
  }
  void backward() {
    if (BNNSArithmeticFilterApplyBackwardBatch(filter_, c_.batch, inputs(), in_, strides_, deltas_, strides_, y_.data(),
                                               0, &dy_, 0) != 0)
      fail();
  }
  // Elements that a call reads and writes; a gradient reads dy, and what the product or the activation needs.
  size_t forward_elements() const { return 2 * n_ + m_; }
  size_t backward_elements() const {
    const bool product = c_.function == BNNSArithmeticMultiply,
               from_y = c_.act != BNNSActivationFunctionIdentity || c_.function == BNNSArithmeticExp;
    return 2 * n_ + m_ + (product ? n_ + m_ : 0) + (from_y ? n_ : 0);
  }

 private:
  size_t inputs() const { return m_ ? 2 : 1; }
  [[noreturn]] static void fail() {
    std::fprintf(stderr, "%s\n", BNNSExtLastError());
    std::exit(1);
  }

  const Case& c_;
  size_t n_, m_;
  std::vector<float> a_, b_, y_, g_, da_, db_;
  BNNSNDArrayDescriptor delta_a_, delta_b_, dy_;
  BNNSNDArrayDescriptor* deltas_[2] = {&delta_a_, &delta_b_};
  const void* in_[2] = {a_.data(), b_.data()};
  size_t strides_[2] = {0, 0};
  BNNSFilter filter_;
};

double copy_rate(size_t n, size_t threads) {
  std::vector<float> x(n, 1.0f), y(n);
  constexpr size_t kPiece = 64 * 1024;
  const double seconds = fastest([&] {
    bnns::parallel_for((n + kPiece - 1) / kPiece, threads, [&](size_t task, size_t) {
      const size_t begin = task * kPiece;
      std::memcpy(y.data() + begin, x.data() + begin, std::min(kPiece, n - begin) * sizeof(float));
    });
  });
  return 8e-9 * static_cast<double>(n) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : bnns::default_threads();
  const Sizes big = {56, 56, 64};
  const Case large[] = {
      {"add, same shape", BNNSArithmeticAdd, 32, big, big},
      {"multiply, same shape", BNNSArithmeticMultiply, 32, big, big},
      {"add scalar parameter", BNNSArithmeticAdd, 32, big, {1, 1, 1}, BNNSParameter},
      {"multiply by bias per channel", BNNSArithmeticMultiply, 32, big, {1, 1, 64}, BNNSParameter},
      {"add row of 1000, relu",
       BNNSArithmeticAdd,
       1,
       {1000, 6400, 1},
       {1000, 1, 1},
       BNNSParameter,
       BNNSActivationFunctionRectifiedLinear},
      {"add row of 1000", BNNSArithmeticAdd, 1, {1000, 6400, 1}, {1000, 1, 1}, BNNSParameter},
      {"add row of 10", BNNSArithmeticAdd, 1, {10, 640000, 1}, {10, 1, 1}, BNNSParameter},
      {"add column", BNNSArithmeticAdd, 1, {1000, 6400, 1}, {1, 6400, 1}, BNNSParameter},
      {"multiply, whole sample parameter", BNNSArithmeticMultiply, 32, big, big, BNNSParameter},
      {"square", BNNSArithmeticSquare, 32, big, {}},
      {"exp", BNNSArithmeticExp, 32, big, {}},
  };
  const double copy = copy_rate(32 * product(big), threads);
  std::printf("%zu threads, copy %.1f GB/s\n%-34s %10s %8s %10s %8s\n", threads, copy, "large", "fwd ms", "GB/s",
              "bwd ms", "GB/s");
  for (const Case& c : large) {
    Run run(c, threads);
    const double f = fastest([&] { run.forward(); }), b = fastest([&] { run.backward(); });
    std::printf("%-34s %10.3f %8.1f %10.3f %8.1f\n", c.name, f * 1e3, 4e-9 * double(run.forward_elements()) / f,
                b * 1e3, 4e-9 * double(run.backward_elements()) / b);
  }
  const Case small[] = {
      {"add 1x10", BNNSArithmeticAdd, 1, {10, 1, 1}, {10, 1, 1}},
      {"add 1x1000", BNNSArithmeticAdd, 1, {1000, 1, 1}, {1000, 1, 1}},
      {"add bias 32x10", BNNSArithmeticAdd, 32, {10, 1, 1}, {10, 1, 1}, BNNSParameter},
      {"add bias 128x128", BNNSArithmeticAdd, 128, {128, 1, 1}, {128, 1, 1}, BNNSParameter},
      {"multiply 1x1000 by scalar", BNNSArithmeticMultiply, 1, {1000, 1, 1}, {1, 1, 1}, BNNSParameter},
  };
  std::printf("\n%-34s %10s %10s\n", "small", "fwd ns", "bwd ns");
  for (const Case& c : small) {
    Run run(c, 1);
    const double f = fastest([&] { run.forward(); }, 1000), b = fastest([&] { run.backward(); }, 1000);
    std::printf("%-34s %10.0f %10.0f\n", c.name, f * 1e9, b * 1e9);
  }
  return 0;
}

// What a call costs when there is next to nothing to compute: create and destroy, apply, backward of tiny layers,
// beside PyTorch's call of the same layer; and a parallel loop of empty tasks, beside OpenMP's, which is oneDNN's and
// PyTorch's. Its workers are awake, since calls follow each other: src/core/parallel_bench.cc also lets them sleep.

#include "bench/row.h"
#include "src/core/parallel.h"

namespace bnns::bench {
namespace {

struct Layer {
  const char* name;
  std::function<Filter(Data&, size_t threads)> make;
};

BNNSNDArrayDescriptor image() {
  return describe(BNNSDataLayoutImageCHW, {8, 8, 1});
}

Filter full(Data& d, size_t threads) {
  BNNSLayerParametersFullyConnected p;
  std::memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = describe(BNNSDataLayoutVector, {64});
  p.w_desc = describe(BNNSDataLayoutRowMajorMatrix, {64, 64}, Type::f32, d["w"].data());
  const BNNSFilterParameters o = options(threads);
  return own(BNNSFilterCreateLayerFullyConnected(&p, &o));
}
Filter convolution(Data& d, size_t threads) {
  BNNSLayerParametersConvolution p;
  std::memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = image();
  p.w_desc = describe(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 1, 1}, Type::f32, d["w"].data());
  p.x_stride = p.y_stride = p.x_padding = p.y_padding = 1;
  const BNNSFilterParameters o = options(threads);
  return own(BNNSFilterCreateLayerConvolution(&p, &o));
}
Filter activation(Data&, size_t threads) {
  BNNSLayerParametersActivation p;
  std::memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = describe(BNNSDataLayoutVector, {64});
  p.activation.function = BNNSActivationFunctionTanh;
  const BNNSFilterParameters o = options(threads);
  return own(BNNSFilterCreateLayerActivation(&p, &o));
}

void add_empty_loop() {
  Row r;
  r.family = "overhead", r.op = "parallel loop", r.direction = "empty", r.shape = "a task a thread", r.quick = true;
  r.fill = [](Data& d) { d.add("y", {kMaxThreads}); };
  r.open = [](Case& c, size_t threads) {
    c.contenders.push_back({"ours",
                            [threads](Data& d) {
                              float* y = d["y"].as();
                              parallel_for(threads, threads, [y](size_t i, size_t) { y[i] = 1; });
                            },
                            ""});
#ifdef _OPENMP
    c.contenders.push_back({"OpenMP",
                            [threads](Data& d) {
                              float* y = d["y"].as();
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(threads))
                              for (size_t i = 0; i < threads; ++i) y[i] = 1;
                            },
                            ""});
#endif
  };
  rows().push_back(std::move(r));
}

// A filter of two inputs, made for one product of 4x8 and 8x16 as programs do.
BNNSLayerParametersBroadcastMatMul product_4x8x16() {
  BNNSLayerParametersBroadcastMatMul p;
  std::memset(&p, 0, sizeof p);
  p.alpha = 1;
  p.iA_desc = describe(BNNSDataLayout2DFirstMajor, {4, 8});
  p.iB_desc = describe(BNNSDataLayout2DFirstMajor, {8, 16});
  p.o_desc = describe(BNNSDataLayout2DFirstMajor, {4, 16});
  return p;
}

void add_small_product(bool create) {
  Row r;
  r.family = "overhead", r.op = "matmul 4x8x16", r.direction = create ? "create" : "forward", r.shape = "64 elements";
  r.quick = true;
  r.fill = [](Data& d) { d.add("x", {4, 8}).fill(), d.add("w", {8, 16}).fill(1, 7), d.add("y", {4, 16}); };
  r.open = [create](Case& c, size_t) {
    const auto layer = product_4x8x16();
    const auto make = [layer](Data&) { BNNSFilterDestroy(BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr)); };
    if (create) return c.contenders.push_back({"ours", make, ""});
    const Filter filter = own(BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr));
    const auto forward = [filter](Data& d) {
      check(BNNSFilterApplyTwoInput(filter.get(), d["x"].data(), d["w"].data(), d["y"].data()));
    };
    forward(c.sets[0]);
    c.contenders.push_back({"ours", forward, ""});
  };
  rows().push_back(std::move(r));
}

}  // namespace

void add_overhead_rows() {
  add_empty_loop();
  for (const bool create : {true, false}) add_small_product(create);
  const Layer layers[] = {{"fully connected 64x64", full}, {"convolution 3x3", convolution}, {"tanh", activation}};
  for (const Layer& layer : layers) {
    const bool conv = layer.name[0] == 'c', full_layer = layer.name[0] == 'f';
    for (const std::string direction : {"create", "forward", "backward"}) {
      Row r;
      r.family = "overhead", r.op = layer.name, r.direction = direction, r.shape = "64 elements", r.quick = true;
      r.fill = [=](Data& d) {
        const std::vector<size_t> shape = conv ? std::vector<size_t>{1, 1, 8, 8} : std::vector<size_t>{1, 64};
        for (const char* name : {"x", "dy"}) d.add(name, shape).fill();
        for (const char* name : {"y", "dx"}) d.add(name, shape);
        d.add("w", conv ? std::vector<size_t>{1, 1, 3, 3} : std::vector<size_t>{64, 64}).fill(1, 7);
        d.add("dw", d["w"].shape());
      };
      r.open = [=](Case& c, size_t threads) {
        const auto make = layer.make;
        if (direction == "create") {
          c.contenders.push_back({"ours", [=](Data& d) { make(d, threads); }, ""});
          return;
        }
        const Filter filter = make(c.sets[0], threads);
        const auto forward = [=](Data& d) { check(BNNSFilterApply(filter.get(), d["x"].data(), d["y"].data())); };
        const auto backward = [=](Data& d) {
          const auto vector = describe(BNNSDataLayoutVector, {64});
          auto dx = conv ? image() : vector, dy = dx;
          auto dw = conv ? describe(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 1, 1})
                         : describe(BNNSDataLayoutRowMajorMatrix, {64, 64});
          dx.data = d["dx"].data(), dy.data = d["dy"].data(), dw.data = d["dw"].data();
          check(BNNSFilterApplyBackwardBatch(filter.get(), 1, d["x"].data(), 64, &dx, 64, d["y"].data(), 64, &dy, 64,
                                             conv || full_layer ? &dw : nullptr, nullptr));
        };
        forward(c.sets[0]);
        c.contenders.push_back({"ours", direction == "forward" ? Call(forward) : Call(backward), ""});
      };
      rows().push_back(std::move(r));
    }
  }
}

}  // namespace bnns::bench

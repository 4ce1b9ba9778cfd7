// Calls without a filter.

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

Layer& begin(Layers& layers, const std::string& name) {
  layers.push_back(std::make_unique<Layer>(name));
  return *layers.back();
}

Array matrix(size_t rows, size_t columns, void* data, BNNSDataType type = BNNSDataTypeFloat32) {
  return descriptor(BNNSDataLayout2DFirstMajor, {rows, columns}, data, type);
}

constexpr size_t R = 120, C = 200, kCount = R * C;

// int f(const Array* in, Array* out, options)
template <class F>
void add_map(Layers& layers, const char* name, Array in, Array out, F&& f) {
  Layer& layer = begin(layers, name);
  size_t from = 1, to = 1;
  for (const size_t extent : in.size) from *= extent ? extent : 1;
  for (const size_t extent : out.size) to *= extent ? extent : 1;
  in.data = layer.in(from, in.data_type), out.data = layer.out(to, out.data_type);
  layer.call("call", [=](BNNSFilter, const FilterOptions* o) mutable { return f(&in, &out, o); });
}

void add_gathers(Layers& layers) {
  constexpr size_t kRows = 300;
  for (const bool scatters : {false, true}) {
    Layer& layer = begin(layers, scatters ? "scatter" : "gather");
    const Array at = vector_descriptor(kRows, layer.indices(kRows, R), BNNSDataTypeUInt32);
    const Array in = scatters ? matrix(kRows, C, layer.in(kRows * C)) : matrix(R, C, layer.in(kCount));
    const Array out = scatters ? matrix(R, C, layer.out(kCount)) : matrix(kRows, C, layer.out(kRows * C));
    layer.call("call", [=](BNNSFilter, const FilterOptions* o) {
      Array to = out;
      return scatters ? BNNSScatter(0, BNNSReduceFunctionSum, &in, &at, &to, o) : BNNSGather(0, &in, &at, &to, o);
    });
    Layer& nd = begin(layers, scatters ? "scatter nd" : "gather nd");
    const Array places = matrix(kRows, 1, nd.indices(kRows, R), BNNSDataTypeUInt32);
    const Array from = scatters ? matrix(kRows, C, nd.in(kRows * C)) : matrix(R, C, nd.in(kCount));
    const Array into = scatters ? matrix(R, C, nd.out(kCount)) : matrix(kRows, C, nd.out(kRows * C));
    nd.call("call", [=](BNNSFilter, const FilterOptions* o) {
      Array to = into;
      return scatters ? BNNSScatterND(BNNSReduceFunctionSum, &from, &places, &to, o)
                      : BNNSGatherND(&from, &places, &to, o);
    });
  }
}

void add_optimizers(Layers& layers) {
  for (const bool adam : {false, true}) {
    Layer& layer = begin(layers, adam ? "optimizer adam" : "optimizer sgd");
    constexpr size_t kTensors = 20;  // more than a list on the stack holds
    std::vector<Array> w, g, a;
    for (size_t i = 0; i < kTensors; ++i) {
      w.push_back(vector_descriptor(1000, layer.out(1000)));
      g.push_back(vector_descriptor(1000, layer.in(1000)));
    }
    for (size_t i = 0; i < (adam ? 2 : 1) * kTensors; ++i) a.push_back(vector_descriptor(1000, layer.out(1000)));
    layer.call("step", [=](BNNSFilter, const FilterOptions* o) mutable {
      Array *parameters[kTensors], *accumulators[2 * kTensors] = {};  // no allocation here: a fault would hit it
      const Array* gradients[kTensors];
      for (size_t i = 0; i < kTensors; ++i) parameters[i] = &w[i], gradients[i] = &g[i];
      for (size_t i = 0; i < a.size(); ++i) accumulators[i] = &a[i];
      union {
        char all[256];  // a changed number of the function reads other fields, perhaps more of them
        BNNSOptimizerSGDMomentumFields sgd;
        BNNSOptimizerAdamFields adam;
      } fields = {};
      if (adam) {
        fields.adam.learning_rate = 0.1f, fields.adam.beta1 = 0.9f, fields.adam.beta2 = 0.99f;
        fields.adam.time_step = 1, fields.adam.epsilon = 1e-6f, fields.adam.gradient_scale = 1;
      } else {
        fields.sgd.learning_rate = 0.1f, fields.sgd.momentum = 0.9f, fields.sgd.gradient_scale = 1;
      }
      return BNNSOptimizerStep(adam ? BNNSOptimizerFunctionAdam : BNNSOptimizerFunctionSGDMomentum,
                               static_cast<const void*>(&fields), kTensors, parameters, gradients, accumulators, o);
    });
  }
}

void add_norms(Layers& layers) {
  const Array x = matrix(R, C, nullptr);
  add_map(layers, "clip by value", x, x,
          [](const Array* in, Array* out, const FilterOptions*) { return BNNSClipByValue(out, in, -0.1f, 0.1f); });
  add_map(layers, "clip by norm", x, x,
          [](const Array* in, Array* out, const FilterOptions*) { return BNNSClipByNorm(out, in, 1, 1); });
  add_map(layers, "norm of columns", x, vector_descriptor(C, nullptr),
          [](const Array* in, Array* out, const FilterOptions*) { return BNNSComputeNorm(out, in, BNNSL2Norm, 1); });
  Layer& back = begin(layers, "norm backward");
  const void *in = back.in(kCount), *norm = back.probabilities(C);
  const Array dy = vector_descriptor(C, back.in(C)), dx = matrix(R, C, back.out(kCount));
  back.call("call", [=](BNNSFilter, const FilterOptions*) {
    Array d = dx;
    return BNNSComputeNormBackward(in, &d, norm, &dy, BNNSL2Norm, 1);
  });
  Layer& global = begin(layers, "clip by global norm");
  constexpr size_t kTensors = 30;
  std::vector<Array> from, to;
  for (size_t i = 0; i < kTensors; ++i) {
    from.push_back(vector_descriptor(2000, global.in(2000)));
    to.push_back(vector_descriptor(2000, global.out(2000)));
  }
  global.call("call", [=](BNNSFilter, const FilterOptions*) mutable {
    Array* dest[kTensors];
    const Array* src[kTensors];
    for (size_t i = 0; i < kTensors; ++i) dest[i] = &to[i], src[i] = &from[i];
    return BNNSClipByGlobalNorm(dest, src, kTensors, 1, 0);
  });
}

void add_random(Layers& layers) {
  Layer& layer = begin(layers, "random");
  const Array x = vector_descriptor(20000, layer.out(20000));
  const Array p = row_major(300, 64, layer.probabilities(64 * 300)), k = row_major(20, 64, layer.out(64 * 20));
  // A generator of its own each time: a failed call must not have taken words either, which only its results show.
  layer.call("call", [=](BNNSFilter, const FilterOptions* o) {
    Array to = x;
    BNNSRandomGenerator g = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 7, o);
    if (!g) return -1;
    const int status = BNNSRandomFillCategoricalFloat(g, &k, &p, false);
    if (status == 0) BNNSRandomFillNormalFloat(g, &to, 0, 1);
    (BNNSDestroyRandomGenerator)(g);  // in parentheses: this call is not to be changed
    return status;
  });
}

void add_neighbors(Layers& layers) {
  Layer& layer = begin(layers, "nearest neighbors");
  const void* samples = layer.in(200 * 16);
  int* at = static_cast<int*>(layer.out(200 * 5));
  void* distances = layer.out(200 * 5);
  for (const int sample : {-1, 3}) {
    layer.call(sample < 0 ? "all" : "one", [=](BNNSFilter, const FilterOptions* o) {
      BNNSNearestNeighbors store = BNNSCreateNearestNeighbors(200, 16, 5, BNNSDataTypeFloat32, o);
      if (!store) return -1;
      const int loaded = BNNSNearestNeighborsLoad(store, 200, samples);
      const int status = loaded ? loaded : BNNSNearestNeighborsGetInfo(store, sample, at, distances);
      (BNNSDestroyNearestNeighbors)(store);  // as above
      return status;
    });
  }
}

}  // namespace

void add_tensors(Layers& layers) {
  const Array x = matrix(R, C, nullptr);
  Array column_major = descriptor(BNNSDataLayout2DLastMajor, {R, C}, nullptr), half = x;
  half.data_type = BNNSDataTypeFloat16;
  add_map(layers, "copy", x, column_major,
          [](const Array* in, Array* out, const FilterOptions* o) { return BNNSCopy(out, in, o); });
  add_map(layers, "copy to f16", x, half,
          [](const Array* in, Array* out, const FilterOptions* o) { return BNNSCopy(out, in, o); });
  add_map(layers, "transpose", x, matrix(C, R, nullptr),
          [](const Array* in, Array* out, const FilterOptions* o) { return BNNSTranspose(out, in, 0, 1, o); });
  add_map(layers, "tile", x, matrix(2 * R, 3 * C, nullptr),
          [](const Array* in, Array* out, const FilterOptions* o) { return BNNSTile(in, out, o); });
  add_map(layers, "tile backward", matrix(2 * R, 3 * C, nullptr), x,
          [](const Array* in, Array* out, const FilterOptions* o) { return BNNSTileBackward(out, in, o); });
  add_map(layers, "band part", x, x,
          [](const Array* in, Array* out, const FilterOptions* o) { return BNNSBandPart(3, 4, in, out, o); });
  add_map(layers, "compare", x, matrix(R, C, nullptr, BNNSDataTypeBoolean),
          [](const Array* in, Array* out, const FilterOptions*) {
            return BNNSCompareTensor(in, in, BNNSRelationalOperatorLess, out);
          });
  add_map(layers, "shuffle", descriptor(BNNSDataLayout4DFirstMajor, {2, 16, 20, 20}, nullptr),
          descriptor(BNNSDataLayout4DFirstMajor, {2, 4, 40, 40}, nullptr),
          [](const Array* in, Array* out, const FilterOptions* o) {
            return BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, in, out, o);
          });
  add_map(layers, "quantizer", x, matrix(R, C, nullptr, BNNSDataTypeInt8),
          [](const Array* in, Array* out, const FilterOptions* o) {
            BNNSLayerParametersQuantization p = {};
            p.function = BNNSQuantizerFunctionQuantize;
            p.i_desc = *in, p.o_desc = *out;
            return BNNSDirectApplyQuantizer(&p, o, 1, 0, 0);
          });
  for (const size_t axis : {0, 1}) {
    Layer& top = begin(layers, "top k " + std::to_string(axis));
    const Array in = matrix(R, C, top.in(kCount));
    const Array best = axis == 0 ? matrix(5, C, top.out(5 * C)) : matrix(R, 5, top.out(5 * R));
    Array where = best;
    where.data = top.out(5 * C), where.data_type = BNNSDataTypeInt32;
    top.call("call", [=](BNNSFilter, const FilterOptions* o) {
      Array values = best, indices = where;
      return BNNSDirectApplyTopK(5, axis, 1, &in, 0, &values, 0, &indices, 0, o);
    });
  }
  Layer& crop = begin(layers, "crop resize");
  BNNSLayerParametersCropResize p = {};
  p.spatial_scale = 1;
  p.sampling_mode = BNNSLinearSamplingOffsetCorners;
  p.box_coordinate_mode = BNNSCenterSizeWidthFirst;
  p.method = BNNSInterpolationMethodLinear;
  float* boxes = crop.probabilities(4 * 6);
  for (int i = 0; i < 24; ++i) boxes[i] *= 20;
  const Array roi = descriptor(BNNSDataLayout2DLastMajor, {4, 6}, boxes);
  const Array picture = descriptor(BNNSDataLayout4DLastMajor, {30, 25, 8, 2}, crop.in(12000));
  const Array crops = descriptor(BNNSDataLayout5DLastMajor, {9, 9, 8, 2, 6}, crop.out(81 * 16 * 6));
  crop.call("forward", [=](BNNSFilter, const FilterOptions* o) {
    Array to = crops;
    return BNNSCropResize(&p, &picture, &roi, &to, o);
  });
  Array delta = picture;
  delta.data = crop.out(12000);
  crop.call("backward", [=](BNNSFilter, const FilterOptions* o) {
    Array to = delta;
    return BNNSCropResizeBackward(&p, &to, &roi, &crops, o);
  });
  add_gathers(layers);
  add_optimizers(layers);
  add_norms(layers);
  add_random(layers);
  add_neighbors(layers);
}

}  // namespace bnns::testing

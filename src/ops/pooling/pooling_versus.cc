// Pooling of real networks beside oneDNN (plain NCHW) and PyTorch. L2 has no peer in oneDNN: its average of the same
// shape, which is less work, stands in.

#include "bench/onednn.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

struct Shape {
  const char* name;
  size_t n, c, size, out, k, s, before, after;  // square; padding before and after
};
constexpr Shape kShapes[] = {
    {"32x64x112 k3s2p1", 32, 64, 112, 56, 3, 2, 1, 1}, {"32x192x56 k3s2", 32, 192, 56, 28, 3, 2, 0, 1},
    {"32x64x224 k2s2", 32, 64, 224, 112, 2, 2, 0, 0},  {"32x512x28 k2s2", 32, 512, 28, 14, 2, 2, 0, 0},
    {"32x480x14 k3s1p1", 32, 480, 14, 14, 3, 1, 1, 1}, {"32x2048x7 k7", 32, 2048, 7, 1, 7, 1, 0, 0},
    {"128x20x24 k2s2", 128, 20, 24, 12, 2, 2, 0, 0},
};

struct Mode {
  const char* name;
  BNNSPoolingFunction function;
  bool max, index, needs_x;  // needs_x: in backward
};
constexpr Mode kModes[] = {
    {"max", BNNSPoolingFunctionMax, true, false, true},
    {"max with indices", BNNSPoolingFunctionMax, true, true, false},
    {"average with padding", BNNSPoolingFunctionAverageCountIncludePadding, false, false, false},
    {"average", BNNSPoolingFunctionAverageCountExcludePadding, false, false, false},
    {"L2", BNNSPoolingFunctionL2Norm, false, false, true},
};

BNNSNDArrayDescriptor image(const Shape& s, size_t size, Type type, void* data = nullptr) {
  return describe(BNNSDataLayoutImageCHW, {size, size, s.c}, type, data);
}

#ifdef BNNS_PEER_ONEDNN
void add_onednn(Case& c, const Shape& s, const Mode& mode, Type type, bool backward) {
  using namespace dnnl;
  const memory::desc x = plain({s.n, s.c, s.size, s.size}, type), y = plain({s.n, s.c, s.out, s.out}, type);
  const Dims stride = dims({s.s, s.s}), kernel = dims({s.k, s.k}), none(2, 0), before = dims({s.before, s.before}),
             after = dims({s.after, s.after});
  const algorithm algorithm = mode.max ? algorithm::pooling_max
                              : mode.function == BNNSPoolingFunctionAverageCountExcludePadding
                                  ? algorithm::pooling_avg_exclude_padding
                                  : algorithm::pooling_avg_include_padding;
  const bool training = backward || mode.index;  // max for inference only keeps no indices
  const pooling_forward::primitive_desc forward(
      engine(), training ? prop_kind::forward_training : prop_kind::forward_inference, algorithm, x, y, stride, kernel,
      none, before, after, primitive_attr(), true);
  if (!forward) return;  // no kernel for this type on this CPU
  const bool l2 = mode.function == BNNSPoolingFunctionL2Norm;
  auto run = std::make_shared<Primitive>(pooling_forward(forward), forward.impl_info_str());
  run->use(DNNL_ARG_SRC, "x", x, x, Primitive::Way::in).use(DNNL_ARG_DST, "peer_y", y, y, Primitive::Way::out);
  memory workspace;
  if (mode.max && training) {
    workspace = memory(forward.workspace_desc(), engine());
    run->keep(DNNL_ARG_WORKSPACE, workspace);
  }
  if (!backward) return contend(c, run, l2 ? "" : "peer_y");
  if (mode.max) run->call(c.sets[0]);  // the indices; every set holds the same numbers
  const pooling_backward::primitive_desc pd(engine(), algorithm, x, y, stride, kernel, none, before, after, forward,
                                            primitive_attr(), true);
  if (!pd) return;
  auto back = std::make_shared<Primitive>(pooling_backward(pd), pd.impl_info_str());
  back->use(DNNL_ARG_DIFF_DST, "dy", y, y, Primitive::Way::in)
      .use(DNNL_ARG_DIFF_SRC, "peer_dx", x, x, Primitive::Way::out);
  if (mode.max) back->keep(DNNL_ARG_WORKSPACE, workspace);
  contend(c, back, l2 ? "" : "peer_dx");
}
#endif

void open(Case& c, const Shape& s, const Mode& mode, Type type, bool backward, size_t threads) {
  BNNSLayerParametersPooling p;
  std::memset(&p, 0, sizeof p);
  p.i_desc = image(s, s.size, type);
  p.o_desc = image(s, s.out, type);
  p.pooling_function = mode.function;
  p.k_width = p.k_height = s.k;
  p.x_stride = p.y_stride = s.s;
  p.pad[0] = p.pad[2] = s.before;
  p.pad[1] = p.pad[3] = s.after;
  const BNNSFilterParameters f = options(threads);
  const Filter filter = own(BNNSFilterCreateLayerPooling(&p, &f));
  const auto forward = [=](Data& d) {
    size_t* index = mode.index ? d["index"].as<size_t>() : nullptr;
    check(BNNSPoolingFilterApplyBatch(filter.get(), s.n, d["x"].data(), 0, d["y"].data(), 0, index, 0));
  };
  const auto gradient = [=](Data& d) {
    auto dx = image(s, s.size, type, d["dx"].data()), dy = image(s, s.out, type, d["dy"].data());
    const void* x = mode.needs_x ? d["x"].data() : nullptr;
    check(BNNSPoolingFilterApplyBackwardBatch(filter.get(), s.n, x, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                              mode.index ? d["index"].as<size_t>() : nullptr, 0));
  };
  if (backward && mode.index) {
    for (Data& d : c.sets) forward(d);
  }
  c.contenders.push_back({"ours", backward ? Call(gradient) : Call(forward), backward ? "dx" : "y"});
#ifdef BNNS_PEER_ONEDNN
  add_onednn(c, s, mode, type, backward);
#endif
}

void add(const Shape& s, const Mode& mode, Type type, bool backward, bool quick) {
  Row r;
  r.family = backward ? "pool_backward" : "pool_forward";
  r.op = mode.name;
  r.direction = backward ? "backward" : "forward";
  r.shape = s.name;
  r.type = kTypeNames[int(type)];
  r.quick = quick;
  const std::vector<size_t> in{s.n, s.c, s.size, s.size}, out{s.n, s.c, s.out, s.out};
  const double element = double(kTypeBytes[int(type)]), inputs = double(product(in)), outputs = double(product(out));
  r.bytes =
      element * (outputs + (backward ? inputs + (mode.needs_x ? inputs : 0) : inputs)) + (mode.index ? 8 * outputs : 0);
  r.attributes = {{"k", double(s.k)},
                  {"stride", double(s.s)},
                  {"before", double(s.before)},
                  {"after", double(s.after)},
                  {"tensor_bytes", element * inputs}};
  r.fill = [=](Data& d) {
    if (!backward || mode.max || mode.needs_x) d.add("x", in, type).fill();
    if (!backward || mode.index) d.add("y", out, type);
    if (!backward || mode.max) d.add("peer_y", out, type);
    if (mode.index) d.add("index", out, Type::u64);
    if (backward) d.add("dy", out, type).fill(), d.add("dx", in, type), d.add("peer_dx", in, type);
  };
  r.open = [=](Case& c, size_t threads) { open(c, s, mode, type, backward, threads); };
  rows().push_back(std::move(r));
}

}  // namespace

void add_pooling_rows() {
  for (const bool backward : {false, true}) {
    for (const Shape& s : kShapes) {
      for (const Mode& mode : kModes) add(s, mode, Type::f32, backward, true);
    }
    for (const Type type : {Type::bf16, Type::f16}) {
      for (const size_t mode : {0, 3}) add(kShapes[0], kModes[mode], type, backward, false);
    }
  }
}

}  // namespace bnns::bench

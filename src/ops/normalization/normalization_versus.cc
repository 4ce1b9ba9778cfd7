// Batch and layer normalization, training forward and backward, beside oneDNN and PyTorch. All read and write plain
// NCHW; oneDNN's faster kernels for channels in blocks of 16 are run too, with the changes of layout counted.

#include "bench/description.h"
#include "bench/onednn.h"
#include "bench/plain_loops.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

struct Shape {
  BNNSFilterType kind;
  size_t n, c, h, w, groups = 1;
  bool relu = false;
  Type type = Type::f32;
  bool layer() const { return kind == BNNSLayerNorm; }
  size_t parameters() const { return layer() ? c * h * w : c; }
  std::vector<size_t> x() const {
    if (layer() && h == 1 && w == 1) return {n, c};
    return {n, c, h, w};
  }
};
struct Named {
  const char* name;
  size_t n, c, size;
  bool layer = false;  // layer normalization of n rows of c
  bool relu = false;
  bool quick = true;
  Shape shape() const { return {layer ? BNNSLayerNorm : BNNSBatchNorm, n, c, size, size, 1, relu}; }
};
constexpr Named kShapes[] = {
    {"32x64x56", 32, 64, 56},
    {"32x256x56", 32, 256, 56, false, false, false},
    {"16x64x112", 16, 64, 112},
    {"32x128x28", 32, 128, 28},
    {"32x512x28", 32, 512, 28, false, false, false},
    {"32x256x14", 32, 256, 14},
    {"32x1024x14", 32, 1024, 14, false, false, false},
    {"32x512x7", 32, 512, 7},
    {"32x2048x7", 32, 2048, 7, false, false, false},
    {"1x128x57", 1, 128, 57},
    {"32x64x56 with ReLU", 32, 64, 56, false, true, true},
    {"512x768", 512, 768, 1, true, false, true},
    {"16384x768", 16384, 768, 1, true, false, false},
};

BNNSNDArrayDescriptor image(const Shape& s, void* data = nullptr) {
  return describe(BNNSDataLayoutImageCHW, {s.w, s.h, s.c}, s.type, data);
}

#ifdef BNNS_PEER_ONEDNN
template <class Forward, class Backward, class ForwardDesc, class BackwardDesc>
void add_pair(Case& c, const Shape& s, bool backward, const ForwardDesc& f, const BackwardDesc& b,
              const dnnl::memory::desc& user, const dnnl::memory::desc& wanted) {
  using dnnl::memory;
  const auto in = Primitive::Way::in, out = Primitive::Way::out;
  const memory::desc vector = plain({s.parameters()});
  const memory mean(f.mean_desc(), engine()), variance(f.variance_desc(), engine()),
      workspace(f.workspace_desc(), engine());
  const auto keep = [&](Primitive& p) {
    p.keep(DNNL_ARG_MEAN, mean).keep(DNNL_ARG_VARIANCE, variance);
    if (s.relu) p.keep(DNNL_ARG_WORKSPACE, workspace);  // where ReLU was 0
    p.use(DNNL_ARG_SRC, "x", user, wanted, in).use(DNNL_ARG_SCALE, "gamma", vector, vector, in);
  };
  auto run = std::make_shared<Primitive>(Forward(f), f.impl_info_str());
  keep(*run);
  run->use(DNNL_ARG_SHIFT, "beta", vector, vector, in).use(DNNL_ARG_DST, "peer_y", user, wanted, out);
  if (!backward) return contend(c, run, "peer_y");
  run->call(c.sets[0]);  // statistics; every set holds the same numbers
  auto back = std::make_shared<Primitive>(Backward(b), b.impl_info_str());
  keep(*back);
  if (s.layer())
    back->use(DNNL_ARG_SHIFT, "beta", vector, vector, in);  // it wants to see it; batch normalization does not
  back->use(DNNL_ARG_DIFF_DST, "dy", user, wanted, in)
      .use(DNNL_ARG_DIFF_SRC, "peer_dx", user, wanted, out)
      .keep(DNNL_ARG_DIFF_SCALE, memory(vector, engine()))
      .keep(DNNL_ARG_DIFF_SHIFT, memory(vector, engine()));
  contend(c, back, "peer_dx");
}

void add_onednn(Case& c, const Shape& s, bool backward, bool blocked) {
  using namespace dnnl;
  const float epsilon = 1e-5f;
  auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  const memory::desc x = plain(s.x(), s.type);
  if (s.layer()) {
    if (s.x().size() != 2) return;
    const memory::desc rows = plain({s.n});
    const layer_normalization_forward::primitive_desc f(engine(), prop_kind::forward_training, x, x, rows, epsilon,
                                                        flags, primitive_attr(), true);
    const layer_normalization_backward::primitive_desc b(engine(), prop_kind::backward, x, x, x, rows, epsilon, flags,
                                                         f, primitive_attr(), true);
    if (!f || !b) return;
    return add_pair<layer_normalization_forward, layer_normalization_backward>(c, s, backward, f, b, x, x);
  }
  if (s.relu) flags |= normalization_flags::fuse_norm_relu;
  const memory::desc data = blocked ? memory::desc(x.get_dims(), data_type(s.type), memory::format_tag::nChw16c) : x;
  const batch_normalization_forward::primitive_desc f(engine(), prop_kind::forward_training, data, data, epsilon, flags,
                                                      primitive_attr(), true);
  const batch_normalization_backward::primitive_desc b(engine(), prop_kind::backward, data, data, data, epsilon, flags,
                                                       f, primitive_attr(), true);
  if (!f || !b) return;
  add_pair<batch_normalization_forward, batch_normalization_backward>(c, s, backward, f, b, x, data);
}
#endif

BNNSNDArrayDescriptor parameter(const Shape& s, void* data) {
  if (!s.layer()) return describe(BNNSDataLayoutVector, {s.c}, Type::f32, data);
  return describe(BNNSDataLayoutImageCHW, {s.w, s.h, s.c}, Type::f32, data);
}

void open(Case& c, const Shape& s, bool backward, size_t threads) {
  auto filters = std::make_shared<std::map<const Data*, Filter>>();
  const auto filter = [=](Data& d) {  // one per set: training forward leaves what backward needs in it
    Filter& f = (*filters)[&d];
    if (f) return f.get();
    BNNSLayerParametersNormalization p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = p.o_desc = image(s);
    p.gamma_desc = parameter(s, d["gamma"].data());
    p.beta_desc = parameter(s, d["beta"].data());
    p.num_groups = s.groups;
    p.epsilon = 1e-5f;
    p.activation.function = s.relu ? BNNSActivationFunctionRectifiedLinear : BNNSActivationFunctionIdentity;
    const BNNSFilterParameters o = options(threads);
    f = own(BNNSFilterCreateLayerNormalization(s.kind, &p, &o));
    return f.get();
  };
  const auto forward = [=](Data& d) {
    check(BNNSNormalizationFilterApplyBatch(filter(d), s.n, d["x"].data(), 0, d["y"].data(), 0, true));
  };
  const auto gradient = [=](Data& d) {
    auto dx = image(s, d["dx"].data()), dy = image(s, d["dy"].data());
    auto dgamma = parameter(s, d["dgamma"].data()), dbeta = parameter(s, d["dbeta"].data());
    check(BNNSNormalizationFilterApplyBackwardBatch(filter(d), s.n, &dx, 0, d["y"].data(), 0, &dy, 0, &dbeta, &dgamma));
  };
  if (backward) {
    for (Data& d : c.sets) forward(d);
  }
  c.contenders.push_back({"ours", backward ? Call(gradient) : Call(forward), backward ? "dx" : "y"});
#ifdef BNNS_PEER_ONEDNN
  // With ReLU, oneDNN 3.2's gradient on plain NCHW disagrees with its own on blocked channels, with PyTorch and with
  // us.
  if (s.kind != BNNSBatchNorm && !s.layer()) return;
  if (!s.relu) add_onednn(c, s, backward, false);
  if (!s.layer()) add_onednn(c, s, backward, true);
#endif
}

void add_plain_loop(Case& c, const Shape& s, bool backward) {
  const size_t channels = s.layer() ? s.c : s.kind == BNNSGroupNorm ? s.c / s.groups : 1;
  const loops::Sets sets{s.n, s.c, s.h * s.w, s.kind == BNNSBatchNorm, channels, s.layer()};
  const auto call = [=](Data& d) {
    const float *x = d["x"].as(), *gamma = d["gamma"].as();
    if (backward)
      loops::normalize_gradient(sets, x, gamma, d["dy"].as(), d["peer_dx"].as());
    else
      loops::normalize(sets, x, gamma, d["beta"].as(), d["peer_y"].as());
  };
  c.contenders.push_back({"plain loop", call, backward ? "peer_dx" : "peer_y"});
}

void complete(Row& r, const Shape& s, bool backward, bool loop) {
  // Forward reads x and writes y; backward reads x (or what was kept of it) and dy and writes dx.
  r.bytes = double(kTypeBytes[int(s.type)]) * double(product(s.x())) * (backward ? 3 : 2);
  r.attributes = {{"kind", double(s.kind)}, {"relu", double(s.relu)}, {"groups", double(s.groups)}};
  r.fill = [=](Data& d) {
    d.add("x", s.x(), s.type).fill(2), d.add("y", s.x(), s.type);
    const std::vector<size_t> parameters{s.parameters()};
    d.add("gamma", parameters).fill(1, 3), d.add("beta", parameters).fill(1, 5);
    d.add("peer_y", s.x(), s.type);
    if (!backward) return;
    d.add("dy", s.x(), s.type).fill(1, 11), d.add("dx", s.x(), s.type), d.add("peer_dx", s.x(), s.type);
    d.add("dgamma", parameters), d.add("dbeta", parameters);
  };
  r.open = [=](Case& c, size_t threads) {
    open(c, s, backward, threads);
    if (loop) add_plain_loop(c, s, backward);
  };
}

void add(const Named& s, bool backward) {
  Row r;
  r.family = "normalization";
  r.op = s.layer ? "layer normalization" : "batch normalization";
  r.direction = backward ? "backward" : "forward";
  r.shape = s.name;
  r.quick = s.quick;
  complete(r, s.shape(), backward, false);
  rows().push_back(std::move(r));
}

Row make(const Description& d) {
  constexpr const char* ops[] = {"batch", "instance", "layer", "group"};
  constexpr BNNSFilterType kinds[] = {BNNSBatchNorm, BNNSInstanceNorm, BNNSLayerNorm, BNNSGroupNorm};
  constexpr const char* directions[] = {"forward", "backward"};
  const bool relu = d("relu", 0) != 0;
  const Shape s{kinds[find_name(ops, d.op)], d("n"), d("c"), d("h", 1), d("w", 1), d.positive("groups"), relu, d.type};
  Row r = start(d);
  complete(r, s, find_name(directions, d.direction) == 1, d.type == Type::f32 && !relu);
  return r;
}

}  // namespace

void add_normalization_rows() {
  makers()["normalization"] = make;
  for (const Named& s : kShapes) {
    for (const bool backward : {false, true}) add(s, backward);
  }
}

}  // namespace bnns::bench

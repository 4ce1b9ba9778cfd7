// Fully connected layers of real networks at batch 1, 32 and 128 beside oneDNN's inner product and PyTorch. Weights are
// plain, as callers have them and as their optimizers need them; oneDNN gets the better of reading them as they are and
// of its own layout with the change counted (the table takes the faster of its two contenders).

#include "bench/onednn.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

struct Shape {
  size_t in, out;
  bool quick;
};
// LeNet, MLP, NCF, DLRM, ResNet, RNN-T, BERT, Transformer, GNMT, VGG.
constexpr Shape kShapes[] = {
    {784, 128, true},   {128, 10, true},     {72, 72, false},     {256, 128, false},  {479, 1024, false},
    {512, 256, true},   {800, 500, false},   {768, 768, false},   {768, 3072, true},  {2048, 1000, true},
    {1024, 1024, true}, {1024, 4096, false}, {4096, 1000, false}, {4096, 4096, true}, {9216, 4096, false},
};

Call ours(size_t batch, const Shape& s, Pass pass, Type type, const std::string& prefix, size_t threads) {
  auto filters = std::make_shared<std::map<const void*, Filter>>();
  return [=](Data& d) {
    const auto array = [&](const char* name) { return d[prefix + name].data(); };
    BNNSLayerParametersFullyConnected p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = describe(BNNSDataLayoutVector, {s.in}, type);
    p.o_desc = describe(BNNSDataLayoutVector, {s.out}, type);
    p.w_desc = describe(BNNSDataLayoutRowMajorMatrix, {s.in, s.out}, type, array("w"));
    Filter& filter = (*filters)[array("w")];
    if (!filter) {
      const BNNSFilterParameters f = options(threads);
      filter = own(BNNSFilterCreateLayerFullyConnected(&p, &f));
    }
    if (pass == Pass::forward) {
      return check(BNNSFilterApplyBatch(filter.get(), batch, array("x"), s.in, array("y"), s.out));
    }
    p.o_desc.data = array("y");
    if (pass == Pass::input) p.i_desc.data = array("dx");
    if (pass == Pass::weights) p.w_desc.data = array("dw");
    check(BNNSFilterApplyBackwardBatch(filter.get(), batch, array("x"), s.in, pass == Pass::input ? &p.i_desc : nullptr,
                                       s.in, nullptr, 0, &p.o_desc, s.out, pass == Pass::weights ? &p.w_desc : nullptr,
                                       nullptr));
  };
}

#ifdef BNNS_PEER_ONEDNN
// The primitive with plain arrays throughout, or with weights as oneDNN likes them.
void add_onednn(Case& c, size_t batch, const Shape& s, Pass pass, Type type, bool own_layout) {
  using namespace dnnl;
  const memory::desc x = plain({batch, s.in}, type), y = plain({batch, s.out}, type), w = plain({s.out, s.in}, type);
  const memory::desc wanted = own_layout ? any({s.out, s.in}, type) : w;
  const inner_product_forward::primitive_desc forward(engine(), prop_kind::forward_training, x, wanted, y,
                                                      primitive_attr(), true);
  if (!forward) return;
  const auto in = Primitive::Way::in, out = Primitive::Way::out;
  std::shared_ptr<Primitive> run;
  if (pass == Pass::forward) {
    run = std::make_shared<Primitive>(inner_product_forward(forward), forward.impl_info_str());
    run->use(DNNL_ARG_SRC, "x", x, x, in)
        .use(DNNL_ARG_WEIGHTS, "w", w, forward.weights_desc(), in)
        .use(DNNL_ARG_DST, "peer_y", y, y, out);
  } else if (pass == Pass::input) {
    const inner_product_backward_data::primitive_desc pd(engine(), x, wanted, y, forward, primitive_attr(), true);
    if (!pd) return;
    run = std::make_shared<Primitive>(inner_product_backward_data(pd), pd.impl_info_str());
    run->use(DNNL_ARG_DIFF_DST, "y", y, y, in)
        .use(DNNL_ARG_WEIGHTS, "w", w, pd.weights_desc(), in)
        .use(DNNL_ARG_DIFF_SRC, "peer_dx", x, x, out);
  } else {
    const inner_product_backward_weights::primitive_desc pd(engine(), x, wanted, y, forward, primitive_attr(), true);
    if (!pd) return;
    run = std::make_shared<Primitive>(inner_product_backward_weights(pd), pd.impl_info_str());
    run->use(DNNL_ARG_SRC, "x", x, x, in)
        .use(DNNL_ARG_DIFF_DST, "y", y, y, in)
        .use(DNNL_ARG_DIFF_WEIGHTS, "peer_dw", w, pd.diff_weights_desc(), out);
  }
  if (own_layout && !run->changes_layouts()) return;  // the same thing again
  contend(c, run, std::string("peer_") + kPassResults[int(pass)]);
}
#endif

void add(const char* family, size_t batch, const Shape& s, Pass pass, Type type) {
  Row r;
  r.family = family, r.op = "fully connected", r.direction = kPassNames[int(pass)];
  r.shape = std::to_string(batch) + "x" + std::to_string(s.in) + " to " + std::to_string(s.out);
  r.type = kTypeNames[int(type)];
  r.quick = s.quick;
  r.operations = 2.0 * double(batch) * double(s.in * s.out);
  r.bytes = double(kTypeBytes[int(type)]) * double(batch * (s.in + s.out) + s.in * s.out);
  r.fill = [=](Data& d) {
    const auto fill = [&](const std::string& prefix, Type t) {
      d.add(prefix + "x", {batch, s.in}, t).fill(), d.add(prefix + "w", {s.out, s.in}, t).fill(1, 7);
      d.add(prefix + "y", {batch, s.out}, t);
      if (pass != Pass::forward) d[prefix + "y"].fill(1, 9);  // the upstream gradient
      if (pass == Pass::input) d.add(prefix + "dx", {batch, s.in}, t);
      if (pass == Pass::weights) d.add(prefix + "dw", {s.out, s.in}, t);
    };
    fill("", type);
    if (type != Type::f32) fill("f32_", Type::f32);
    d.add(std::string("peer_") + kPassResults[int(pass)], d[kPassResults[int(pass)]].shape(), type);
  };
  r.open = [=](Case& c, size_t threads) {
    c.contenders.push_back({"ours", ours(batch, s, pass, type, "", threads), kPassResults[int(pass)]});
#ifdef BNNS_PEER_ONEDNN
    add_onednn(c, batch, s, pass, type, false);
    add_onednn(c, batch, s, pass, type, true);
#endif
    if (type != Type::f32) c.contenders.push_back({"ours f32", ours(batch, s, pass, Type::f32, "f32_", threads), ""});
  };
  rows().push_back(std::move(r));
}

}  // namespace

void add_fully_connected_rows() {
  for (const size_t batch : {1, 32, 128}) {
    for (const Shape& s : kShapes) {
      for (const Pass pass : kPasses) add("fully_connected", batch, s, pass, Type::f32);
    }
  }
  for (const size_t batch : {32, 128}) {
    for (const size_t shape : {8, 9, 10, 13}) {
      for (const Pass pass : kPasses) add("bf16", batch, kShapes[shape], pass, Type::bf16);
    }
  }
}

}  // namespace bnns::bench

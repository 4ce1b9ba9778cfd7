// Fully connected layers of real networks at batch 1, 32 and 128 beside oneDNN's inner product and PyTorch. Weights are
// plain, as callers have them and as their optimizers need them; oneDNN gets the better of reading them as they are and
// of its own layout with the change counted (the table takes the faster of its two contenders).

#include "bench/description.h"
#include "bench/onednn.h"
#include "bench/plain_loops.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

constexpr float kScale = 0.0078125f;  // of Int8 weights

struct Shape {
  size_t in, out;
  bool quick, bias = false, relu = false;  // the latter two forward; such rows have no peer
};
// LeNet, MLP, NCF, DLRM, ResNet, RNN-T, BERT, Transformer, GNMT, VGG.
constexpr Shape kShapes[] = {
    {784, 128, true},   {128, 10, true},     {72, 72, false},     {256, 128, false},  {479, 1024, false},
    {512, 256, true},   {800, 500, false},   {768, 768, false},   {768, 3072, true},  {2048, 1000, true},
    {1024, 1024, true}, {1024, 4096, false}, {4096, 1000, false}, {4096, 4096, true}, {9216, 4096, false},
};

Call ours(size_t batch, const Shape& s, Pass pass, Type type, bool int8, const std::string& prefix, size_t threads) {
  auto filters = std::make_shared<std::map<const void*, Filter>>();
  return [=](Data& d) {
    const auto array = [&](const char* name) { return d[prefix + name].data(); };
    BNNSLayerParametersFullyConnected p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = describe(BNNSDataLayoutVector, {s.in}, type);
    p.o_desc = describe(BNNSDataLayoutVector, {s.out}, type);
    p.w_desc = describe(BNNSDataLayoutRowMajorMatrix, {s.in, s.out}, int8 ? Type::i8 : type, array("w"));
    if (int8) p.w_desc.data_scale = kScale;
    if (s.bias) p.bias = describe(BNNSDataLayoutVector, {s.out}, type, array("b"));
    if (s.relu) p.activation.function = BNNSActivationFunctionRectifiedLinear;
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

Call plain_loop(size_t n, const Shape& s, Pass pass, bool int8) {
  return [=](Data& d) {
    if (pass == Pass::input)
      loops::product(n, s.in, s.out, false, false, d["y"].as(), d["w"].as(), d["peer_dx"].as());
    else if (pass == Pass::weights)
      loops::product(s.out, s.in, n, true, false, d["y"].as(), d["x"].as(), d["peer_dw"].as());
    else if (int8)
      loops::product_int8(n, s.out, s.in, d["x"].as(), d["w"].as<int8_t>(), kScale, d["peer_y"].as());
    else
      loops::product(n, s.out, s.in, false, true, d["x"].as(), d["w"].as(), d["peer_y"].as());
  };
}

// Fills in what follows from the shape. `f32`: with our f32 layer beside a 16-bit one; `loop`: with the plain loop.
void complete(Row& r, size_t batch, const Shape& s, Pass pass, Type type, bool int8, bool f32, bool loop) {
  r.operations = 2.0 * double(batch) * double(s.in * s.out);
  r.bytes = double(kTypeBytes[int(type)]) * double(batch * (s.in + s.out) + s.in * s.out);
  const std::string result = std::string("peer_") + kPassResults[int(pass)];
  r.fill = [=](Data& d) {
    const auto fill = [&](const std::string& prefix, Type t) {
      d.add(prefix + "x", {batch, s.in}, t).fill();
      d.add(prefix + "w", {s.out, s.in}, int8 ? Type::i8 : t).fill(int8 ? 127 : 1, 7);
      if (s.bias) d.add(prefix + "b", {s.out}, t).fill(1, 5);
      d.add(prefix + "y", {batch, s.out}, t);
      if (pass != Pass::forward) d[prefix + "y"].fill(1, 9);  // the upstream gradient
      if (pass == Pass::input) d.add(prefix + "dx", {batch, s.in}, t);
      if (pass == Pass::weights) d.add(prefix + "dw", {s.out, s.in}, t);
    };
    fill("", type);
    if (f32) fill("f32_", Type::f32);
    d.add(result, d[kPassResults[int(pass)]].shape(), type);
  };
  r.open = [=](Case& c, size_t threads) {
    c.contenders.push_back({"ours", ours(batch, s, pass, type, int8, "", threads), kPassResults[int(pass)]});
#ifdef BNNS_PEER_ONEDNN
    if (!int8 && !s.bias && !s.relu)
      add_onednn(c, batch, s, pass, type, false), add_onednn(c, batch, s, pass, type, true);
#endif
    if (f32) c.contenders.push_back({"ours f32", ours(batch, s, pass, Type::f32, false, "f32_", threads), ""});
    if (loop) c.contenders.push_back({"plain loop", plain_loop(batch, s, pass, int8), result});
  };
}

void add(const char* family, size_t batch, const Shape& s, Pass pass, Type type) {
  Row r;
  r.family = family, r.op = "fully connected", r.direction = kPassNames[int(pass)];
  r.shape = std::to_string(batch) + "x" + std::to_string(s.in) + " to " + std::to_string(s.out);
  r.type = kTypeNames[int(type)];
  r.quick = s.quick;
  complete(r, batch, s, pass, type, false, type != Type::f32, false);
  rows().push_back(std::move(r));
}

Row make(const Description& d) {
  constexpr const char* directions[] = {"forward", "dx", "dw"};
  Row r = start(d);
  const auto pass = Pass(find_name(directions, d.direction));
  const Shape s{d("in"), d("out"), false, d("bias", 0) != 0, d("relu", 0) != 0};
  check_forward_only(d, pass, s.bias || s.relu);
  complete(r, d("n"), s, pass, d.type, d.int8, false, d.type == Type::f32 && !s.bias && !s.relu);
  if (d.op == "create") {  // a layer for one call
    r.open = [n = d("n"), open = r.open, in = d("in"), out = d("out"), type = d.type, pass](Case& c, size_t threads) {
      open(c, threads);
      c.contenders[0].call = [=](Data& set) { ours(n, {in, out, false}, pass, type, false, "", threads)(set); };
    };
  }
  return r;
}

}  // namespace

void add_fully_connected_rows() {
  makers()["fully_connected"] = make;
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

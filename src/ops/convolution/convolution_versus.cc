// Convolutions of real networks beside oneDNN and PyTorch, all of them given and giving plain NCHW: oneDNN chooses the
// layouts inside, and its changes to and from them count. bf16 rows also run our f32 layer of the same shape.

#include "bench/description.h"
#include "bench/onednn.h"
#include "bench/plain_loops.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

constexpr float kScale = 0.0078125f;  // of Int8 weights

struct Shape {
  size_t n, i, h, w, o, kh, kw, sy = 1, sx = 1, py = 0, px = 0, dy = 1, dx = 1, groups = 1;
  bool bias = false, relu = false;  // forward; such rows have no peer
  static size_t positions(size_t size, size_t pad, size_t k, size_t dilation, size_t stride) {
    const size_t reach = (k - 1) * dilation + 1;
    return size + 2 * pad < reach ? 0 : (size + 2 * pad - reach) / stride + 1;
  }
  size_t oh() const { return positions(h, py, kh, dy, sy); }
  size_t ow() const { return positions(w, px, kw, dx, sx); }
  double operations() const { return 2.0 * double(n * i / groups * o * kh * kw) * double(oh() * ow()); }
  std::vector<size_t> image(size_t c, size_t rows, size_t columns) const { return {n, c, rows, columns}; }
  std::vector<size_t> x() const { return image(i, h, w); }
  std::vector<size_t> y() const { return image(o, oh(), ow()); }
  std::vector<size_t> weights() const { return {o, i / groups, kh, kw}; }
};
struct Named {
  const char* name;
  size_t n, i, size, o, k, stride, pad, groups;
  bool quick = true;
  Shape shape() const { return {n, i, size, size, o, k, k, stride, stride, pad, pad, 1, 1, groups}; }
};
// Dense layers of ResNet-50, VGG-16 and U-Net.
constexpr Named kDense[] = {
    {"16x64x56 to 64 3x3", 16, 64, 56, 64, 3, 1, 1, 1},
    {"16x128x28 to 128 3x3", 16, 128, 28, 128, 3, 1, 1, 1},
    {"16x256x14 to 256 3x3", 16, 256, 14, 256, 3, 1, 1, 1},
    {"16x512x7 to 512 3x3", 16, 512, 7, 512, 3, 1, 1, 1},
    {"1x512x7 to 512 3x3", 1, 512, 7, 512, 3, 1, 1, 1, false},
    {"8x64x112 to 64 3x3", 8, 64, 112, 64, 3, 1, 1, 1, false},
    {"16x128x56 to 128 3x3 s2", 16, 128, 56, 128, 3, 2, 1, 1},
    {"1x32x282 to 32 3x3", 1, 32, 282, 32, 3, 1, 0, 1, false},
    {"16x256x56 to 64 1x1", 16, 256, 56, 64, 1, 1, 0, 1},
    {"16x64x56 to 256 1x1", 16, 64, 56, 256, 1, 1, 0, 1},
    {"16x1024x14 to 256 1x1", 16, 1024, 14, 256, 1, 1, 0, 1},
    {"16x256x56 to 128 1x1 s2", 16, 256, 56, 128, 1, 2, 0, 1},
    {"16x512x28 to 512 3x3 g32", 16, 512, 28, 512, 3, 1, 1, 32, false},
};
// Few channels, LeNet, depthwise (MobileNet).
constexpr Named kSmall[] = {
    {"128x1x28 to 20 5x5", 128, 1, 28, 20, 5, 1, 0, 1},
    {"128x20x12 to 50 5x5", 128, 20, 12, 50, 5, 1, 0, 1},
    {"32x1x28 to 6 5x5", 32, 1, 28, 6, 5, 1, 2, 1},
    {"32x6x14 to 16 5x5", 32, 6, 14, 16, 5, 1, 0, 1},
    {"8x3x224 to 64 7x7 s2", 8, 3, 224, 64, 7, 2, 3, 1},
    {"8x3x224 to 32 3x3 s2", 8, 3, 224, 32, 3, 2, 1, 1, false},
    {"16x128x56 depthwise", 16, 128, 56, 128, 3, 1, 1, 128},
    {"16x128x56 depthwise s2", 16, 128, 56, 128, 3, 2, 1, 128},
    {"16x32x112 depthwise", 16, 32, 112, 32, 3, 1, 1, 32, false},
    {"16x256x28 depthwise", 16, 256, 28, 256, 3, 1, 1, 256, false},
    {"16x512x14 depthwise", 16, 512, 14, 512, 3, 1, 1, 512},
    {"16x1024x7 depthwise", 16, 1024, 7, 1024, 3, 1, 1, 1024, false},
};

BNNSNDArrayDescriptor image(size_t c, size_t h, size_t w, Type type) {
  return describe(BNNSDataLayoutImageCHW, {w, h, c}, type);
}

// One call of the C interface. The bf16 and f32 layers of a row have their arrays under names of their own.
Call ours(const Shape& s, Pass pass, Type type, bool int8, const std::string& prefix, size_t threads) {
  // Filters hold their weights by pointer, and the rotation has many: one filter per set, made at the first call.
  auto filters = std::make_shared<std::map<const void*, Filter>>();
  return [=](Data& d) {
    const auto array = [&](const char* name) { return d[prefix + name].data(); };
    BNNSLayerParametersConvolution p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = image(s.i, s.h, s.w, type);
    p.o_desc = image(s.o, s.oh(), s.ow(), type);
    p.w_desc = describe(BNNSDataLayoutConvolutionWeightsOIHW, {s.kw, s.kh, s.i / s.groups, s.o}, int8 ? Type::i8 : type,
                        array("w"));
    if (int8) p.w_desc.data_scale = kScale;
    if (s.bias) p.bias = describe(BNNSDataLayoutVector, {s.o}, type, array("b"));
    if (s.relu) p.activation.function = BNNSActivationFunctionRectifiedLinear;
    Filter& filter = (*filters)[array("w")];
    if (!filter) {
      p.x_stride = s.sx, p.y_stride = s.sy, p.x_padding = s.px, p.y_padding = s.py, p.groups = s.groups;
      p.x_dilation_stride = s.dx, p.y_dilation_stride = s.dy;
      const BNNSFilterParameters f = options(threads);
      filter = own(BNNSFilterCreateLayerConvolution(&p, &f));
    }
    if (pass == Pass::forward) {
      return check(BNNSFilterApplyBatch(filter.get(), s.n, array("x"), 0, array("y"), 0));
    }
    p.o_desc.data = array("y");
    if (pass == Pass::input) p.i_desc.data = array("dx");
    if (pass == Pass::weights) p.w_desc.data = array("dw");
    check(BNNSFilterApplyBackwardBatch(filter.get(), s.n, array("x"), 0, pass == Pass::input ? &p.i_desc : nullptr, 0,
                                       nullptr, 0, &p.o_desc, 0, pass == Pass::weights ? &p.w_desc : nullptr, nullptr));
  };
}

#ifdef BNNS_PEER_ONEDNN
void add_onednn(Case& c, const Shape& s, Pass pass, Type type) {
  using namespace dnnl;
  std::vector<size_t> w_shape = s.weights();
  if (s.groups > 1) w_shape = {s.groups, s.o / s.groups, s.i / s.groups, s.kh, s.kw};
  const memory::desc x = plain(s.x(), type), y = plain(s.y(), type), w = plain(w_shape, type);
  const memory::desc any_x = any(s.x(), type), any_y = any(s.y(), type), any_w = any(w_shape, type);
  const Dims stride = dims({s.sy, s.sx}), pad = dims({s.py, s.px}), dilation = dims({s.dy - 1, s.dx - 1});
  const auto direct = algorithm::convolution_direct;
  const convolution_forward::primitive_desc forward(engine(), prop_kind::forward_training, direct, any_x, any_w, any_y,
                                                    stride, dilation, pad, pad, primitive_attr(), true);
  if (!forward) return;
  const auto in = Primitive::Way::in, out = Primitive::Way::out;
  if (pass == Pass::forward) {
    auto run = std::make_shared<Primitive>(convolution_forward(forward), forward.impl_info_str());
    run->use(DNNL_ARG_SRC, "x", x, forward.src_desc(), in)
        .use(DNNL_ARG_WEIGHTS, "w", w, forward.weights_desc(), in)
        .use(DNNL_ARG_DST, "peer_y", y, forward.dst_desc(), out);
    return contend(c, run, "peer_y");
  }
  if (pass == Pass::input) {
    const convolution_backward_data::primitive_desc pd(engine(), direct, any_x, any_w, any_y, stride, dilation, pad,
                                                       pad, forward, primitive_attr(), true);
    if (!pd) return;
    auto run = std::make_shared<Primitive>(convolution_backward_data(pd), pd.impl_info_str());
    run->use(DNNL_ARG_DIFF_DST, "y", y, pd.diff_dst_desc(), in)
        .use(DNNL_ARG_WEIGHTS, "w", w, pd.weights_desc(), in)
        .use(DNNL_ARG_DIFF_SRC, "peer_dx", x, pd.diff_src_desc(), out);
    return contend(c, run, "peer_dx");
  }
  const convolution_backward_weights::primitive_desc pd(engine(), direct, any_x, any_w, any_y, stride, dilation, pad,
                                                        pad, forward, primitive_attr(), true);
  if (!pd) return;
  auto run = std::make_shared<Primitive>(convolution_backward_weights(pd), pd.impl_info_str());
  run->use(DNNL_ARG_SRC, "x", x, pd.src_desc(), in)
      .use(DNNL_ARG_DIFF_DST, "y", y, pd.diff_dst_desc(), in)
      .use(DNNL_ARG_DIFF_WEIGHTS, "peer_dw", w, pd.diff_weights_desc(), out);
  contend(c, run, "peer_dw");
}
#endif

loops::Window window(const Shape& s) {
  return {s.n, s.i, s.h, s.w, s.o, s.oh(), s.ow(), s.kh, s.kw, s.sy, s.sx, s.py, s.px, s.dy, s.dx, s.groups};
}
Call plain_loop(const Shape& s, Pass pass, bool int8) {
  return [s = window(s), pass, int8](Data& d) {
    if (pass == Pass::input)
      loops::convolution_input(s, d["y"].as(), d["w"].as(), d["peer_dx"].as());
    else if (pass == Pass::weights)
      loops::convolution_weights(s, d["y"].as(), d["x"].as(), d["peer_dw"].as());
    else if (int8)
      loops::convolution_int8(s, d["x"].as(), d["w"].as<int8_t>(), kScale, d["peer_y"].as());
    else
      loops::convolution(s, d["x"].as(), d["w"].as(), d["peer_y"].as());
  };
}

// Fills in what follows from the shape. `f32`: with our f32 layer beside a 16-bit one; `loop`: with the plain loop.
void complete(Row& r, const Shape& s, Pass pass, Type type, bool int8, bool f32, bool loop) {
  r.operations = s.operations();
  r.bytes = double(kTypeBytes[int(type)]) * double(product(s.x()) + product(s.y()) + product(s.weights()));
  const std::pair<const char*, size_t> attributes[] = {{"sy", s.sy}, {"sx", s.sx}, {"py", s.py},   {"px", s.px},
                                                       {"dy", s.dy}, {"dx", s.dx}, {"g", s.groups}};
  for (const auto& [name, value] : attributes) r.attributes[name] = double(value);
  r.fill = [=](Data& d) {
    const auto fill = [&](const std::string& prefix, Type t) {
      d.add(prefix + "x", s.x(), t).fill();
      d.add(prefix + "w", s.weights(), int8 ? Type::i8 : t).fill(int8 ? 127 : 1, 7);
      if (s.bias) d.add(prefix + "b", {s.o}, t).fill(1, 5);
      if (pass == Pass::forward) d.add(prefix + "y", s.y(), t);
      if (pass != Pass::forward) d.add(prefix + "y", s.y(), t).fill(1, 9);  // the upstream gradient
      if (pass == Pass::input) d.add(prefix + "dx", s.x(), t);
      if (pass == Pass::weights) d.add(prefix + "dw", s.weights(), t);
    };
    fill("", type);
    if (f32) fill("f32_", Type::f32);
    const std::vector<size_t> result = pass == Pass::forward ? s.y() : pass == Pass::input ? s.x() : s.weights();
    d.add(std::string("peer_") + kPassResults[int(pass)], result, type);
  };
  r.open = [=](Case& c, size_t threads) {
    c.contenders.push_back({"ours", ours(s, pass, type, int8, "", threads), kPassResults[int(pass)]});
#ifdef BNNS_PEER_ONEDNN
    if (!int8 && !s.bias && !s.relu) add_onednn(c, s, pass, type);
#endif
    if (f32) c.contenders.push_back({"ours f32", ours(s, pass, Type::f32, false, "f32_", threads), ""});
    if (loop) {
      c.contenders.push_back({"plain loop", plain_loop(s, pass, int8), std::string("peer_") + kPassResults[int(pass)]});
    }
  };
}

void add(const char* family, const char* op, const Named& s, Pass pass, Type type) {
  Row r;
  r.family = family, r.op = op, r.direction = kPassNames[int(pass)], r.shape = s.name;
  r.type = kTypeNames[int(type)];
  r.quick = s.quick;
  complete(r, s.shape(), pass, type, false, type != Type::f32, false);
  rows().push_back(std::move(r));
}

Row make(const Description& d) {
  const size_t kh = d("kh"), kw = d("kw");
  Shape s{d("n"),           d("i"),           d("h"),     d("w"),     d("o"),     kh,         kw,
          d.positive("sy"), d.positive("sx"), d("py", 0), d("px", 0), d("dy", 1), d("dx", 1), d.positive("g")};
  s.bias = d("bias", 0) != 0, s.relu = d("relu", 0) != 0;
  if (s.oh() == 0 || s.ow() == 0) throw std::runtime_error("the kernel is larger than the image");
  constexpr const char* directions[] = {"forward", "dx", "dw"};
  const auto pass = Pass(find_name(directions, d.direction));
  check_forward_only(d, pass, s.bias || s.relu);
  Row r = start(d);
  complete(r, s, pass, d.type, d.int8, false, d.type == Type::f32 && !s.bias && !s.relu);
  return r;
}

}  // namespace

void add_convolution_rows() {
  makers()["conv"] = makers()["depthwise"] = make;
  for (const Named& s : kDense) {
    for (const Pass pass : kPasses) add("conv", "convolution", s, pass, Type::f32);
  }
  for (const Named& s : kSmall) {
    for (const Pass pass : kPasses) add("conv_small", s.groups > 1 ? "depthwise" : "convolution", s, pass, Type::f32);
  }
  for (const size_t shape : {0, 1, 2, 3, 8}) {
    for (const Pass pass : kPasses) add("bf16", "convolution", kDense[shape], pass, Type::bf16);
  }
  for (const Pass pass : kPasses) add("f16", "convolution", kDense[1], pass, Type::f16);
}

}  // namespace bnns::bench

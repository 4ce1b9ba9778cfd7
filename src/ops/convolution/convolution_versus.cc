// Convolutions of real networks beside oneDNN and PyTorch, all of them given and giving plain NCHW: oneDNN chooses the
// layouts inside, and its changes to and from them count. bf16 rows also run our f32 layer of the same shape.

#include "bench/onednn.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

struct Shape {
  const char* name;
  size_t n, i, size, o, k, stride, pad, groups;
  bool quick = true;
  size_t out() const { return (size + 2 * pad - k) / stride + 1; }
  double operations() const { return 2.0 * double(n * i / groups * o * k * k) * double(out() * out()); }
  std::vector<size_t> x() const { return {n, i, size, size}; }
  std::vector<size_t> y() const { return {n, o, out(), out()}; }
  std::vector<size_t> w() const { return {o, i / groups, k, k}; }
};
// Dense layers of ResNet-50, VGG-16 and U-Net.
constexpr Shape kDense[] = {
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
constexpr Shape kSmall[] = {
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

// One call of the C interface. The bf16 and f32 layers of a row have their arrays under names of their own.
Call ours(const Shape& s, Pass pass, Type type, const std::string& prefix, size_t threads) {
  // Filters hold their weights by pointer, and the rotation has many: one filter per set, made at the first call.
  auto filters = std::make_shared<std::map<const void*, Filter>>();
  return [=](Data& d) {
    const auto array = [&](const char* name) { return d[prefix + name].data(); };
    BNNSLayerParametersConvolution p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = describe(BNNSDataLayoutImageCHW, {s.size, s.size, s.i}, type);
    p.o_desc = describe(BNNSDataLayoutImageCHW, {s.out(), s.out(), s.o}, type);
    p.w_desc = describe(BNNSDataLayoutConvolutionWeightsOIHW, {s.k, s.k, s.i / s.groups, s.o}, type, array("w"));
    Filter& filter = (*filters)[array("w")];
    if (!filter) {
      p.x_stride = p.y_stride = s.stride, p.x_padding = p.y_padding = s.pad, p.groups = s.groups;
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
  std::vector<size_t> w_shape = s.w();
  if (s.groups > 1) w_shape = {s.groups, s.o / s.groups, s.i / s.groups, s.k, s.k};
  const memory::desc x = plain(s.x(), type), y = plain(s.y(), type), w = plain(w_shape, type);
  const memory::desc any_x = any(s.x(), type), any_y = any(s.y(), type), any_w = any(w_shape, type);
  const Dims stride = dims({s.stride, s.stride}), pad = dims({s.pad, s.pad});
  const auto direct = algorithm::convolution_direct;
  const convolution_forward::primitive_desc forward(engine(), prop_kind::forward_training, direct, any_x, any_w, any_y,
                                                    stride, pad, pad, primitive_attr(), true);
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
    const convolution_backward_data::primitive_desc pd(engine(), direct, any_x, any_w, any_y, stride, pad, pad, forward,
                                                       primitive_attr(), true);
    if (!pd) return;
    auto run = std::make_shared<Primitive>(convolution_backward_data(pd), pd.impl_info_str());
    run->use(DNNL_ARG_DIFF_DST, "y", y, pd.diff_dst_desc(), in)
        .use(DNNL_ARG_WEIGHTS, "w", w, pd.weights_desc(), in)
        .use(DNNL_ARG_DIFF_SRC, "peer_dx", x, pd.diff_src_desc(), out);
    return contend(c, run, "peer_dx");
  }
  const convolution_backward_weights::primitive_desc pd(engine(), direct, any_x, any_w, any_y, stride, pad, pad,
                                                        forward, primitive_attr(), true);
  if (!pd) return;
  auto run = std::make_shared<Primitive>(convolution_backward_weights(pd), pd.impl_info_str());
  run->use(DNNL_ARG_SRC, "x", x, pd.src_desc(), in)
      .use(DNNL_ARG_DIFF_DST, "y", y, pd.diff_dst_desc(), in)
      .use(DNNL_ARG_DIFF_WEIGHTS, "peer_dw", w, pd.diff_weights_desc(), out);
  contend(c, run, "peer_dw");
}
#endif

void add(const char* family, const char* op, const Shape& s, Pass pass, Type type) {
  Row r;
  r.family = family, r.op = op, r.direction = kPassNames[int(pass)], r.shape = s.name;
  r.type = kTypeNames[int(type)];
  r.quick = s.quick;
  r.operations = s.operations();
  r.bytes = double(kTypeBytes[int(type)]) * double(product(s.x()) + product(s.y()) + product(s.w()));
  r.attributes = {
      {"stride", double(s.stride)}, {"pad", double(s.pad)}, {"groups", double(s.groups)}, {"k", double(s.k)}};
  r.fill = [=](Data& d) {
    const auto fill = [&](const std::string& prefix, Type t) {
      d.add(prefix + "x", s.x(), t).fill(), d.add(prefix + "w", s.w(), t).fill(1, 7);
      if (pass == Pass::forward) d.add(prefix + "y", s.y(), t);
      if (pass != Pass::forward) d.add(prefix + "y", s.y(), t).fill(1, 9);  // the upstream gradient
      if (pass == Pass::input) d.add(prefix + "dx", s.x(), t);
      if (pass == Pass::weights) d.add(prefix + "dw", s.w(), t);
    };
    fill("", type);
    if (type != Type::f32) fill("f32_", Type::f32);
    const std::vector<size_t> result = pass == Pass::forward ? s.y() : pass == Pass::input ? s.x() : s.w();
    d.add(std::string("peer_") + kPassResults[int(pass)], result, type);
  };
  r.open = [=](Case& c, size_t threads) {
    c.contenders.push_back({"ours", ours(s, pass, type, "", threads), kPassResults[int(pass)]});
#ifdef BNNS_PEER_ONEDNN
    add_onednn(c, s, pass, type);
#endif
    if (type != Type::f32) c.contenders.push_back({"ours f32", ours(s, pass, Type::f32, "f32_", threads), ""});
  };
  rows().push_back(std::move(r));
}

}  // namespace

void add_convolution_rows() {
  for (const Shape& s : kDense) {
    for (const Pass pass : kPasses) add("conv", "convolution", s, pass, Type::f32);
  }
  for (const Shape& s : kSmall) {
    for (const Pass pass : kPasses) add("conv_small", s.groups > 1 ? "depthwise" : "convolution", s, pass, Type::f32);
  }
  for (const size_t shape : {0, 1, 2, 3, 8}) {
    for (const Pass pass : kPasses) add("bf16", "convolution", kDense[shape], pass, Type::bf16);
  }
  for (const Pass pass : kPasses) add("f16", "convolution", kDense[1], pass, Type::f16);
}

}  // namespace bnns::bench

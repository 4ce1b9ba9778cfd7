// Pooling of real networks beside oneDNN (plain NCHW) and PyTorch. L2 has no peer in oneDNN: its average of the same
// shape, which is less work, stands in.

#include "bench/description.h"
#include "bench/onednn.h"
#include "bench/plain_loops.h"
#include "bench/row.h"

namespace bnns::bench {
namespace {

struct Shape {
  size_t n, c, h, w, kh, kw, sy, sx, before_y, before_x, after_y, after_x, dy = 1, dx = 1;
  static size_t positions(size_t size, size_t pad, size_t k, size_t dilation, size_t stride) {
    const size_t reach = (k - 1) * dilation + 1;
    return size + pad < reach ? 0 : (size + pad - reach) / stride + 1;
  }
  size_t oh() const { return positions(h, before_y + after_y, kh, dy, sy); }
  size_t ow() const { return positions(w, before_x + after_x, kw, dx, sx); }
  std::vector<size_t> image(size_t rows, size_t columns) const { return {n, c, rows, columns}; }
  std::vector<size_t> x() const { return image(h, w); }
  std::vector<size_t> y() const { return image(oh(), ow()); }
};
struct Named {
  const char* name;
  size_t n, c, size, k, s, before, after;  // square; padding before and after
  Shape shape() const { return {n, c, size, size, k, k, s, s, before, before, after, after}; }
};
constexpr Named kShapes[] = {
    {"32x64x112 k3s2p1", 32, 64, 112, 3, 2, 1, 1}, {"32x192x56 k3s2", 32, 192, 56, 3, 2, 0, 1},
    {"32x64x224 k2s2", 32, 64, 224, 2, 2, 0, 0},   {"32x512x28 k2s2", 32, 512, 28, 2, 2, 0, 0},
    {"32x480x14 k3s1p1", 32, 480, 14, 3, 1, 1, 1}, {"32x2048x7 k7", 32, 2048, 7, 7, 1, 0, 0},
    {"128x20x24 k2s2", 128, 20, 24, 2, 2, 0, 0},
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

BNNSNDArrayDescriptor image(const Shape& s, size_t h, size_t w, Type type, void* data = nullptr) {
  return describe(BNNSDataLayoutImageCHW, {w, h, s.c}, type, data);
}

#ifdef BNNS_PEER_ONEDNN
void add_onednn(Case& c, const Shape& s, const Mode& mode, Type type, bool backward) {
  using namespace dnnl;
  const memory::desc x = plain(s.x(), type), y = plain(s.y(), type);
  const Dims stride = dims({s.sy, s.sx}), kernel = dims({s.kh, s.kw}), dilation = dims({s.dy - 1, s.dx - 1}),
             before = dims({s.before_y, s.before_x}), after = dims({s.after_y, s.after_x});
  const algorithm algorithm = mode.max ? algorithm::pooling_max
                              : mode.function == BNNSPoolingFunctionAverageCountExcludePadding
                                  ? algorithm::pooling_avg_exclude_padding
                                  : algorithm::pooling_avg_include_padding;
  const bool training = backward || mode.index;  // max for inference only keeps no indices
  const pooling_forward::primitive_desc forward(
      engine(), training ? prop_kind::forward_training : prop_kind::forward_inference, algorithm, x, y, stride, kernel,
      dilation, before, after, primitive_attr(), true);
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
  const pooling_backward::primitive_desc pd(engine(), algorithm, x, y, stride, kernel, dilation, before, after, forward,
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
  p.i_desc = image(s, s.h, s.w, type);
  p.o_desc = image(s, s.oh(), s.ow(), type);
  p.pooling_function = mode.function;
  p.k_width = s.kw, p.k_height = s.kh;
  p.x_stride = s.sx, p.y_stride = s.sy;
  p.x_dilation_stride = s.dx, p.y_dilation_stride = s.dy;
  p.pad[0] = s.before_x, p.pad[1] = s.after_x, p.pad[2] = s.before_y, p.pad[3] = s.after_y;
  const BNNSFilterParameters f = options(threads);
  const Filter filter = own(BNNSFilterCreateLayerPooling(&p, &f));
  const auto forward = [=](Data& d) {
    size_t* index = mode.index ? d["index"].as<size_t>() : nullptr;
    check(BNNSPoolingFilterApplyBatch(filter.get(), s.n, d["x"].data(), 0, d["y"].data(), 0, index, 0));
  };
  const auto gradient = [=](Data& d) {
    auto dx = image(s, s.h, s.w, type, d["dx"].data()), dy = image(s, s.oh(), s.ow(), type, d["dy"].data());
    const void* x = mode.needs_x ? d["x"].data() : nullptr;
    check(BNNSPoolingFilterApplyBackwardBatch(filter.get(), s.n, x, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                              mode.index ? d["index"].as<size_t>() : nullptr, 0));
  };
  if (backward && (mode.index || mode.function == BNNSPoolingFunctionL2Norm)) {
    for (Data& d : c.sets) forward(d);
  }
  c.contenders.push_back({"ours", backward ? Call(gradient) : Call(forward), backward ? "dx" : "y"});
#ifdef BNNS_PEER_ONEDNN
  add_onednn(c, s, mode, type, backward);
#endif
}

void add_plain_loop(Case& c, const Shape& s, const Mode& mode, bool backward) {
  const loops::Window window{s.n,  s.c,  s.h,  s.w,        s.c,        s.oh(), s.ow(), s.kh,
                             s.kw, s.sy, s.sx, s.before_y, s.before_x, s.dy,   s.dx,   1};
  const auto pool = mode.max                                                         ? loops::Pool::max
                    : mode.function == BNNSPoolingFunctionAverageCountExcludePadding ? loops::Pool::average
                    : mode.function == BNNSPoolingFunctionL2Norm                     ? loops::Pool::l2
                                                                                     : loops::Pool::average_padding;
  const bool index = mode.index, l2 = mode.function == BNNSPoolingFunctionL2Norm;
  const auto call = [=](Data& d) {
    uint64_t* at = index ? d["index"].as<uint64_t>() : nullptr;
    const float* x = pool == loops::Pool::max || l2 ? d["x"].as() : nullptr;
    if (backward)
      loops::pooling_gradient(window, pool, x, l2 ? d["y"].as() : nullptr, d["dy"].as(), at, d["peer_dx"].as());
    else
      loops::pooling(window, pool, d["x"].as(), d["peer_y"].as(), at);
  };
  c.contenders.push_back({"plain loop", call, backward ? "peer_dx" : "peer_y"});
}

void complete(Row& r, const Shape& s, const Mode& mode, Type type, bool backward, bool loop) {
  const std::vector<size_t> in = s.x(), out = s.y();
  const double element = double(kTypeBytes[int(type)]), inputs = double(product(in)), outputs = double(product(out));
  r.bytes =
      element * (outputs + (backward ? inputs + (mode.needs_x ? inputs : 0) : inputs)) + (mode.index ? 8 * outputs : 0);
  r.attributes = {{"kh", double(s.kh)},         {"kw", double(s.kw)},
                  {"sy", double(s.sy)},         {"sx", double(s.sx)},
                  {"py", double(s.before_y)},   {"px", double(s.before_x)},
                  {"after", double(s.after_y)}, {"dy", double(s.dy)},
                  {"dx", double(s.dx)},         {"tensor_bytes", element * inputs}};
  const bool l2 = mode.function == BNNSPoolingFunctionL2Norm;
  r.fill = [=](Data& d) {
    if (!backward || mode.max || mode.needs_x) d.add("x", in, type).fill();
    if (!backward || mode.index || l2) d.add("y", out, type);
    if (!backward || mode.max) d.add("peer_y", out, type);
    if (mode.index) d.add("index", out, Type::u64);
    if (backward) d.add("dy", out, type).fill(), d.add("dx", in, type), d.add("peer_dx", in, type);
  };
  r.open = [=](Case& c, size_t threads) {
    open(c, s, mode, type, backward, threads);
    if (loop) add_plain_loop(c, s, mode, backward);
  };
}

void add(const Named& s, const Mode& mode, Type type, bool backward, bool quick) {
  Row r;
  r.family = backward ? "pool_backward" : "pool_forward";
  r.op = mode.name;
  r.direction = backward ? "backward" : "forward";
  r.shape = s.name;
  r.type = kTypeNames[int(type)];
  r.quick = quick;
  complete(r, s.shape(), mode, type, backward, false);
  rows().push_back(std::move(r));
}

Row make(const Description& d) {
  const size_t kh = d("kh"), kw = d("kw"), py = d("py", 0), px = d("px", 0);
  const Shape s{d("n"),           d("c"), d("h"), d("w"),      kh,          kw,         d.positive("sy"),
                d.positive("sx"), py,     px,     d("ay", py), d("ax", px), d("dy", 1), d("dx", 1)};
  if (s.oh() == 0 || s.ow() == 0) throw std::runtime_error("the window is larger than the image");
  constexpr const char* ops[] = {"max", "max_index", "average_padding", "average", "l2"};
  constexpr const char* directions[] = {"forward", "backward"};
  Row r = start(d);
  const Mode& mode = kModes[find_name(ops, d.op)];
  complete(r, s, mode, d.type, find_name(directions, d.direction) == 1, d.type == Type::f32);
  r.op = mode.name;
  return r;
}

}  // namespace

void add_pooling_rows() {
  makers()["pool"] = make;
  for (const bool backward : {false, true}) {
    for (const Named& s : kShapes) {
      for (const Mode& mode : kModes) add(s, mode, Type::f32, backward, true);
    }
    for (const Type type : {Type::bf16, Type::f16}) {
      for (const size_t mode : {0, 3}) add(kShapes[0], kModes[mode], type, backward, false);
    }
  }
}

}  // namespace bnns::bench

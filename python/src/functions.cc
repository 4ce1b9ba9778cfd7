// Functions without a layer: tensor operations on whole arrays, whose axes count as NumPy's.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "python/src/arrays.h"

namespace openbnns {

namespace {

using Handle = nb::handle;

// The descriptor of an argument; the object's memory is held until the call is over.
struct In {
  In(Handle object, const char* where, const char* label, Role role = Role::generic) {
    if (object.is_none()) return;
    desc = describe(array_of(object, array, where, label), role, where, label);
    if (!desc.data) refuse(where, std::string(label) + " has no data, expected an array");
  }
  Array array;
  Desc desc{};
};
struct Out : In {
  Out(Handle object, const char* where, const char* label, Role role = Role::generic) : In(object, where, label, role) {
    Array made;
    if (!object.is_none()) output_of(object, made, where, label);
  }
};

void activation(const BNNSActivation& act, Handle x, Handle y, std::uint32_t axes) {
  In in(x, "apply_activation", "input");
  Out out(y, "apply_activation", "output");
  BNNSLayerParametersActivation p{};
  p.i_desc = in.desc, p.o_desc = out.desc, p.activation = act, p.axis_flags = axes;
  unlocked("apply_activation", [&] { return BNNSDirectApplyActivationBatch(&p, nullptr, 1, 0, 0); });
}

void reduction(std::uint32_t function, Handle x, Handle y, Handle w, float epsilon) {
  In in(x, "apply_reduction", "input"), weights(w, "apply_reduction", "weights");
  Out out(y, "apply_reduction", "output");
  BNNSLayerParametersReduction p{};
  p.i_desc = in.desc, p.o_desc = out.desc, p.w_desc = weights.desc, p.epsilon = epsilon;
  p.reduce_func = static_cast<BNNSReduceFunction>(function);
  unlocked("apply_reduction", [&] { return BNNSDirectApplyReduction(&p, nullptr); });
}

void top_k(std::size_t k, std::size_t axis, Handle x, Handle values, Handle indices) {
  In in(x, "apply_top_k", "input");
  Out v(values, "apply_top_k", "best_values"), i(indices, "apply_top_k", "best_indices");
  unlocked("apply_top_k", [&] {
    return BNNSDirectApplyTopK(k, axis, 1, &in.desc, 0, &v.desc, 0, i.desc.data ? &i.desc : nullptr, 0, nullptr);
  });
}

void in_top_k(std::size_t k, std::size_t axis, Handle x, Handle tested, Handle y) {
  In in(x, "apply_in_top_k", "input"), t(tested, "apply_in_top_k", "test_indices");
  Out out(y, "apply_in_top_k", "output");
  unlocked("apply_in_top_k",
           [&] { return BNNSDirectApplyInTopK(k, axis, 1, &in.desc, 0, &t.desc, 0, &out.desc, 0, nullptr); });
}

void matmul(Handle a, bool at, Handle b, bool bt, Handle y, float alpha) {
  constexpr auto where = "apply_matrix_multiplication";
  In x(a, where, "input_a"), z(b, where, "input_b");
  Out out(y, where, "output");
  unlocked(where, [&] { return BNNSMatMul(at, bt, alpha, &x.desc, &z.desc, &out.desc, nullptr, nullptr); });
}

std::optional<std::size_t> matmul_workspace(Handle a, bool at, Handle b, bool bt, Handle y, float alpha) {
  constexpr auto where = "matrix_multiplication_workspace_size";
  In x(a, where, "input_a"), z(b, where, "input_b"), out(y, where, "output");
  const ssize_t bytes = BNNSMatMulWorkspaceSize(at, bt, alpha, &x.desc, &z.desc, &out.desc, nullptr);
  if (bytes < 0) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

void clip(float low, float high, Handle x, Handle y) {
  In in(x, "clip", "input");
  Out out(y, "clip", "output");
  unlocked("clip", [&] { return BNNSClipByValue(&out.desc, &in.desc, low, high); });
}

void clip_norm(float most, Handle x, Handle y, std::uint32_t axes) {
  In in(x, "clip_by_norm", "input");
  Out out(y, "clip_by_norm", "output");
  unlocked("clip_by_norm", [&] { return BNNSClipByNorm(&out.desc, &in.desc, most, axes); });
}

void clip_global(float most, const std::vector<nb::object>& x, const std::vector<nb::object>& y, float norm) {
  constexpr auto where = "clip_by_global_norm";
  if (x.size() != y.size()) {
    refuse(where, std::to_string(x.size()) + " inputs, but " + std::to_string(y.size()) + " outputs");
  }
  std::vector<In> in;
  std::vector<Out> out;
  in.reserve(x.size()), out.reserve(y.size());
  std::vector<const Desc*> source;
  std::vector<Desc*> target;
  for (std::size_t i = 0; i < x.size(); ++i) {
    in.emplace_back(x[i], where, "inputs"), out.emplace_back(y[i], where, "outputs");
    source.push_back(&in[i].desc), target.push_back(&out[i].desc);
  }
  unlocked(where, [&] { return BNNSClipByGlobalNorm(target.data(), source.data(), x.size(), most, norm); });
}

void norm(Handle x, Handle y, std::uint32_t axes) {
  In in(x, "compute_norm", "input");
  Out out(y, "compute_norm", "output");
  unlocked("compute_norm", [&] { return BNNSComputeNorm(&out.desc, &in.desc, BNNSL2Norm, axes); });
}

void norm_backward(Handle x, Handle y, Handle dy, Handle dx, std::uint32_t axes) {
  constexpr auto where = "compute_norm_backward";
  In in(x, where, "input"), out(y, where, "output"), gy(dy, where, "output_gradient");
  Out gx(dx, where, "generating_input_gradient");
  Array mx, my;
  const Array &ax = array_of(x, mx, where, "input"), &ay = array_of(y, my, where, "output");
  // The C call knows input and output by their data alone: they are of the shapes of their gradients.
  bind(dx, Expected(in.desc, ax), 0, true, false, where, "generating_input_gradient");
  bind(dy, Expected(out.desc, ay), 0, false, false, where, "output_gradient");
  unlocked(where,
           [&] { return BNNSComputeNormBackward(in.desc.data, &gx.desc, out.desc.data, &gy.desc, BNNSL2Norm, axes); });
}

void compare(Handle a, Handle b, std::uint32_t relation, Handle y) {
  In x(a, "compare", "first"), z(b, "compare", "second");
  Out out(y, "compare", "output");
  unlocked("compare", [&] {
    return BNNSCompareTensor(&x.desc, &z.desc, static_cast<BNNSRelationalOperator>(relation), &out.desc);
  });
}

template <class Call>
void one_to_one(const char* where, Handle x, Handle y, Call&& call) {
  In in(x, where, "input");
  Out out(y, where, "output");
  unlocked(where, [&] { return call(&in.desc, &out.desc); });
}

void gather(Handle x, Handle at, Handle y, std::size_t axis) {
  In in(x, "gather", "input"), i(at, "gather", "indices");
  Out out(y, "gather", "output");
  unlocked("gather", [&] { return BNNSGather(axis, &in.desc, &i.desc, &out.desc, nullptr); });
}
void gather_nd(Handle x, Handle at, Handle y) {
  In in(x, "gather_nd", "input"), i(at, "gather_nd", "indices");
  Out out(y, "gather_nd", "output");
  unlocked("gather_nd", [&] { return BNNSGatherND(&in.desc, &i.desc, &out.desc, nullptr); });
}
void scatter(Handle x, Handle at, Handle y, std::size_t axis, std::uint32_t function) {
  In in(x, "scatter", "input"), i(at, "scatter", "indices");
  Out out(y, "scatter", "output");
  unlocked("scatter", [&] {
    return BNNSScatter(axis, static_cast<BNNSReduceFunction>(function), &in.desc, &i.desc, &out.desc, nullptr);
  });
}
void scatter_nd(Handle x, Handle at, Handle y, std::uint32_t function) {
  In in(x, "scatter_nd", "input"), i(at, "scatter_nd", "indices");
  Out out(y, "scatter_nd", "output");
  unlocked("scatter_nd", [&] {
    return BNNSScatterND(static_cast<BNNSReduceFunction>(function), &in.desc, &i.desc, &out.desc, nullptr);
  });
}

void quantize(std::uint32_t function, Handle x, Handle y, std::size_t axes, Handle scale, Handle bias) {
  const char* where = function == BNNSQuantizerFunctionQuantize ? "quantize" : "dequantize";
  In in(x, where, "input"), s(scale, where, "scale", Role::vector), b(bias, where, "bias", Role::vector);
  Out out(y, where, "output");
  BNNSLayerParametersQuantization p{};
  p.function = static_cast<BNNSQuantizerFunction>(function), p.axis_mask = axes;
  p.i_desc = in.desc, p.o_desc = out.desc, p.scale = s.desc, p.bias = b.desc;
  unlocked(where, [&] { return BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0); });
}

BNNSLayerParametersCropResize crop_parameters(bool normalized, float scale, float outside, std::uint32_t sampling,
                                              std::uint32_t boxes) {
  BNNSLayerParametersCropResize p{};
  p.normalized_coordinates = normalized, p.spatial_scale = scale, p.extrapolation_value = outside;
  p.sampling_mode = static_cast<BNNSLinearSamplingMode>(sampling);
  p.box_coordinate_mode = static_cast<BNNSBoxCoordinateMode>(boxes), p.method = BNNSInterpolationMethodLinear;
  return p;
}
void crop_resize(bool normalized, float scale, float outside, std::uint32_t sampling, std::uint32_t boxes, Handle x,
                 Handle roi, Handle y, bool backward) {
  constexpr auto where = "CropResizeLayer";
  const auto p = crop_parameters(normalized, scale, outside, sampling, boxes);
  In in(x, where, backward ? "output_gradient" : "input"), r(roi, where, "region_of_interest");
  Out out(y, where, backward ? "generating_input_gradient" : "output");
  unlocked(where, [&] {
    return backward ? BNNSCropResizeBackward(&p, &out.desc, &r.desc, &in.desc, nullptr)
                    : BNNSCropResize(&p, &in.desc, &r.desc, &out.desc, nullptr);
  });
}

}  // namespace

void bind_functions(nb::module_& m) {
  const auto none = [](const char* name) { return nb::arg(name).none() = nb::none(); };
  using nb::arg;
  m.def("apply_activation", &activation, arg("activation"), arg("input"), arg("output"), arg("axes") = 0);
  m.def("apply_reduction", &reduction, arg("function"), arg("input"), arg("output"), none("weights"),
        arg("epsilon") = 0.0f);
  m.def("apply_top_k", &top_k, arg("k"), arg("axis"), arg("input"), arg("best_values"), none("best_indices"));
  m.def("apply_in_top_k", &in_top_k, arg("k"), arg("axis"), arg("input"), arg("test_indices"), arg("output"));
  m.def("apply_matrix_multiplication", &matmul, arg("input_a"), arg("a_transposed"), arg("input_b"),
        arg("b_transposed"), arg("output"), arg("alpha"));
  m.def("matrix_multiplication_workspace_size", &matmul_workspace, arg("input_a"), arg("a_transposed"), arg("input_b"),
        arg("b_transposed"), arg("output"), arg("alpha"));
  m.def("clip", &clip, arg("lower"), arg("upper"), arg("input"), arg("output"));
  m.def("clip_by_norm", &clip_norm, arg("threshold"), arg("input"), arg("output"), arg("axes"));
  m.def("clip_by_global_norm", &clip_global, arg("threshold"), arg("inputs"), arg("outputs"), arg("global_norm"));
  m.def("compute_norm", &norm, arg("input"), arg("output"), arg("axes"));
  m.def("compute_norm_backward", &norm_backward, arg("input"), arg("output"), arg("output_gradient"),
        arg("generating_input_gradient"), arg("axes"));
  m.def("compare", &compare, arg("first"), arg("second"), arg("relation"), arg("output"));
  m.def("copy", [](Handle x, Handle y) {
    one_to_one("copy", x, y, [](const Desc* in, Desc* out) { return BNNSCopy(out, in, nullptr); });
  });
  m.def("copy_band_part", [](Handle x, Handle y, int lower, int upper) {
    one_to_one("copy_band_part", x, y,
               [&](const Desc* in, Desc* out) { return BNNSBandPart(lower, upper, in, out, nullptr); });
  });
  m.def("transpose", [](Handle x, Handle y, std::size_t a, std::size_t b) {
    one_to_one("transpose", x, y, [&](const Desc* in, Desc* out) { return BNNSTranspose(out, in, a, b, nullptr); });
  });
  m.def("tile", [](Handle x, Handle y) {
    one_to_one("tile", x, y, [](const Desc* in, Desc* out) { return BNNSTile(in, out, nullptr); });
  });
  m.def("tile_backward", [](Handle dy, Handle dx) {
    one_to_one("tile_backward", dy, dx, [](const Desc* in, Desc* out) { return BNNSTileBackward(out, in, nullptr); });
  });
  m.def("shuffle", [](std::uint32_t type, Handle x, Handle y) {
    one_to_one("shuffle", x, y, [&](const Desc* in, Desc* out) {
      return BNNSShuffle(static_cast<BNNSShuffleType>(type), in, out, nullptr);
    });
  });
  m.def("gather", &gather, arg("input"), arg("indices"), arg("output"), arg("axis"));
  m.def("gather_nd", &gather_nd, arg("input"), arg("indices"), arg("output"));
  m.def("scatter", &scatter, arg("input"), arg("indices"), arg("output"), arg("axis"), arg("function"));
  m.def("scatter_nd", &scatter_nd, arg("input"), arg("indices"), arg("output"), arg("function"));
  m.def("quantize", &quantize, arg("function"), arg("input"), arg("output"), arg("axes"), none("scale"), none("bias"));
  m.def("crop_resize", &crop_resize);
}

}  // namespace openbnns

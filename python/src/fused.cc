// Fused layers: two stages, each a structure of its own, made into one filter.
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "python/src/filters.h"

namespace openbnns {

namespace {

using Handle = nb::handle;
constexpr bool kRead = false, kWritten = true, kNeeded = false, kOptional = true;

struct Fused : Filter {};
using Dictionary = nb::typed<nb::dict, nb::str, nb::object>;

// A stage as Python gives it: the kind, and a dictionary of what its structure takes.
struct Stage {
  BNNSFilterType type{};
  BNNSLayerParametersConvolution convolution{};
  BNNSLayerParametersFullyConnected dense{};
  BNNSLayerParametersNormalization normalization{};
  BNNSLayerParametersQuantization quantization{};
  BNNSLayerParametersArithmetic arithmetic{};
  BNNSArithmeticUnary one{};
  BNNSArithmeticBinary two{};
  BNNSArithmeticTernary three{};
  const void* parameters = nullptr;
  std::size_t arity = 1;
};

template <class T>
T item(const nb::dict& d, const char* key, T otherwise) {
  return d.contains(key) ? nb::cast<T>(d[key]) : otherwise;
}

void fill(Fused& f, Stage& s, const nb::dict& d, const Desc* in, std::size_t inputs, const Desc& out) {
  constexpr auto where = "FusedParametersLayer";
  const std::string kind = nb::cast<std::string>(d["kind"]);
  const nb::object none = nb::none();
  const auto array = [&](const char* key, Role role, bool optional, bool written) {
    Expected e;
    const Desc desc = f.argument(item<nb::object>(d, key, none), role, e, optional, written, where, key);
    return std::pair(desc, e);
  };
  const auto slot = [&](const Expected& e) {
    if (f.parameters >= 4) refuse(where, "more than four parameters");
    f.parameter[f.parameters++] = e;
  };
  const BNNSActivation act = item<BNNSActivation>(d, "activation", BNNSActivation{});
  if (kind == "convolution" || kind == "transposed_convolution") {
    auto& p = s.convolution;
    const auto [w, we] = array("weights", Role::kernel, kNeeded, kRead);
    const auto [b, be] = array("bias", Role::vector, kOptional, kRead);
    p.i_desc = in[0], p.o_desc = out, p.w_desc = w, p.bias = b, p.activation = act;
    const auto stride = item<std::vector<std::size_t>>(d, "stride", {1, 1}),
               dilation = item<std::vector<std::size_t>>(d, "dilation", {1, 1}),
               pad = item<std::vector<std::size_t>>(d, "padding", {0, 0, 0, 0});
    p.x_stride = stride.at(0), p.y_stride = stride.at(1), p.groups = item<std::size_t>(d, "groups", 1);
    p.x_dilation_stride = dilation.at(0), p.y_dilation_stride = dilation.at(1);
    for (std::size_t k = 0; k < 4; ++k) p.pad[k] = pad.at(k);
    s.type = kind == "convolution" ? BNNSConvolution : BNNSTransposedConvolution, s.parameters = &p;
    slot(we), slot(be);
  } else if (kind == "fully_connected") {
    auto& p = s.dense;
    const auto [w, we] = array("weights", Role::matrix, kNeeded, kRead);
    const auto [b, be] = array("bias", Role::vector, kOptional, kRead);
    p.i_desc = in[0], p.o_desc = out, p.w_desc = w, p.bias = b, p.activation = act;
    s.type = BNNSFullyConnected, s.parameters = &p;
    slot(we), slot(be);
  } else if (kind == "normalization") {
    auto& p = s.normalization;
    const auto [beta, be] = array("beta", Role::vector, kOptional, kRead);
    const auto [gamma, ge] = array("gamma", Role::vector, kOptional, kRead);
    p.i_desc = in[0], p.o_desc = out, p.beta_desc = beta, p.gamma_desc = gamma, p.activation = act;
    p.moving_mean_desc = array("moving_mean", Role::vector, kOptional, kWritten).first;
    p.moving_variance_desc = array("moving_variance", Role::vector, kOptional, kWritten).first;
    p.momentum = item<float>(d, "momentum", 0), p.epsilon = item<float>(d, "epsilon", 1e-5f);
    p.num_groups = item<std::size_t>(d, "group_count", 0), p.normalization_axis = item<std::size_t>(d, "axis", 0);
    s.type = static_cast<BNNSFilterType>(nb::cast<std::uint32_t>(d["type"])), s.parameters = &p;
    slot(be), slot(ge);
  } else if (kind == "quantization") {
    auto& p = s.quantization;
    p.function = static_cast<BNNSQuantizerFunction>(nb::cast<std::uint32_t>(d["function"]));
    p.axis_mask = item<std::size_t>(d, "axis_mask", 0), p.i_desc = in[0], p.o_desc = out;
    p.scale = array("scale", Role::vector, kOptional, kRead).first;
    p.bias = array("bias", Role::vector, kOptional, kRead).first;
    s.type = BNNSQuantization, s.parameters = &p;
  } else if (kind == "arithmetic") {
    const auto roles = nb::cast<std::vector<std::uint32_t>>(d["roles"]);
    const auto out_role = static_cast<BNNSDescriptorType>(item<std::uint32_t>(d, "output_role", 1));
    s.arity = roles.size();
    if (s.arity == 0 || s.arity != inputs) {
      refuse(where, "the first stage takes " + std::to_string(s.arity) + " inputs, got " + std::to_string(inputs));
    }
    BNNSDescriptorType r[3]{};
    for (std::size_t i = 0; i < s.arity; ++i) {
      r[i] = static_cast<BNNSDescriptorType>(roles[i]);
      f.shared[i] = r[i] != BNNSSample;
    }
    const Desc absent{};
    const Desc &a = in[0], &b = inputs > 1 ? in[1] : absent, &c = inputs > 2 ? in[2] : absent;
    s.one = {a, r[0], out, out_role}, s.two = {a, r[0], b, r[1], out, out_role};
    s.three = {a, r[0], b, r[1], c, r[2], out, out_role};
    s.arithmetic.arithmetic_function = static_cast<BNNSArithmeticFunction>(nb::cast<std::uint32_t>(d["function"]));
    void* fields[] = {&s.one, &s.two, &s.three};
    s.arithmetic.arithmetic_function_fields = fields[s.arity - 1];
    s.type = BNNSArithmetic, s.parameters = &s.arithmetic;
  } else {
    refuse(where, "a stage is " + kind + ", which cannot be fused");
  }
}

void make_fused(Fused& f, const std::vector<nb::object>& inputs, Handle output, const std::vector<Dictionary>& stages,
                const Options& o) {
  constexpr auto where = "FusedParametersLayer";
  if (stages.size() != 2) refuse(where, "a fused layer has 2 stages, got " + std::to_string(stages.size()));
  if (inputs.empty() || inputs.size() > 3)
    refuse(where, "a fused layer has 1 to 3 inputs, got " + std::to_string(inputs.size()));
  Desc in[3]{};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    in[i] = f.argument(inputs[i], Role::image, f.input[i], kNeeded, kRead, where, "input");
  }
  const Desc out = f.argument(output, Role::image, f.output, kNeeded, kRead, where, "output");
  f.inputs = inputs.size();
  Desc middle = out;
  middle.data = nullptr;
  if (nb::cast<std::string>(stages[1]["kind"]) == "quantization") middle.data_type = BNNSDataTypeFloat32;
  Stage first, second;
  fill(f, first, stages[0], in, inputs.size(), middle);
  fill(f, second, stages[1], &middle, 1, out);
  if (first.arity != inputs.size()) refuse(where, "the first stage takes one input");
  const BNNSFilterType types[] = {first.type, second.type};
  const void* parameters[] = {first.parameters, second.parameters};
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateFusedLayer(2, types, parameters, &options), where);
}

void apply(Fused& f, std::size_t n, const std::vector<nb::object>& x, Handle y, bool training) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  if (x.size() != f.inputs) refuse(where, std::to_string(x.size()) + " inputs, expected " + std::to_string(f.inputs));
  Bound bound[3];
  const void* data[3];
  std::size_t stride[3];
  for (std::size_t i = 0; i < x.size(); ++i) {
    bound[i] = bind(x[i], f.input[i], f.shared[i] ? kWhole : n, kRead, kNeeded, where, "input");
    data[i] = bound[i].data, stride[i] = bound[i].stride;
  }
  const Bound out = bind(y, f.output, n, kWritten, kNeeded, where, "output");
  unlocked(where, [&] {
    return x.size() == 1
               ? BNNSFusedFilterApplyBatch(filter, n, data[0], stride[0], out.data, out.stride, training)
               : BNNSFusedFilterApplyMultiInputBatch(filter, n, x.size(), data, stride, out.data, out.stride, training);
  });
}

void apply_backward(Fused& f, std::size_t n, const std::vector<nb::object>& x, Handle y, Handle dy,
                    const std::vector<nb::object>& dx, const std::vector<nb::object>& parameters) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  if (x.size() != f.inputs || dx.size() != f.inputs)
    refuse(where, "expected " + std::to_string(f.inputs) + " inputs and gradients");
  if (!parameters.empty() && parameters.size() != f.parameters) {
    refuse(where, std::to_string(parameters.size()) + " parameter gradients, expected " + std::to_string(f.parameters));
  }
  Bound bound[3];
  const void* data[3];
  std::size_t stride[3], gradient_stride[3];
  std::vector<Gradient> g, p;
  g.reserve(3), p.reserve(4);
  Desc *delta[3], *slots[4] = {nullptr, nullptr, nullptr, nullptr};
  bool any = false;
  for (std::size_t i = 0; i < f.inputs; ++i) {
    const std::size_t batch = f.shared[i] ? kWhole : n;
    bound[i] = bind(x[i], f.input[i], batch, kRead, kOptional, where, "input");
    data[i] = bound[i].data, stride[i] = bound[i].stride, any = any || data[i];
    g.emplace_back(dx[i], f.input[i], batch, kWritten, kOptional, where, "generating_input_gradient");
    delta[i] = g[i].get(), gradient_stride[i] = g[i].stride;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    p.emplace_back(parameters[i], f.parameter[i], kWhole, kWritten, kOptional, where, "generating_parameter_gradients");
    slots[i] = p[i].get();
  }
  const Bound out = bind(y, f.output, n, kRead, kOptional, where, "output");
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient");
  Desc** list = parameters.empty() ? nullptr : slots;
  unlocked(where, [&] {
    return f.inputs == 1
               ? BNNSFusedFilterApplyBackwardBatch(filter, n, data[0], stride[0], delta[0], gradient_stride[0],
                                                   out.data, out.stride, gy.get(), gy.stride, list)
               : BNNSFusedFilterApplyBackwardMultiInputBatch(filter, n, f.inputs, any ? data : nullptr,
                                                             any ? stride : nullptr, delta, gradient_stride, out.data,
                                                             out.stride, gy.get(), gy.stride, list);
  });
}

}  // namespace

void bind_fused(nb::module_& m) {
  nb::class_<Fused, Filter>(m, "FusedFilter")
      .def(nb::init<>())
      .def("apply_all", &apply, nb::arg("batch_size"), nb::arg("inputs"), nb::arg("output"), nb::arg("training"))
      .def("apply_all_backward", &apply_backward, nb::arg("batch_size"), nb::arg("inputs"), nb::arg("output").none(),
           nb::arg("output_gradient"), nb::arg("gradients"), nb::arg("parameter_gradients"))
      .def_prop_ro("parameter_gradient_count", [](const Fused& f) { return f.parameters; });
  m.def("make_fused", &make_fused);
}

}  // namespace openbnns

// The calls of layers: one input, two, many, pooling, normalization, embedding, permute.
#include "python/src/filters.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace openbnns {

Desc Filter::argument(nb::handle object, Role role, Expected& expected, bool optional, bool written, const char* where,
                      const char* label) {
  if (object.is_none()) {
    if (optional) return Desc{};
    refuse(where, std::string(label) + " is None, expected an array or a shape");
  }
  Array made;
  if (nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object) || nb::isinstance<nb::int_>(object)) {
    made = nb::cast<Array>(nb::type<Array>()(object));
  } else {
    made = array_of(object, made, where, label);
  }
  if (written && made.read_only)
    refuse(where, std::string(label) + " is read-only, expected an array that can be written");
  const Desc d = describe(made, role, where, label);
  expected = Expected(d, made);
  kept.push_back(std::move(made));
  return d;
}

namespace {

using Handle = nb::handle;
constexpr bool kRead = false, kWritten = true, kNeeded = false, kOptional = true;

void apply(Filter& f, std::size_t n, Handle x, Handle y) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  const Bound in = bind(x, f.input[0], n, kRead, kNeeded, where, "input"),
              out = bind(y, f.output, n, kWritten, kNeeded, where, "output");
  if (n == 0) return;
  unlocked(where, [&] { return BNNSFilterApplyBatch(filter, n, in.data, in.stride, out.data, out.stride); });
}

void apply_backward(Filter& f, std::size_t n, Handle x, Handle y, Handle dy, Handle dx, Handle dw, Handle db) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  const Bound in = bind(x, f.input[0], n, kRead, kOptional, where, "input"),
              out = bind(y, f.output, n, kRead, kOptional, where, "output");
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient"),
      gx(dx, f.input[0], n, kWritten, kOptional, where, "generating_input_gradient"),
      gw(dw, f.parameter[0], kWhole, kWritten, kOptional, where, "generating_weights_gradient"),
      gb(db, f.parameter[1], kWhole, kWritten, kOptional, where, "generating_bias_gradient");
  if (n == 0) return gw.clear(), gb.clear();
  unlocked(where, [&] {
    return BNNSFilterApplyBackwardBatch(filter, n, in.data, in.stride, gx.get(), gx.stride, out.data, out.stride,
                                        gy.get(), gy.stride, gw.get(), gb.get());
  });
}

void apply_two(Filter& f, std::size_t n, Handle a, Handle b, Handle y) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  const Bound xa = bind(a, f.input[0], n, kRead, kNeeded, where, "input_a"),
              xb = bind(b, f.input[1], n, kRead, kNeeded, where, "input_b"),
              out = bind(y, f.output, n, kWritten, kNeeded, where, "output");
  if (n == 0) return;
  unlocked(where, [&] {
    return BNNSFilterApplyTwoInputBatch(filter, n, xa.data, xa.stride, xb.data, xb.stride, out.data, out.stride);
  });
}

void apply_two_backward(Filter& f, std::size_t n, Handle a, Handle b, Handle y, Handle dy, Handle da, Handle db) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  const Bound xa = bind(a, f.input[0], n, kRead, kOptional, where, "input_a"),
              xb = bind(b, f.input[1], n, kRead, kOptional, where, "input_b"),
              out = bind(y, f.output, n, kRead, kOptional, where, "output");
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient"),
      ga(da, f.input[0], n, kWritten, kOptional, where, "generating_input_a_gradient"),
      gb(db, f.input[1], n, kWritten, kOptional, where, "generating_input_b_gradient");
  if (n == 0) return;
  unlocked(where, [&] {
    return BNNSFilterApplyBackwardTwoInputBatch(filter, n, xa.data, xa.stride, ga.get(), ga.stride, xb.data, xb.stride,
                                                gb.get(), gb.stride, out.data, out.stride, gy.get(), gy.stride, nullptr,
                                                nullptr);
  });
}

constexpr const char* kInput[] = {"input_a", "input_b", "input_c"};
constexpr const char* kInputGradient[] = {"generating_input_a_gradient", "generating_input_b_gradient",
                                          "generating_input_c_gradient"};

void require_inputs(const Filter& f, std::size_t given, const char* what) {
  if (given != f.inputs) {
    refuse(f.name, std::to_string(given) + " " + what + ", expected " + std::to_string(f.inputs));
  }
}

// Arithmetic: one to three inputs, each a sample or one for the whole batch.
void apply_many(Filter& f, std::size_t n, const std::vector<nb::object>& inputs, Handle y) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  require_inputs(f, inputs.size(), "inputs");
  Bound bound[3];
  const void* data[3];
  std::size_t stride[3];
  for (std::size_t i = 0; i < f.inputs; ++i) {
    bound[i] = bind(inputs[i], f.input[i], f.shared[i] ? kWhole : n, kRead, kNeeded, where, kInput[i]);
    data[i] = bound[i].data, stride[i] = bound[i].stride;
  }
  const Bound out = bind(y, f.output, n, kWritten, kNeeded, where, "output");
  if (n == 0) return;
  unlocked(where,
           [&] { return BNNSArithmeticFilterApplyBatch(filter, n, f.inputs, data, stride, out.data, out.stride); });
}

void apply_many_backward(Filter& f, std::size_t n, const std::vector<nb::object>& inputs, Handle y, Handle dy,
                         const std::vector<nb::object>& gradients) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  require_inputs(f, inputs.size(), "inputs");
  require_inputs(f, gradients.size(), "gradients");
  Bound bound[3];
  const void* data[3];
  std::size_t stride[3], gradient_stride[3];
  std::vector<Gradient> g;
  Desc* delta[3];
  bool any = false;
  g.reserve(3);
  for (std::size_t i = 0; i < f.inputs; ++i) {
    const std::size_t batch = f.shared[i] ? kWhole : n;
    bound[i] = bind(inputs[i], f.input[i], batch, kRead, kOptional, where, kInput[i]);
    data[i] = bound[i].data, stride[i] = bound[i].stride, any = any || data[i];
    g.emplace_back(gradients[i], f.input[i], batch, kWritten, kOptional, where, kInputGradient[i]);
    delta[i] = g[i].get(), gradient_stride[i] = g[i].stride;
  }
  const Bound out = bind(y, f.output, n, kRead, kOptional, where, "output");
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient");
  if (n == 0) return;
  unlocked(where, [&] {
    return BNNSArithmeticFilterApplyBackwardBatch(filter, n, f.inputs, any ? data : nullptr, any ? stride : nullptr,
                                                  delta, gradient_stride, out.data, out.stride, gy.get(), gy.stride);
  });
}

// Pooling: the positions of maxima are 32- or 64-bit integers, one for each output element.
struct Indices {
  Indices(const Filter& f, Handle object, std::size_t n, bool written, const char* where) {
    if (object.is_none()) return;
    Array made;
    const Array& a = written ? output_of(object, made, where, "indices") : array_of(object, made, where, "indices");
    Expected e = f.parameter[2];
    if (a.type != BNNSDataTypeInt32 && a.type != BNNSDataTypeUInt32 && a.type != BNNSDataTypeInt64 &&
        a.type != BNNSDataTypeUInt64) {
      refuse(where,
             std::string("indices are of dtype ") + type_name(a.type) + ", expected int32, uint32, int64 or uint64");
    }
    e.form.type = type = a.type;
    Bound b = bind(object, e, n, written, kOptional, where, "indices");
    data = b.data, stride = b.stride, hold = std::move(b.hold);
  }
  BNNSDataType type = BNNSDataTypeUInt64;
  void* data = nullptr;
  std::size_t stride = 0;
  nb::ndarray<> hold{};
};

void pool(Filter& f, std::size_t n, Handle x, Handle y, Handle indices) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  const Bound in = bind(x, f.input[0], n, kRead, kNeeded, where, "input"),
              out = bind(y, f.output, n, kWritten, kNeeded, where, "output");
  const Indices at(f, indices, n, !f.shared[0], where);
  if (n == 0) return;
  unlocked(where, [&] {
    return BNNSPoolingFilterApplyBatchEx(filter, n, in.data, in.stride, out.data, out.stride, at.type, at.data,
                                         at.stride);
  });
}

void pool_backward(Filter& f, std::size_t n, Handle x, Handle y, Handle dy, Handle dx, Handle db, Handle indices) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  const Bound in = bind(x, f.input[0], n, kRead, kOptional, where, "input"),
              out = bind(y, f.output, n, kRead, kOptional, where, "output");
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient"),
      gx(dx, f.input[0], n, kWritten, kOptional, where, "generating_input_gradient"),
      gb(db, f.parameter[1], kWhole, kWritten, kOptional, where, "generating_bias_gradient");
  const Indices at(f, indices, n, kRead, where);
  if (n == 0) return gb.clear();
  unlocked(where, [&] {
    return BNNSPoolingFilterApplyBackwardBatchEx(filter, n, in.data, in.stride, gx.get(), gx.stride, out.data,
                                                 out.stride, gy.get(), gy.stride, gb.get(), at.type, at.data,
                                                 at.stride);
  });
}

void normalize(Filter& f, std::size_t n, Handle x, Handle y, bool training) {
  const BNNSFilter filter = f.live("apply");
  const char* where = f.name.c_str();
  const Bound in = bind(x, f.input[0], n, kRead, kNeeded, where, "input"),
              out = bind(y, f.output, n, kWritten, kNeeded, where, "output");
  if (n == 0) return;
  unlocked(where, [&] {
    return BNNSNormalizationFilterApplyBatch(filter, n, in.data, in.stride, out.data, out.stride, training);
  });
}

void normalize_backward(Filter& f, std::size_t n, Handle y, Handle dy, Handle dx, Handle dbeta, Handle dgamma) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  const Bound out = bind(y, f.output, n, kRead, kOptional, where, "output");
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient"),
      gx(dx, f.input[0], n, kWritten, kOptional, where, "generating_input_gradient"),
      gb(dbeta, f.parameter[0], kWhole, kWritten, kOptional, where, "generating_beta_gradient"),
      gg(dgamma, f.parameter[1], kWhole, kWritten, kOptional, where, "generating_gamma_gradient");
  if (n == 0) return gb.clear(), gg.clear();
  unlocked(where, [&] {
    return BNNSNormalizationFilterApplyBackwardBatch(filter, n, gx.get(), gx.stride, out.data, out.stride, gy.get(),
                                                     gy.stride, gb.get(), gg.get());
  });
}

void permute_backward(Filter& f, std::size_t n, Handle dy, Handle dx) {
  const BNNSFilter filter = f.live("apply_backward");
  const char* where = f.name.c_str();
  Gradient gy(dy, f.output, n, kRead, kNeeded, where, "output_gradient"),
      gx(dx, f.input[0], n, kWritten, kNeeded, where, "generating_input_gradient");
  if (n == 0) return;
  unlocked(where,
           [&] { return BNNSPermuteFilterApplyBackwardBatch(filter, n, gx.get(), gx.stride, gy.get(), gy.stride); });
}

constexpr char kApply[] =
    "Writes the output of batch_size samples. Arrays are (batch_size, *sample), of the shapes and dtypes that the "
    "layer was "
    "made with; the samples of an array may lie apart. Nothing is copied, and Python's lock is free meanwhile.";
constexpr char kBackward[] =
    "From output_gradient = d loss / d output, (batch_size, *output), writes d loss / d of each thing that is given a "
    "generating_..._gradient: of the input (batch_size, *input), of weights and the like with their shape, summed over "
    "the "
    "batch. None: not wanted. Array.accumulating() is added to.";

}  // namespace

void bind_filters(nb::module_& m) {
  const auto none = [](const char* name) { return nb::arg(name).none() = nb::none(); };
  nb::class_<Options>(m, "FilterParameters",
                      "Options of a layer: use_client_pointer reads weights where they are kept.")
      .def(nb::init<>())
      .def(nb::init<bool, std::size_t>(), nb::arg("use_client_pointer"), nb::arg("threads") = 0)
      .def_rw("use_client_pointer", &Options::use_client_pointer)
      .def_rw("threads", &Options::threads);
  nb::class_<BNNSActivation>(m, "Activation")
      .def(
          "__init__",
          [](BNNSActivation* a, std::uint32_t function, float alpha, float beta) {
            new (a) BNNSActivation{};
            a->function = static_cast<BNNSActivationFunction>(function), a->alpha = alpha, a->beta = beta;
          },
          nb::arg("function") = 0, nb::arg("alpha") = 0.0f, nb::arg("beta") = 0.0f)
      .def_prop_ro("function", [](const BNNSActivation& a) { return static_cast<std::uint32_t>(a.function); })
      .def_ro("alpha", &BNNSActivation::alpha)
      .def_ro("beta", &BNNSActivation::beta);
  nb::class_<Filter>(m, "Filter", "A filter of the library, and what its calls compare arrays with.")
      .def(nb::init<>())
      .def("__repr__",
           [](const Filter& f) {
             if (!f.filter) return std::string("a layer that was not made");
             const Array &x = f.input[0].form, &y = f.output.form;
             return f.name + "(" + x.shape_text() + " -> " + y.shape_text() + ", " + type_name(x.type) + ")";
           })
      .def(
          "implementation",
          [](const Filter& f, std::uint32_t pass, std::size_t batch) -> std::optional<std::string> {
            const char* name = BNNSExtImplementation(f.live("implementation"), static_cast<BNNSExtPass>(pass), batch);
            if (!name) return std::nullopt;
            return std::string(name);
          },
          nb::arg("pass_") = 0, nb::arg("batch_size") = 1,
          "The algorithm of a pass (0 forward, 1 input gradient, 2 weights gradient), by its name.");
  nb::class_<Unary, Filter>(m, "UnaryFilter")
      .def(nb::init<>())
      .def("apply", &apply, nb::arg("batch_size"), nb::arg("input"), nb::arg("output"), kApply)
      .def("apply_backward", &apply_backward, nb::arg("batch_size"), none("input"), none("output"),
           none("output_gradient"), none("generating_input_gradient"), none("generating_weights_gradient"),
           none("generating_bias_gradient"), kBackward);
  nb::class_<Binary, Filter>(m, "BinaryFilter")
      .def(nb::init<>())
      .def("apply", &apply_two, nb::arg("batch_size"), nb::arg("input_a"), nb::arg("input_b"), nb::arg("output"),
           kApply)
      .def("apply_one", &apply, nb::arg("batch_size"), nb::arg("input"), nb::arg("output"), kApply)
      .def("apply_backward_one", &apply_backward, nb::arg("batch_size"), none("input"), none("output"),
           none("output_gradient"), none("generating_input_gradient"), none("generating_weights_gradient"),
           none("generating_bias_gradient"), kBackward)
      .def("apply_backward", &apply_two_backward, nb::arg("batch_size"), none("input_a"), none("input_b"),
           none("output"), none("output_gradient"), none("generating_input_a_gradient"),
           none("generating_input_b_gradient"), kBackward);
  nb::class_<Arithmetic, Filter>(m, "ArithmeticFilter")
      .def(nb::init<>())
      .def("apply_many", &apply_many, nb::arg("batch_size"), nb::arg("inputs"), nb::arg("output"))
      .def("apply_many_backward", &apply_many_backward, nb::arg("batch_size"), nb::arg("inputs"),
           nb::arg("output").none(), nb::arg("output_gradient"), nb::arg("gradients"));
  nb::class_<Pooling, Filter>(m, "PoolingFilter")
      .def(nb::init<>())
      .def("apply", &pool, nb::arg("batch_size"), nb::arg("input"), nb::arg("output"), none("indices"), kApply)
      .def("apply_backward", &pool_backward, nb::arg("batch_size"), none("input"), none("output"),
           none("output_gradient"), none("generating_input_gradient"), none("generating_bias_gradient"),
           none("indices"), kBackward);
  nb::class_<Normalization, Filter>(m, "NormalizationFilter")
      .def(nb::init<>())
      .def("apply", &normalize, nb::arg("batch_size"), nb::arg("input"), nb::arg("output"), nb::arg("training"), kApply)
      .def("apply_backward", &normalize_backward, nb::arg("batch_size"), none("output"), none("output_gradient"),
           none("generating_input_gradient"), none("generating_beta_gradient"), none("generating_gamma_gradient"),
           kBackward);
  nb::class_<Permute, Filter>(m, "PermuteFilter")
      .def(nb::init<>())
      .def("apply", &apply, nb::arg("batch_size"), nb::arg("input"), nb::arg("output"), kApply)
      .def("apply_backward", &permute_backward, nb::arg("batch_size"), nb::arg("output_gradient"),
           nb::arg("generating_input_gradient"), kBackward);
}

}  // namespace openbnns

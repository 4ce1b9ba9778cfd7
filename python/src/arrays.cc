// Python objects to descriptors: types, shapes, strides, read-only memory, and the comparison with a layer.
#include "python/src/arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace openbnns {

namespace {

struct TypeName {
  const char* name;
  BNNSDataType type;
  nb::dlpack::dtype dtype;
};
using Code = nb::dlpack::dtype_code;
constexpr nb::dlpack::dtype of(Code code, std::uint8_t bits) {
  return {static_cast<std::uint8_t>(code), bits, 1};
}
constexpr TypeName kTypes[] = {
    {"float32", BNNSDataTypeFloat32, of(Code::Float, 32)},    {"float16", BNNSDataTypeFloat16, of(Code::Float, 16)},
    {"bfloat16", BNNSDataTypeBFloat16, of(Code::Bfloat, 16)}, {"int8", BNNSDataTypeInt8, of(Code::Int, 8)},
    {"int16", BNNSDataTypeInt16, of(Code::Int, 16)},          {"int32", BNNSDataTypeInt32, of(Code::Int, 32)},
    {"int64", BNNSDataTypeInt64, of(Code::Int, 64)},          {"uint8", BNNSDataTypeUInt8, of(Code::UInt, 8)},
    {"uint16", BNNSDataTypeUInt16, of(Code::UInt, 16)},       {"uint32", BNNSDataTypeUInt32, of(Code::UInt, 32)},
    {"uint64", BNNSDataTypeUInt64, of(Code::UInt, 64)},       {"bool", BNNSDataTypeBoolean, of(Code::Bool, 8)},
};

std::string text(nb::handle object) {
  return nb::cast<std::string>(nb::str(object));
}

// Sets count and packed from shape and stride.
void measure(Array& a) {
  a.count = 1;
  for (std::size_t k = 0; k < a.rank; ++k) {
    if (__builtin_mul_overflow(a.count, a.shape[k], &a.count))
      refuse("array", "the shape " + a.shape_text() + " is too large");
  }
  a.packed = true;
  std::size_t step = 1;
  for (std::size_t k = a.rank; k-- > 0;) {
    if (a.shape[k] != 1 && a.stride[k] != step) a.packed = false;
    step *= a.shape[k];
  }
  if (a.count == 0) a.packed = true;
}

bool is_bfloat16(nb::handle object) {
  return nb::hasattr(object, "dtype") && nb::hasattr(object, "view") && text(object.attr("dtype")) == "bfloat16";
}

Array from_shape(nb::handle object, nb::handle dtype) {
  Array a;
  const auto sizes = nb::isinstance<nb::int_>(object) ? std::vector<std::size_t>{nb::cast<std::size_t>(object)}
                                                      : nb::cast<std::vector<std::size_t>>(object);
  if (sizes.size() > 8) refuse("array", "an array has at most 8 axes, got " + std::to_string(sizes.size()));
  a.rank = sizes.size();
  std::size_t step = 1;
  for (std::size_t k = a.rank; k-- > 0;) a.shape[k] = sizes[k], a.stride[k] = step, step *= sizes[k];
  if (!dtype.is_none()) a.type = data_type(dtype);
  measure(a);
  return a;
}

bool is_shape(nb::handle object) {
  return nb::isinstance<nb::int_>(object) || nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object);
}

template <class View>
void take(Array& a, const View& view, const char* where, const char* label) {
  if (view.ndim() > 8) {
    refuse(where, std::string(label) + " has " + std::to_string(view.ndim()) + " axes, expected at most 8");
  }
  a.rank = view.ndim();
  for (std::size_t k = 0; k < a.rank; ++k) {
    a.shape[k] = view.shape(k);
    const std::int64_t step = view.stride(k);
    if (step < 0 && a.shape[k] > 1) {
      refuse(where, std::string(label) + " has a negative stride, expected strides above 0: copy it first");
    }
    a.stride[k] = step < 0 ? 1 : static_cast<std::size_t>(step);
  }
  a.data = const_cast<void*>(static_cast<const void*>(view.data()));
  measure(a);
}

using Readable = nb::ndarray<nb::ro, nb::device::cpu>;
using Writable = nb::ndarray<nb::device::cpu>;

}  // namespace

std::string Array::shape_text() const {
  std::string s = "(";
  for (std::size_t k = 0; k < rank; ++k) s += (k > 0 ? ", " : "") + std::to_string(shape[k]);
  return s + (rank == 1 ? ",)" : ")");
}

void refused(const std::string& where) {
  const char* reason = BNNSExtLastError();
  refuse(where, reason && *reason ? reason : "refused without a reason");
}

BNNSDataType data_type(nb::handle name) {
  const char* attribute = nb::hasattr(name, "name") ? "name" : nb::hasattr(name, "__name__") ? "__name__" : nullptr;
  const std::string given = text(attribute ? nb::object(name.attr(attribute)) : nb::borrow(name));
  const std::string plain = given.rfind("torch.", 0) == 0 ? given.substr(6) : given;
  for (const TypeName& t : kTypes) {
    if (plain == t.name) return t.type;
  }
  refuse("array", "dtype is " + plain + ", expected float32, float16, bfloat16, an integer type or bool");
}

std::size_t element_size(BNNSDataType type) {
  for (const TypeName& t : kTypes) {
    if (t.type == type) return t.dtype.bits / 8u;
  }
  return 0;
}

const char* type_name(BNNSDataType type) {
  for (const TypeName& t : kTypes) {
    if (t.type == type) return t.name;
  }
  return "another type";
}

Array make_array(nb::handle object, const char* where, const char* label) {
  Array a;
  Writable writable;
  Readable readable;
  nb::object source = nb::borrow(object);
  bool taken = nb::try_cast<Writable>(source, writable), half = false;
  if (!taken && is_bfloat16(object)) {  // NumPy exports no buffer of ml_dtypes
    source = object.attr("view")("uint16");
    half = true;
    taken = nb::try_cast<Writable>(source, writable);
  }
  nb::dlpack::dtype dtype{};
  if (taken) {
    take(a, writable, where, label);
    dtype = writable.dtype();
    a.hold = nb::ndarray<>(writable.handle());
  } else if (nb::try_cast<Readable>(source, readable)) {
    take(a, readable, where, label);
    dtype = readable.dtype();
    a.read_only = true;
    a.hold = nb::ndarray<>(readable.handle());
  } else {
    refuse(where, std::string(label) + " is " + text(nb::borrow(object.type()).attr("__name__")) +
                      ", expected an array in CPU memory (NumPy, PyTorch, DLPack or a buffer)");
  }
  a.owner = nb::borrow(object);
  if (half) {
    a.type = BNNSDataTypeBFloat16;
    return a;
  }
  for (const TypeName& t : kTypes) {
    if (t.dtype == dtype) {
      a.type = t.type;
      return a;
    }
  }
  refuse(where, std::string(label) + " is of dtype " +
                    (nb::hasattr(object, "dtype") ? text(object.attr("dtype")) : std::string("unknown")) +
                    ", expected float32, float16, bfloat16, an integer type or bool: use .astype(\"float32\")");
}

const Array& array_of(nb::handle object, Array& made, const char* where, const char* label) {
  if (nb::inst_check(object) && nb::isinstance<Array>(object)) return *nb::inst_ptr<Array>(object);
  made = make_array(object, where, label);
  return made;
}

const Array& output_of(nb::handle object, Array& made, const char* where, const char* label) {
  const Array& a = array_of(object, made, where, label);
  if (a.read_only) refuse(where, std::string(label) + " is read-only, expected an array that can be written");
  return a;
}

Desc describe(const Array& a, Role role, const char* where, const char* label) {
  Desc d{};
  d.data = a.data, d.data_type = a.type;
  d.flags = a.accumulate ? BNNSNDArrayFlagBackpropAccumulate : BNNSNDArrayFlagBackpropSet;
  std::uint32_t layout = a.layout;
  if (layout == 0) {
    const std::size_t n = a.rank;
    if (n <= 1 || (role == Role::vector && a.packed))
      layout = BNNSDataLayoutVector;
    else if (role == Role::image && n == 3)
      layout = BNNSDataLayoutImageCHW;
    else if (role == Role::matrix && n == 2)
      layout = BNNSDataLayoutRowMajorMatrix;
    else if (role == Role::kernel && n == 4)
      layout = BNNSDataLayoutConvolutionWeightsOIHW;
    else
      layout = static_cast<std::uint32_t>((n << 16) | 0x8001u);  // FirstMajor: axes count as NumPy's
  }
  d.layout = static_cast<BNNSDataLayout>(layout);
  if (layout == BNNSDataLayoutVector) {
    if (!a.packed && a.rank != 1) refuse(where, std::string(label) + " has gaps, expected a packed array for a vector");
    d.size[0] = a.count;
    if (!a.packed) d.stride[0] = a.stride[0];
    return d;
  }
  if ((layout >> 16 & 0xf) != a.rank) {
    refuse(where, std::string(label) + " has shape " + a.shape_text() + ", expected " +
                      std::to_string(layout >> 16 & 0xf) + " axes for its layout");
  }
  const bool first_major = (layout & 0xffffu) == 0x8001u;
  for (std::size_t k = 0; k < a.rank; ++k) {
    d.size[first_major ? k : a.rank - 1 - k] = a.shape[k];
    if (!a.packed) {
      if (a.stride[k] == 0 && a.shape[k] > 1) {
        refuse(where, std::string(label) + " repeats elements (stride 0), expected strides above 0");
      }
      d.stride[a.rank - 1 - k] = a.stride[k] == 0 ? 1 : a.stride[k];
    }
  }
  return d;
}

Expected::Expected(const Desc& d, const Array& array) : desc(d), form(array) {
  form.owner = nb::object(), form.hold = {};
  desc.data = nullptr;
}

namespace {
// "input has shape (2, 3), expected (N, 4) with N = 2"
[[noreturn]] void wrong_shape(const Array& a, const Array& form, std::size_t batch, const char* where,
                              const char* label) {
  std::string expected = form.shape_text();
  if (batch != kWhole) {
    Array whole = form;
    if (whole.rank < 8) {
      for (std::size_t k = whole.rank; k-- > 0;) whole.shape[k + 1] = whole.shape[k];
      whole.shape[0] = batch, ++whole.rank;
      expected = whole.shape_text();
    }
  }
  refuse(where, std::string(label) + " has shape " + a.shape_text() + ", expected " + expected);
}
}  // namespace

Bound bind(nb::handle object, const Expected& expected, std::size_t batch, bool written, bool optional,
           const char* where, const char* label) {
  if (object.is_none()) {
    if (optional) return {};
    refuse(where, std::string(label) + " is None, expected an array");
  }
  Array made;
  const Array& a = written ? output_of(object, made, where, label) : array_of(object, made, where, label);
  const Array& form = expected.form;
  if (!a.data && a.count > 0) refuse(where, std::string(label) + " is a shape without data, expected an array");
  if (!expected.given()) refuse(where, std::string(label) + " is given, expected None: the layer has none");
  if (a.type != form.type) {
    refuse(where, std::string(label) + " is of dtype " + type_name(a.type) + ", expected " + type_name(form.type) +
                      ": use .astype(\"" + type_name(form.type) + "\")");
  }
  const std::size_t samples = batch == kWhole ? 1 : batch;
  std::size_t whole = 0;
  if (__builtin_mul_overflow(form.count, samples, &whole) || a.count != whole)
    wrong_shape(a, form, batch, where, label);
  if (a.packed && form.packed) return {a.data, form.count, std::move(made.hold)};
  // With gaps: samples lie as the layer's do, at any distance from each other.
  const std::size_t lead = a.rank - form.rank;
  bool same = a.rank >= form.rank && lead <= 1 && (lead == 0 ? samples == 1 : a.shape[0] == samples);
  for (std::size_t k = 0; same && k < form.rank; ++k) {
    same = a.shape[lead + k] == form.shape[k] && (form.shape[k] == 1 || a.stride[lead + k] == form.stride[k]);
  }
  if (!same)
    refuse(where, std::string(label) + " has other strides than the layer was made for, expected a packed array");
  if (lead == 1 && samples > 1 && a.stride[0] == 0 && written) {
    refuse(where, std::string(label) + " repeats one sample (stride 0), expected memory for each");
  }
  return {a.data, lead == 1 && samples > 1 ? a.stride[0] : form.count, std::move(made.hold)};
}

Gradient::Gradient(nb::handle object, const Expected& expected, std::size_t batch, bool written, bool optional,
                   const char* where, const char* label) {
  Bound b = bind(object, expected, batch, written, optional, where, label);
  if (!b.data) return;
  desc = expected.desc;
  desc.data = b.data, stride = b.stride, hold = std::move(b.hold);
  bytes = batch == kWhole && expected.form.packed ? expected.form.count * element_size(expected.form.type) : 0;
  if (nb::inst_check(object) && nb::isinstance<Array>(object) && nb::inst_ptr<Array>(object)->accumulate) {
    desc.flags = BNNSNDArrayFlagBackpropAccumulate;
  }
}

void Gradient::clear() {
  if (desc.data && desc.flags != BNNSNDArrayFlagBackpropAccumulate) std::memset(desc.data, 0, bytes);
}

void bind_arrays(nb::module_& m) {
  nb::class_<Array>(
      m, "Array",
      "Memory of another object with its shape, or a shape alone; what a layer is made with and calls take.")
      .def(
          "__init__",
          [](Array* self, nb::object source, nb::object dtype, std::uint32_t layout) {
            Array a = is_shape(source) ? from_shape(source, dtype) : make_array(source, "Array", "source");
            if (!is_shape(source) && !dtype.is_none() && data_type(dtype) != a.type) {
              refuse("Array", std::string("source is of dtype ") + type_name(a.type) + ", expected " +
                                  type_name(data_type(dtype)));
            }
            a.layout = layout;
            if (layout != 0) describe(a, Role::generic, "Array", "source");
            new (self) Array(std::move(a));
          },
          nb::arg("source"), nb::arg("dtype").none() = nb::none(), nb::arg("layout") = 0)
      .def(
          "accumulating",
          [](const Array& self) {
            Array a = self;
            a.accumulate = true;
            return a;
          },
          "The same memory, as a gradient that is added to instead of overwritten.")
      .def_prop_ro("shape",
                   [](const Array& a) {
                     nb::list sizes;
                     for (std::size_t k = 0; k < a.rank; ++k) sizes.append(a.shape[k]);
                     return nb::typed<nb::tuple, nb::int_, nb::ellipsis>(nb::tuple(sizes));
                   })
      .def_prop_ro("dtype", [](const Array& a) { return type_name(a.type); })
      .def("__repr__", [](const Array& a) { return "Array(" + a.shape_text() + ", " + type_name(a.type) + ")"; })
      .def_prop_ro("layout", [](const Array& a) { return a.layout; })
      .def_prop_ro(
          "address", [](const Array& a) { return reinterpret_cast<std::uintptr_t>(a.data); },
          "Where the first element lies; 0 for a shape alone.")
      .def_prop_ro("read_only", [](const Array& a) { return a.read_only; })
      .def_prop_ro("owner", [](const Array& a) { return a.owner.is_valid() ? a.owner : nb::none(); });
}

}  // namespace openbnns

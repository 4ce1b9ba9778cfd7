// Kernels as bytes and back: archives of the library, copies, and with them
// pickle and copy of Python.
#include <nanobind/stl/string.h>

#include "python/src/mps/objects.h"

namespace openbnns {

namespace {

nb::bytes serialize(const MPS::Kernel* kernel) {
  Pool pool;
  const NS::Data* data = kernel->serialize();
  if (!data) refused("serialize");
  return nb::bytes(static_cast<const char*>(data->bytes()), data->length());
}

// The Python object of a kernel whose reference is the caller's.
template <class Kernel, class Base>
nb::object wrap(MPS::Kernel* kernel) {
  Of<Kernel, Base> made;
  made.object = NS::TransferPtr(static_cast<Kernel*>(kernel));
  return nb::cast(std::move(made));
}

nb::object to_python(MPS::Kernel* kernel, const char* where) {
  if (!kernel) refused(where);
  const std::string name = name_of(kernel);
  if (name == "CNNPoolingMax") return wrap<MPS::CNNPoolingMax, Forward>(kernel);
  if (name == "CNNPoolingAverage") return wrap<MPS::CNNPoolingAverage, Forward>(kernel);
  if (name == "CNNPoolingL2Norm") return wrap<MPS::CNNPoolingL2Norm, Forward>(kernel);
  if (name == "CNNDilatedPoolingMax") return wrap<MPS::CNNDilatedPoolingMax, Forward>(kernel);
  if (name == "CNNPoolingMaxGradient") return wrap<MPS::CNNPoolingMaxGradient, Backward>(kernel);
  if (name == "CNNPoolingAverageGradient") return wrap<MPS::CNNPoolingAverageGradient, Backward>(kernel);
  if (name == "CNNPoolingL2NormGradient") return wrap<MPS::CNNPoolingL2NormGradient, Backward>(kernel);
  if (name == "CNNDilatedPoolingMaxGradient") return wrap<MPS::CNNDilatedPoolingMaxGradient, Backward>(kernel);
  kernel->release();
  refuse(where, "the archive is of class " + name + ", expected a pooling kernel of this package");
}

nb::object deserialize(nb::bytes data, const Device* device) {
  Pool pool;
  return to_python(
      MPS::Kernel::deserialize(NS::Data::data(data.c_str(), data.size()), device ? device->object.get() : nullptr),
      "deserialize");
}

template <class Class>
void bind(Class& c) {
  using Self = typename Class::Type;
  c.def(
       "serialize", [](const Self& k) { return serialize(k.object.get()); },
       "Every property as bytes, for openbnns.mps.deserialize; the device is "
       "not among them.")
      .def(
          "copy",
          [](const Self& k, const Device* device) {
            Pool pool;
            return to_python(k.object->copy(device ? device->object.get() : nullptr), "copy");
          },
          nb::arg("device").none() = nb::none(),
          nb::sig("def copy(self, device: Device | None = None) -> typing_extensions.Self"),
          "A kernel with the same properties, on the same device unless "
          "another is given.")
      .def(
          "__copy__", [](const Self& k) { return to_python(k.object->copy(nullptr), "copy"); },
          nb::sig("def __copy__(self) -> typing_extensions.Self"))
      .def(
          "__deepcopy__", [](const Self& k, nb::handle) { return to_python(k.object->copy(nullptr), "copy"); },
          nb::sig("def __deepcopy__(self, memo: object, /) -> typing_extensions.Self"))
      .def(
          "__reduce__",
          [](const Self& k) {
            const nb::object from = nb::module_::import_("openbnns.mps").attr("deserialize");
            return nb::make_tuple(from, nb::make_tuple(serialize(k.object.get())));
          },
          nb::sig("def __reduce__(self) -> tuple[object, tuple[bytes]]"));
}

}  // namespace

void bind_archives(nb::module_& m, nb::class_<Forward>& forward, nb::class_<Backward>& backward) {
  m.def("deserialize", &deserialize, nb::arg("data"), nb::arg("device").none() = nb::none(),
        nb::sig("def deserialize(data: bytes, device: Device | None = None) -> "
                "CNNPooling | CNNPoolingGradient"),
        "The kernel of the class that kernel.serialize() had, on a device: by "
        "default the first GPU, else the CPU.");
  bind(forward);
  bind(backward);
}

}  // namespace openbnns

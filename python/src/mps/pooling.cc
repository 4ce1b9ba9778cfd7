// The pooling kernels and their gradients: classes and properties. Results of
// encodes are ordinary images, which can be read, unless the kernel is told to
// make temporary ones.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "python/src/mps/objects.h"

namespace openbnns {

namespace {

using Offset = std::tuple<NS::Integer, NS::Integer, NS::Integer>;
using Sizes = std::tuple<NS::UInteger, NS::UInteger, NS::UInteger>;

template <class Wrapper, class Kernel>
void keep(Wrapper* self, Kernel* made, const char* where) {
  if (!made) refused(where);
  made->setDestinationImageAllocator(MPS::Image::defaultAllocator());
  new (self) Wrapper();
  self->object = NS::TransferPtr(made);
}

Offset get(MPS::Offset o) {
  return {o.x, o.y, o.z};
}
MPS::Offset set(Offset o) {
  return {std::get<0>(o), std::get<1>(o), std::get<2>(o)};
}
// (origin, size), each (x, y, image); None: no clip.
using Clip = std::optional<std::pair<Sizes, Sizes>>;
Clip get(const MTL::Region& r) {
  if (r == MPS::RectNoClip) return std::nullopt;
  return std::pair{Sizes{r.origin.x, r.origin.y, r.origin.z}, Sizes{r.size.width, r.size.height, r.size.depth}};
}
MTL::Region set(const Clip& clip) {
  if (!clip) return MPS::RectNoClip;
  const auto& [o, s] = *clip;
  return {MTL::Origin{std::get<0>(o), std::get<1>(o), std::get<2>(o)},
          MTL::Size{std::get<0>(s), std::get<1>(s), std::get<2>(s)}};
}

MPS::ImageEdgeMode edge_mode(const std::string& name) {
  if (name == "zero") return MPS::ImageEdgeModeZero;
  if (name == "clamp") return MPS::ImageEdgeModeClamp;
  refuse("edge_mode", "it is " + name + ", expected zero or clamp");
}
const char* name_of(MPS::ImageEdgeMode mode) {
  return mode == MPS::ImageEdgeModeClamp ? "clamp" : "zero";
}

constexpr char kWindow[] =
    "A window of kernel_width x kernel_height pixels, "
    "stride_x and stride_y apart.";

template <class Kernel, class Base>
nb::class_<Of<Kernel, Base>, Base> bind_kernel(nb::module_& m, const char* name, const char* doc) {
  using Self = Of<Kernel, Base>;
  return nb::class_<Self, Base>(m, name, doc)
      .def(
          "__init__",
          [name](Self* self, const Device& device, NS::UInteger width, NS::UInteger height, NS::UInteger x,
                 NS::UInteger y) {
            Pool pool;
            keep(self, Kernel::alloc()->init(device.object.get(), width, height, x, y), name);
          },
          nb::arg("device"), nb::arg("kernel_width"), nb::arg("kernel_height"), nb::arg("stride_x") = 1,
          nb::arg("stride_y") = 1, kWindow);
}

template <class Kernel, class Base>
void bind_dilated(nb::module_& m, const char* name, const char* doc) {
  using Self = Of<Kernel, Base>;
  nb::class_<Self, Base>(m, name, doc)
      .def(
          "__init__",
          [name](Self* self, const Device& device, NS::UInteger width, NS::UInteger height, NS::UInteger dx,
                 NS::UInteger dy, NS::UInteger x, NS::UInteger y) {
            Pool pool;
            keep(self, Kernel::alloc()->init(device.object.get(), width, height, dx, dy, x, y), name);
          },
          nb::arg("device"), nb::arg("kernel_width"), nb::arg("kernel_height"), nb::arg("dilation_x"),
          nb::arg("dilation_y"), nb::arg("stride_x") = 1, nb::arg("stride_y") = 1, kWindow);
}

template <class Class>
void bind_zero_pad(Class c) {
  using Self = typename Class::Type;
  c.def_prop_rw(
       "zero_pad_size_x", [](const Self& s) { return s.kernel()->zeroPadSizeX(); },
       [](Self& s, NS::UInteger n) { s.kernel()->setZeroPadSizeX(n); }, "With clamp: columns of zeros that count.")
      .def_prop_rw(
          "zero_pad_size_y", [](const Self& s) { return s.kernel()->zeroPadSizeY(); },
          [](Self& s, NS::UInteger n) { s.kernel()->setZeroPadSizeY(n); }, "With clamp: rows of zeros that count.");
}

template <class Class>
void bind_common(Class& c) {
  using Self = typename Class::Type;
  c.def_prop_rw(
       "temporary_results",
       [](const Self& k) { return k.object->destinationImageAllocator() == MPS::TemporaryImage::defaultAllocator(); },
       [](Self& k, bool temporary) {
         k.object->setDestinationImageAllocator(temporary ? MPS::TemporaryImage::defaultAllocator()
                                                          : MPS::Image::defaultAllocator());
       },
       "Whether encodes without a destination return TemporaryImages, for "
       "other encodes of the same buffer alone.")
      .def_prop_rw(
          "clip_rect", [](const Self& k) { return get(k.object->clipRect()); },
          [](Self& k, const Clip& clip) { k.object->setClipRect(set(clip)); }, nb::for_setter(nb::arg("clip").none()),
          "((x, y, image), (width, height, images)) of the destination that is "
          "written; None: all.")
      .def_prop_rw(
          "padding_method",
          [](const Self& k) {
            return static_cast<NS::UInteger>(k.object->padding() ? k.object->padding()->paddingMethod()
                                                                 : MPS::NNPaddingMethodSizeValidOnly);
          },
          [](Self& k, NS::UInteger method) {
            Pool pool;
            k.object->setPadding(MPS::NNDefaultPadding::paddingWithMethod(static_cast<MPS::NNPaddingMethod>(method)));
          },
          "How large new destinations are: openbnns.mps.PaddingMethod.")
      .def_prop_rw(
          "destination_feature_channel_offset",
          [](const Self& k) { return k.object->destinationFeatureChannelOffset(); },
          [](Self& k, NS::UInteger n) { k.object->setDestinationFeatureChannelOffset(n); },
          "The first channel of the destination that is written.")
      .def_prop_rw(
          "label", [](const Self& k) { return text_of(k.object->label()); },
          [](Self& k, const std::string& text) {
            Pool pool;
            k.object->setLabel(NS::String::string(text.c_str(), NS::UTF8StringEncoding));
          },
          "A name that errors mention.")
      .def_prop_ro("device", [](const Self& k) { return Device{NS::RetainPtr(k.object->device())}; })
      .def("__repr__", [](const Self& k) {
        Pool pool;
        return text_of(k.object->description());
      });
}

nb::class_<Forward> bind_forward(nb::module_& m) {
  nb::class_<Forward> base(m, "CNNPooling", "The base of the pooling kernels.");
  bind_common(base);
  base.def_prop_rw(
          "offset", [](const Forward& f) { return get(f.object->offset()); },
          [](Forward& f, Offset o) { f.object->setOffset(set(o)); },
          "(x, y, image) of the source under the first window's centre. "
          "Encodes without a destination set it.")
      .def_prop_rw(
          "edge_mode", [](const Forward& f) { return name_of(f.object->edgeMode()); },
          [](Forward& f, const std::string& name) { f.object->setEdgeMode(edge_mode(name)); },
          "What lies outside of the source: \"zero\" or \"clamp\", the nearest "
          "pixel.")
      .def_prop_rw(
          "source_feature_channel_offset", [](const Forward& f) { return f.object->sourceFeatureChannelOffset(); },
          [](Forward& f, NS::UInteger n) { f.object->setSourceFeatureChannelOffset(n); },
          "The first channel of the source that is read.")
      .def_prop_rw(
          "source_feature_channel_max_count", [](const Forward& f) { return f.object->sourceFeatureChannelMaxCount(); },
          [](Forward& f, NS::UInteger n) { f.object->setSourceFeatureChannelMaxCount(n); },
          "How many channels of the source are read at most.");
  bind_kernel<MPS::CNNPoolingMax, Forward>(m, "CNNPoolingMax", "The largest value of each window.");
  bind_zero_pad(bind_kernel<MPS::CNNPoolingAverage, Forward>(m, "CNNPoolingAverage", "The mean of each window."));
  bind_kernel<MPS::CNNPoolingL2Norm, Forward>(m, "CNNPoolingL2Norm",
                                              "The square root of the sum of squares of each window.");
  bind_dilated<MPS::CNNDilatedPoolingMax, Forward>(m, "CNNDilatedPoolingMax",
                                                   "The largest of taps that are dilation_x and dilation_y apart.");
  return base;
}

nb::class_<Backward> bind_backward(nb::module_& m) {
  nb::class_<Backward> base(m, "CNNPoolingGradient", "The base of the gradient kernels.");
  bind_common(base);
  base.def_prop_rw(
          "primary_offset", [](const Backward& f) { return get(f.object->primaryOffset()); },
          [](Backward& f, Offset o) { f.object->setPrimaryOffset(set(o)); })
      .def_prop_rw(
          "secondary_offset", [](const Backward& f) { return get(f.object->secondaryOffset()); },
          [](Backward& f, Offset o) { f.object->setSecondaryOffset(set(o)); })
      .def_prop_rw(
          "secondary_edge_mode", [](const Backward& f) { return name_of(f.object->secondaryEdgeMode()); },
          [](Backward& f, const std::string& name) { f.object->setSecondaryEdgeMode(edge_mode(name)); })
      .def_prop_rw(
          "source_size",
          [](const Backward& f) {
            const MTL::Size s = f.object->sourceSize();
            return Sizes{s.width, s.height, s.depth};
          },
          [](Backward& f, Sizes s) {
            f.object->setSourceSize({std::get<0>(s), std::get<1>(s), std::get<2>(s)});
          },
          "(width, height, images) of the incoming gradient that count.")
      .def_prop_rw(
          "kernel_offset_x", [](const Backward& f) { return f.object->kernelOffsetX(); },
          [](Backward& f, NS::Integer n) { f.object->setKernelOffsetX(n); },
          "Subtracted from the position of every window, in pixels of the "
          "source.")
      .def_prop_rw(
          "kernel_offset_y", [](const Backward& f) { return f.object->kernelOffsetY(); },
          [](Backward& f, NS::Integer n) { f.object->setKernelOffsetY(n); });
  bind_kernel<MPS::CNNPoolingMaxGradient, Backward>(m, "CNNPoolingMaxGradient",
                                                    "All of it goes to the first maximum of a window.");
  bind_zero_pad(
      bind_kernel<MPS::CNNPoolingAverageGradient, Backward>(m, "CNNPoolingAverageGradient", "Spread over the window."));
  bind_kernel<MPS::CNNPoolingL2NormGradient, Backward>(m, "CNNPoolingL2NormGradient", "Times source / norm.");
  bind_dilated<MPS::CNNDilatedPoolingMaxGradient, Backward>(m, "CNNDilatedPoolingMaxGradient",
                                                            "As CNNPoolingMaxGradient, with dilation.");
  return base;
}

}  // namespace

std::string name_of(const MPS::Kernel* kernel) {
  const std::string name = kernel->className();
  return name.rfind("MPS", 0) == 0 ? name.substr(3) : name;
}

void bind_pooling(nb::module_& m) {
  nb::class_<Forward> forward = bind_forward(m);
  nb::class_<Backward> backward = bind_backward(m);
  bind_encodes(forward, backward);
  bind_archives(m, forward, backward);
}

}  // namespace openbnns

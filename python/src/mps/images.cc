// Images: arrays of (N, C, H, W) in and out, and the memory itself by DLPack,
// on the CPU and on a GPU.
//
// The memory holds texels of four channels (one and two: of one and two): (N,
// slices, H, W, lanes).
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "python/src/mps/objects.h"

namespace openbnns {

namespace {

struct Format {
  const char* name;
  MPS::ImageFeatureChannelFormat format;
  nb::dlpack::dtype dtype;
};
constexpr nb::dlpack::dtype of(nb::dlpack::dtype_code code, std::uint8_t bits) {
  return {static_cast<std::uint8_t>(code), bits, 1};
}
constexpr Format kFormats[] = {
    {"float32", MPS::ImageFeatureChannelFormatFloat32, of(nb::dlpack::dtype_code::Float, 32)},
    {"float16", MPS::ImageFeatureChannelFormatFloat16, of(nb::dlpack::dtype_code::Float, 16)},
    {"uint8", MPS::ImageFeatureChannelFormatUnorm8, of(nb::dlpack::dtype_code::UInt, 8)},
    {"uint16", MPS::ImageFeatureChannelFormatUnorm16, of(nb::dlpack::dtype_code::UInt, 16)},
};
constexpr char kTypes[] = "float32, float16, uint8 or uint16";

const Format& format_of(const Image& image) {
  for (const Format& f : kFormats) {
    if (f.format == image.object->featureChannelFormat()) return f;
  }
  refuse("Image", "it has another format than this package knows");
}

std::vector<std::size_t> shape_of(const Image& i) {
  return {i.object->numberOfImages(), i.object->featureChannels(), i.object->height(), i.object->width()};
}

std::string text(const std::vector<std::size_t>& shape) {
  std::string s = "(";
  for (std::size_t k = 0; k < shape.size(); ++k) s += (k > 0 ? ", " : "") + std::to_string(shape[k]);
  return s + ")";
}

MPS::ImageDescriptor* describe(const std::vector<std::size_t>& shape, const std::string& dtype) {
  const Format* format = nullptr;
  for (const Format& f : kFormats) {
    if (dtype == f.name) format = &f;
  }
  if (!format) refuse("Image", "dtype is " + dtype + ", expected " + kTypes);
  if (shape.size() != 4) refuse("Image", "shape has " + std::to_string(shape.size()) + " axes, expected (N, C, H, W)");
  const auto usage = MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite;
  return MPS::ImageDescriptor::imageDescriptor(format->format, shape[3], shape[2], shape[1], shape[0], usage);
}

Image make_image(const Device& device, const std::vector<std::size_t>& shape, const std::string& dtype) {
  Image image{NS::TransferPtr(MPS::Image::alloc()->init(device.object.get(), describe(shape, dtype)))};
  if (!image.object) refused("Image");
  return image;
}

TemporaryImage make_temporary(const Buffer& buffer, const std::vector<std::size_t>& shape, const std::string& dtype) {
  TemporaryImage image;
  image.object =
      NS::RetainPtr<MPS::Image>(MPS::TemporaryImage::temporaryImage(buffer.object.get(), describe(shape, dtype)));
  if (!image.object) refused("TemporaryImage");
  return image;
}

MPS::TemporaryImage* temporary(const TemporaryImage& image) {
  return static_cast<MPS::TemporaryImage*>(image.object.get());
}

constexpr auto kCHW = MPS::DataLayoutFeatureChannelsxHeightxWidth;

// Copies an array of the CPU in. Arrays of a GPU are copied there by their own
// library (openbnns.mps).
void write(Image& image, nb::handle object) {
  Pool pool;
  nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig> x;
  if (!nb::try_cast<nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>>(object, x)) {
    nb::module_::import_("openbnns.mps").attr("_write_elsewhere")(nb::find(image), object);
    return;
  }
  const Format& format = format_of(image);
  if (x.dtype() != format.dtype) refuse("Image.write", std::string("x is of another dtype, expected ") + format.name);
  const auto shape = shape_of(image);
  const std::size_t lead = shape[0] == 1 && x.ndim() == 3 ? 1 : 0;
  std::vector<std::size_t> given;
  for (std::size_t k = 0; k < x.ndim(); ++k) given.push_back(x.shape(k));
  if (given != std::vector<std::size_t>(shape.begin() + static_cast<std::ptrdiff_t>(lead), shape.end()))
    refuse("Image.write", "x has shape " + text(given) + ", expected " + text(shape));
  const char* data = static_cast<const char*>(x.data());
  const std::size_t bytes = shape[1] * shape[2] * shape[3] * format.dtype.bits / 8;
  {
    nb::gil_scoped_release released;
    for (std::size_t n = 0; n < shape[0]; ++n) image.object->writeBytes(data + n * bytes, kCHW, n);
  }
  if (*MTLX::lastError()) refused("Image.write");
}

nb::object read(const Image& image) {
  Pool pool;
  const Format& format = format_of(image);
  const auto shape = shape_of(image);
  nb::object array = nb::module_::import_("numpy").attr("empty")(nb::tuple(nb::cast(shape)), format.name);
  char* data = static_cast<char*>(nb::cast<nb::ndarray<nb::device::cpu>>(array).data());
  const std::size_t bytes = shape[1] * shape[2] * shape[3] * format.dtype.bits / 8;
  {
    nb::gil_scoped_release released;
    for (std::size_t n = 0; n < shape[0]; ++n) image.object->readBytes(data + n * bytes, kCHW, n);
  }
  if (*MTLX::lastError()) refused("Image.numpy");
  return array;
}

// The memory as it lies on its device; alive as long as somebody has it.
nb::object texels(Image& image) {
  Pool pool;
  const nb::object self = nb::find(image);
  if (image.object->isTemporary())
    refuse("TemporaryImage.texels", "its memory belongs to the command buffer, expected an Image");
  MTL::Texture* texture = image.object->texture();
  char* data = static_cast<char*>(texture ? MTLX::contents(texture) : nullptr);
  if (!data) refused("Image.texels");
  const auto shape = shape_of(image);
  const std::size_t lanes = shape[1] >= 3 ? 4 : shape[1];
  data += image.first * ((shape[1] + 3) / 4) * shape[2] * shape[3] * lanes * format_of(image).dtype.bits / 8;
  const MTL::Device* device = image.object->device();
  const bool cuda = MTLX::deviceKind(device) == MTLX::DeviceKind::cuda;
  const nb::ndarray<nb::array_api> array(
      data, {shape[0], (shape[1] + 3) / 4, shape[2], shape[3], lanes}, self, {}, format_of(image).dtype,
      cuda ? nb::device::cuda::value : nb::device::cpu::value, cuda ? static_cast<int>(device->registryID()) - 1 : 0);
  return nb::cast(array);
}

nb::list batch_representation(Image& image) {
  Pool pool;
  MPS::ImageBatch* batch = image.object->batchRepresentation();
  if (!batch) refused("Image.batch_representation");
  nb::list views;
  for (NS::UInteger i = 0; i < batch->count(); ++i) views.append(to_python(batch->image(i), image.first + i));
  return views;
}

}  // namespace

nb::object to_python(MPS::Image* image, std::size_t first) {
  if (!image->isTemporary()) return nb::cast(Image{NS::RetainPtr(image), first});
  TemporaryImage made;
  made.object = NS::RetainPtr(image);
  return nb::cast(std::move(made));
}

void bind_images(nb::module_& m) {
  nb::class_<Image>(m, "Image",
                    "N images of C channels on a device. Wait for the buffers "
                    "that use it before reading or writing.")
      .def(
          "__init__",
          [](Image* self, const Device& device, const std::vector<std::size_t>& shape, const std::string& dtype) {
            Pool pool;
            new (self) Image(make_image(device, shape, dtype));
          },
          nb::arg("device"), nb::arg("shape"), nb::arg("dtype") = "float32",
          "shape (N, C, H, W); dtype float32, float16, or uint8 and uint16, "
          "which stand for 0 to 1. Holds zeros.")
      .def("write", &write, nb::arg("x"), nb::sig("def write(self, x: object) -> None"),
           "Copies an array of (N, C, H, W) in: of the CPU, or of the image's "
           "GPU.")
      .def("numpy", &read, nb::sig("def numpy(self) -> numpy.ndarray"), "A copy of (N, C, H, W).")
      .def("texels", &texels, nb::sig("def texels(self) -> object"),
           "The memory itself, for DLPack: (N, slices, H, W, 4), channel c in "
           "slice c // 4; 1 and 2 channels: (N, 1, "
           "H, W, C).")
      .def(
          "__dlpack__", [](Image& self, nb::kwargs options) { return texels(self).attr("__dlpack__")(**options); },
          nb::sig("def __dlpack__(self, **options: object) -> object"))
      .def(
          "__dlpack_device__", [](Image& self) { return texels(self).attr("__dlpack_device__")(); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro(
          "shape",
          [](const Image& i) { return nb::typed<nb::tuple, nb::int_, nb::ellipsis>(nb::tuple(nb::cast(shape_of(i)))); })
      .def("batch_representation", &batch_representation, nb::sig("def batch_representation(self) -> list[Image]"),
           "A view of one image for each of the N, on the same memory.")
      .def_prop_ro("is_temporary", [](const Image& i) { return i.object->isTemporary(); })
      .def_prop_rw(
          "label", [](const Image& i) { return text_of(i.object->label()); },
          [](Image& i, const std::string& text) {
            Pool pool;
            i.object->setLabel(NS::String::string(text.c_str(), NS::UTF8StringEncoding));
          },
          "A name that errors mention.")
      .def_prop_ro("dtype", [](const Image& i) { return format_of(i).name; })
      .def_prop_ro("device", [](const Image& i) { return Device{NS::RetainPtr(i.object->device())}; })
      .def("__repr__", [](const Image& i) { return "Image(" + text(shape_of(i)) + ", " + format_of(i).name + ")"; });
  nb::class_<TemporaryImage, Image>(m, "TemporaryImage",
                                    "An image between two encodes of one command buffer, whose memory is "
                                    "used again once it was read read_count "
                                    "times. It can be neither read nor written from Python.")
      .def(
          "__init__",
          [](TemporaryImage* self, const Buffer& buffer, const std::vector<std::size_t>& shape,
             const std::string& dtype) {
            Pool pool;
            new (self) TemporaryImage(make_temporary(buffer, shape, dtype));
          },
          nb::arg("command_buffer"), nb::arg("shape"), nb::arg("dtype") = "float32", "shape and dtype as of Image.")
      .def_prop_rw(
          "read_count", [](const TemporaryImage& i) { return temporary(i)->readCount(); },
          [](TemporaryImage& i, NS::UInteger count) {
            Pool pool;
            temporary(i)->setReadCount(count);
            if (*MTLX::lastError()) refused("TemporaryImage.read_count");
          },
          "How many encodes may still read it, 1 at first; set it before the "
          "first of several.");
  nb::class_<State>(m, "State", "What a forward encode leaves for its gradient.");
}

}  // namespace openbnns

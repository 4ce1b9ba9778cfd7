#include "src/mps/device/recorder.h"

#include <algorithm>
#include <cstdio>

namespace bnns::mps {

Recorder::Recorder(MTL::CommandBuffer* buffer, const MPS::Kernel& kernel)
    : kernel_(kernel), buffer_(open_buffer(buffer)) {
  if (!kernel.device()) fail_invalid("the kernel was allocated but not initialised");
  if (buffer_.device() != kernel.device()) fail_invalid("the kernel is on another device than the command buffer");
}

void Recorder::source(MPS::Image* image, const char* what) {
  use(image, what);
  sources_.push_back(image);
}

void Recorder::destination(MPS::Image* image, const char* what) {
  use(image, what);
}

void Recorder::use(MPS::Image* image, const char* what) {
  if (!image) fail_invalid("%s is null", what);
  ImageAccess::check_usable(*image, what, buffer_);
  images_.push_back(image);
}

namespace {

// The bytes of an image, or of the object itself where it has no memory yet: two images without memory are apart
// unless they are one.
struct Extent {
  const char *begin, *end;

  explicit Extent(const MPS::Image& image) {
    if (!ImageAccess::has_memory(image)) {
      begin = reinterpret_cast<const char*>(&image);
      end = begin + 1;
      return;
    }
    // Views of one texture may follow each other, but not overlap.
    begin = ImageAccess::texture(const_cast<MPS::Image&>(image)).row(ImageAccess::first_slice(image), 0);
    end = begin + ImageAccess::bytes(image);
  }
};

constexpr char kShared[] = "destination shares memory with a source";

}  // namespace

void Recorder::check_apart(const MPS::Image& source, const MPS::Image& destination) {
  if (&source == &destination) fail_invalid("destination is also a source");
  const Extent a(source), b(destination);
  if (a.begin < b.end && b.begin < a.end) fail_invalid("%s", kShared);
}

void Recorder::check_apart(const MPS::ImageBatch& sources, const MPS::ImageBatch& destinations) {
  std::vector<Extent> taken;
  for (NS::UInteger i = 0; i < destinations.count(); ++i) taken.emplace_back(*destinations.image(i));
  std::sort(taken.begin(), taken.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  // Destinations may overlap each other: from here on `end` is the farthest of all that begin earlier.
  for (size_t i = 1; i < taken.size(); ++i) taken[i].end = std::max(taken[i].end, taken[i - 1].end);
  for (NS::UInteger i = 0; i < sources.count(); ++i) {
    const Extent source(*sources.image(i));
    const auto after = std::lower_bound(taken.begin(), taken.end(), source.end,
                                        [](const Extent& extent, const char* end) { return extent.begin < end; });
    if (after != taken.begin() && (after - 1)->end > source.begin) fail_invalid("%s", kShared);
  }
}

ImageView Recorder::view(MPS::Image& image, bool overwritten) {
  return ImageAccess::view(image, ImageAccess::texture(image, &buffer_, overwritten));
}

ImageView Recorder::size_view(MPS::Image& image) {
  if (ImageAccess::has_memory(image)) return view(image);
  ImageView view;
  pixel_type(image.featureChannelFormat(), &view.type);
  view.width = static_cast<int64_t>(image.width());
  view.height = static_cast<int64_t>(image.height());
  view.slices = static_cast<int64_t>(ImageAccess::slices(image.featureChannels()));
  view.lanes = ImageAccess::lanes(image.featureChannels());
  return view;
}

void Recorder::clear(MPS::Image& image) {
  if (ImageAccess::has_memory(image)) operations_.push_back(ImageAccess::fill(image, ImageAccess::texture(image)));
}

void Recorder::finish() {
  buffer_.reserve(operations_.size(), images_.size());
  for (const Operation& operation : operations_) buffer_.add(operation);
  for (MPS::Image* image : images_) buffer_.keep(image);
  std::sort(sources_.begin(), sources_.end());
  sources_.erase(std::unique(sources_.begin(), sources_.end()), sources_.end());
  for (MPS::Image* image : sources_) ImageAccess::count_read(*image);
  if (kernel_.options() & MPS::KernelOptionsVerbose) {
    std::fprintf(stderr, "bnns_verbose,encode,%s,%zu operations,%zu images\n", kernel_.className(), operations_.size(),
                 images_.size());
  }
}

void fail_encode(const MPS::Kernel& kernel, MTL::CommandBuffer* buffer, const Error* error) noexcept {
  const Reporter reporter(kernel, buffer);
  error ? reporter.refused(*error) : reporter.out_of_memory();
  auto* ours = dynamic_cast<CommandBufferImpl*>(buffer);
  if (!ours || ours->committed()) return;  // too late for the buffer: lastError alone has it
  const bool memory = !error || error->kind() == ErrorKind::out_of_memory;
  ours->fail(memory ? MTL::CommandBufferErrorOutOfMemory : MTL::CommandBufferErrorInvalidResource, last_error());
}

}  // namespace bnns::mps

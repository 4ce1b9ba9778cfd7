// Encodes of the pooling kernels: one image, a batch of them, with and without
// the states that gradients take.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "python/src/mps/objects.h"

namespace openbnns {

namespace {

using Images = std::vector<const Image*>;
using States = std::vector<const State*>;

// An encode that returned nothing has failed its buffer; the buffer's error is
// the reason.
void check_encode(const Buffer& buffer, const void* result, const std::string& where) {
  const NS::Error* error = buffer.object->error();
  if (result && !error) return;
  refuse(where, error ? text_of(error->localizedDescription()) : std::string(MTLX::lastError()));
}

MPS::ImageBatch* batch_of(const Images& images, const std::string& where) {
  std::vector<MPS::Image*> all;
  for (const Image* image : images) all.push_back(image ? image->object.get() : nullptr);
  MPS::ImageBatch* batch = MPS::ImageBatch::batch(all.data(), all.size());
  if (!batch) refuse(where, "a batch has None in it, expected images");
  return batch;
}

MPS::StateBatch* batch_of(const States& states, const std::string& where) {
  std::vector<MPS::State*> all;
  for (const State* state : states) all.push_back(state ? state->object.get() : nullptr);
  MPS::StateBatch* batch = MPS::StateBatch::batch(all.data(), all.size());
  if (!batch) refuse(where, "states has None in it, expected states");
  return batch;
}

nb::list list_of(const MPS::ImageBatch* batch) {
  nb::list images;
  for (NS::UInteger i = 0; i < batch->count(); ++i) images.append(to_python(batch->image(i)));
  return images;
}

// The Python objects that were given.
nb::list list_of(const Images& given) {
  nb::list images;
  for (const Image* image : given) images.append(nb::find(*image));
  return images;
}

nb::object encode(const Forward& f, Buffer& buffer, const Image& source, const Image* destination) {
  Pool pool;
  const std::string where = name_of(f.object.get());
  if (destination) {
    f.object->encodeToCommandBuffer(buffer.object.get(), source.object.get(), destination->object.get());
    check_encode(buffer, &buffer, where);
    return nb::find(*destination);
  }
  MPS::Image* made = f.object->encodeToCommandBuffer(buffer.object.get(), source.object.get());
  check_encode(buffer, made, where);
  return to_python(made);
}

nb::object encode_with_state(const Forward& f, Buffer& buffer, const Image& source) {
  Pool pool;
  MPS::State* state = nullptr;
  MPS::Image* made = f.object->encodeToCommandBuffer(buffer.object.get(), source.object.get(), &state, false);
  check_encode(buffer, state ? made : nullptr, name_of(f.object.get()));
  return nb::make_tuple(to_python(made), State{NS::RetainPtr(state)});
}

nb::object encode_batch(const Forward& f, Buffer& buffer, const Images& sources,
                        const std::optional<Images>& destinations) {
  Pool pool;
  const std::string where = name_of(f.object.get());
  MPS::ImageBatch* from = batch_of(sources, where);
  if (destinations) {
    f.object->encodeBatchToCommandBuffer(buffer.object.get(), from, batch_of(*destinations, where));
    check_encode(buffer, &buffer, where);
    return list_of(*destinations);
  }
  MPS::ImageBatch* made = f.object->encodeBatchToCommandBuffer(buffer.object.get(), from);
  check_encode(buffer, made, where);
  return list_of(made);
}

nb::object encode_batch_with_states(const Forward& f, Buffer& buffer, const Images& sources) {
  Pool pool;
  const std::string where = name_of(f.object.get());
  MPS::StateBatch* states = nullptr;
  MPS::ImageBatch* made =
      f.object->encodeBatchToCommandBuffer(buffer.object.get(), batch_of(sources, where), &states, false);
  check_encode(buffer, states ? made : nullptr, where);
  nb::list kept;
  for (NS::UInteger i = 0; i < states->count(); ++i) kept.append(State{NS::RetainPtr(states->state(i))});
  return nb::make_tuple(list_of(made), kept);
}

nb::object encode_gradient(const Backward& f, Buffer& buffer, const Image& gradient, const Image& source,
                           const State* state, const Image* destination) {
  Pool pool;
  const std::string where = name_of(f.object.get());
  MTL::CommandBuffer* to = buffer.object.get();
  MPS::Image *dy = gradient.object.get(), *x = source.object.get();
  MPS::State* from = state ? state->object.get() : nullptr;
  if (destination) {
    MPS::Image* dx = destination->object.get();
    from ? f.object->encodeToCommandBuffer(to, dy, x, from, dx) : f.object->encodeToCommandBuffer(to, dy, x, dx);
    check_encode(buffer, &buffer, where);
    return nb::find(*destination);
  }
  MPS::Image* made =
      from ? f.object->encodeToCommandBuffer(to, dy, x, from) : f.object->encodeToCommandBuffer(to, dy, x);
  check_encode(buffer, made, where);
  return to_python(made);
}

nb::object encode_gradient_batch(const Backward& f, Buffer& buffer, const Images& gradients, const Images& sources,
                                 const std::optional<States>& states, const std::optional<Images>& destinations) {
  Pool pool;
  const std::string where = name_of(f.object.get());
  MTL::CommandBuffer* to = buffer.object.get();
  MPS::ImageBatch *dy = batch_of(gradients, where), *x = batch_of(sources, where);
  MPS::StateBatch* from = states ? batch_of(*states, where) : nullptr;
  if (destinations) {
    MPS::ImageBatch* dx = batch_of(*destinations, where);
    from ? f.object->encodeBatchToCommandBuffer(to, dy, x, from, dx)
         : f.object->encodeBatchToCommandBuffer(to, dy, x, dx);
    check_encode(buffer, &buffer, where);
    return list_of(*destinations);
  }
  MPS::ImageBatch* made =
      from ? f.object->encodeBatchToCommandBuffer(to, dy, x, from) : f.object->encodeBatchToCommandBuffer(to, dy, x);
  check_encode(buffer, made, where);
  return list_of(made);
}

}  // namespace

void bind_encodes(nb::class_<Forward>& forward, nb::class_<Backward>& backward) {
  forward
      .def("encode", &encode, nb::arg("command_buffer"), nb::arg("source"), nb::arg("destination").none() = nb::none(),
           nb::sig("def encode(self, command_buffer: CommandBuffer, source: "
                   "Image, destination: Image | None = None) -> Image"),
           "Records the pooling of `source`; returns the destination, by "
           "default a new image sized by the padding "
           "policy.")
      .def("encode_with_state", &encode_with_state, nb::arg("command_buffer"), nb::arg("source"),
           nb::sig("def encode_with_state(self, command_buffer: CommandBuffer, "
                   "source: Image) -> tuple[Image, State]"),
           "The same, and the state that the gradient kernel takes.")
      .def("encode_batch", &encode_batch, nb::arg("command_buffer"), nb::arg("sources"),
           nb::arg("destinations").none() = nb::none(),
           nb::sig("def encode_batch(self, command_buffer: CommandBuffer, "
                   "sources: collections.abc.Sequence[Image], "
                   "destinations: collections.abc.Sequence[Image] | None = "
                   "None) -> list[Image]"),
           "The same for images that are worked on together, one image each.")
      .def("encode_batch_with_states", &encode_batch_with_states, nb::arg("command_buffer"), nb::arg("sources"),
           nb::sig("def encode_batch_with_states(self, command_buffer: "
                   "CommandBuffer, sources: "
                   "collections.abc.Sequence[Image]) -> tuple[list[Image], "
                   "list[State]]"),
           "encode_batch and encode_with_state at once.");
  backward
      .def("encode", &encode_gradient, nb::arg("command_buffer"), nb::arg("source_gradient"), nb::arg("source_image"),
           nb::arg("state").none() = nb::none(), nb::arg("destination").none() = nb::none(),
           nb::sig("def encode(self, command_buffer: CommandBuffer, "
                   "source_gradient: Image, source_image: Image, state: "
                   "State | None = None, destination: Image | None = None) -> "
                   "Image"),
           "Records the gradient with respect to `source_image`, which the "
           "forward kernel read, from that of its "
           "destination. The state sets offsets and edge mode where there is "
           "no destination.")
      .def("encode_batch", &encode_gradient_batch, nb::arg("command_buffer"), nb::arg("source_gradients"),
           nb::arg("source_images"), nb::arg("states").none() = nb::none(), nb::arg("destinations").none() = nb::none(),
           nb::sig("def encode_batch(self, command_buffer: CommandBuffer, "
                   "source_gradients: "
                   "collections.abc.Sequence[Image], source_images: "
                   "collections.abc.Sequence[Image], states: "
                   "collections.abc.Sequence[State] | None = None, "
                   "destinations: collections.abc.Sequence[Image] | None "
                   "= None) -> list[Image]"),
           "The same for images that are worked on together.");
}

}  // namespace openbnns

// openbnns._mps: the pooling classes of Metal Performance Shaders for Python. openbnns.mps is what users import.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/mps/objects.h"

namespace openbnns {

namespace {

Device make_device(const std::string& kind, NS::Integer ordinal) {
  if (kind != "default" && kind != "cpu" && kind != "cuda")
    refuse("Device", "kind is " + kind + ", expected default, cpu or cuda");
  Device device;
  if (kind == "default") device.object = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  if (kind == "cpu") device.object = NS::TransferPtr(MTLX::CreateCPUDevice());
  if (kind == "cuda") device.object = NS::TransferPtr(MTLX::CreateCUDADevice(ordinal));
  if (!device.object) refused("Device");
  return device;
}

const char* kind_of(const Device& d) {
  return MTLX::deviceKind(d.object.get()) == MTLX::DeviceKind::cuda ? "cuda" : "cpu";
}

void bind_devices(nb::module_& m) {
  nb::class_<Device>(m, "Device", "Where images lie and kernels run: a CUDA GPU, or the CPU.")
      .def(
          "__init__",
          [](Device* self, const std::string& kind, NS::Integer ordinal) {
            Pool pool;
            new (self) Device(make_device(kind, ordinal));
          },
          nb::arg("kind") = "default", nb::arg("ordinal") = 0,
          "kind: \"default\" (the first GPU, else the CPU), \"cpu\" or \"cuda\"; ordinal: which GPU.")
      .def_prop_ro("name", [](const Device& d) { return text_of(d.object->name()); })
      .def_prop_ro("kind", &kind_of, "\"cpu\" or \"cuda\".")
      .def_prop_ro(
          "current_allocated_size", [](const Device& d) { return d.object->currentAllocatedSize(); },
          "Bytes of images now, and of memory kept for the next ones.")
      .def("__eq__", [](const Device& a, const Device& b) { return a.object == b.object; })
      .def("__hash__", [](const Device& d) { return reinterpret_cast<std::size_t>(d.object.get()); })
      .def("__repr__", [](const Device& d) {
        return std::string("Device(") + kind_of(d) + ": " + text_of(d.object->name()) + ")";
      });
  m.def(
      "devices",
      [] {
        Pool pool;
        const auto all = NS::TransferPtr(MTL::CopyAllDevices());
        std::vector<Device> devices;
        for (NS::UInteger i = 0; i < all->count(); ++i) devices.push_back({NS::RetainPtr(all->object<MTL::Device>(i))});
        return devices;
      },
      "All devices: the GPUs, then the CPU.");
}

void bind_queues(nb::module_& m) {
  nb::class_<Queue>(m, "CommandQueue", "Command buffers of one queue run in the order of their commits.")
      .def(
          "__init__",
          [](Queue* self, const Device& device) {
            Pool pool;
            Queue queue{NS::TransferPtr(device.object->newCommandQueue())};
            if (!queue.object) refused("CommandQueue");
            new (self) Queue(std::move(queue));
          },
          nb::arg("device"))
      .def(
          "command_buffer",
          [](Queue& q) {
            Pool pool;
            Buffer buffer{NS::RetainPtr(q.object->commandBuffer())};
            if (!buffer.object) refused("CommandQueue.command_buffer");
            return buffer;
          },
          "A new buffer to encode into.");
  nb::class_<Buffer>(m, "CommandBuffer",
                     "Encodes are recorded here; commit() starts them, all or, where one was refused, none.")
      .def(
          "commit",
          [](Buffer& b) {
            Pool pool;
            if (b.object->status() >= MTL::CommandBufferStatusCommitted)
              refuse("CommandBuffer.commit", "the buffer was committed before");
            b.object->commit();
          },
          "Starts the work, once. It runs beside Python.")
      .def(
          "wait_until_completed",
          [](Buffer& b) {
            Pool pool;
            if (b.object->status() < MTL::CommandBufferStatusCommitted)
              refuse("CommandBuffer.wait_until_completed", "the buffer was not committed");
            {
              nb::gil_scoped_release released;
              b.object->waitUntilCompleted();
            }
            if (b.object->status() == MTL::CommandBufferStatusCompleted) return;
            const NS::Error* error = b.object->error();
            refuse("CommandBuffer", error ? text_of(error->localizedDescription()) : "failed without a reason");
          },
          "Returns when the work is done; openbnns.Error where it failed.")
      .def_prop_ro("status",
                   [](const Buffer& b) {
                     constexpr const char* kNames[] = {"not enqueued", "enqueued",  "committed",
                                                       "scheduled",    "completed", "error"};
                     return kNames[b.object->status()];
                   })
      .def_prop_ro(
          "seconds", [](const Buffer& b) { return b.object->GPUEndTime() - b.object->GPUStartTime(); },
          "How long the device worked on it; 0 before it is completed.");
}

}  // namespace

}  // namespace openbnns

NB_MODULE(_mps, m) {
  namespace nb = nanobind;
  nb::set_leak_warnings(false);
  m.doc() = "Bindings of libbnns_mps; see openbnns.mps.";
  openbnns::bind_devices(m);
  openbnns::bind_queues(m);
  openbnns::bind_images(m);
  openbnns::bind_pooling(m);
}

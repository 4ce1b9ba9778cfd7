// openbnns._mps: the pooling classes of Metal Performance Shaders for Python.
// openbnns.mps is what users import.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "python/src/mps/objects.h"

namespace openbnns {

namespace {

// Handlers of committed buffers that did not run yet. They need the
// interpreter, so its end waits for them.
struct Handlers {
  std::mutex mutex;
  std::condition_variable done;
  std::size_t pending = 0;

  void add(std::size_t n) {
    const std::lock_guard lock(mutex);
    pending += n;
  }
  void remove() {
    const std::lock_guard lock(mutex);
    --pending;
    done.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return pending == 0; });
  }
};
Handlers& handlers() {
  static Handlers* all = new Handlers;  // never destroyed: a queue's thread may
                                        // be the last to use it
  return *all;
}

// A Python function that the library keeps: dropped on whichever thread that happens, or after its one call.
struct Callback {
  nb::object function;
  ~Callback() {
    if (!function.is_valid()) return;
    const nb::gil_scoped_acquire acquired;
    function.reset();
  }
};

// Called on the queue's thread, with the buffer as Python knows it. What it raises goes to sys.unraisablehook. The
// function is dropped before the interpreter is told that this handler needs it no more.
MTL::HandlerFunction handler_of(nb::callable function) {
  const auto kept = std::make_shared<Callback>();
  kept->function = std::move(function);
  return [kept](MTL::CommandBuffer* buffer) {
    {
      const nb::gil_scoped_acquire acquired;
      try {
        kept->function(Buffer{NS::RetainPtr(buffer)});
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("a handler of a command buffer");
      }
      kept->function.reset();
    }
    handlers().remove();
  };
}

template <class Add>
void add_handler(Buffer& b, nb::callable function, const char* where, const Add& add) {
  Pool pool;
  if (b.object->status() >= MTL::CommandBufferStatusCommitted) refuse(where, "the buffer was committed before");
  add(handler_of(std::move(function)));
  ++b.handlers;
}

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
          "kind: \"default\" (the first GPU, else the CPU), \"cpu\" or "
          "\"cuda\"; ordinal: which GPU.")
      .def_prop_ro("name", [](const Device& d) { return text_of(d.object->name()); })
      .def_prop_ro("kind", &kind_of, "\"cpu\" or \"cuda\".")
      .def_prop_ro(
          "current_allocated_size", [](const Device& d) { return d.object->currentAllocatedSize(); },
          "Bytes of images now, and of memory kept for the next ones.")
      .def(
          "__eq__", [](const Device& a, const Device& b) { return a.object == b.object; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
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
  nb::class_<Buffer> buffer(m, "CommandBuffer",
                            "Encodes are recorded here; commit() starts them, "
                            "all or, where one was refused, none.");
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
  buffer
      .def(
          "commit",
          [](Buffer& b) {
            Pool pool;
            if (b.object->status() >= MTL::CommandBufferStatusCommitted)
              refuse("CommandBuffer.commit", "the buffer was committed before");
            handlers().add(std::exchange(b.handlers, 0));
            const nb::gil_scoped_release released;
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
      .def(
          "add_scheduled_handler",
          [](Buffer& b, nb::callable function) {
            add_handler(b, std::move(function), "CommandBuffer.add_scheduled_handler",
                        [&](const MTL::HandlerFunction& f) { b.object->addScheduledHandler(f); });
          },
          nb::arg("handler"),
          nb::sig("def add_scheduled_handler(self, handler: "
                  "collections.abc.Callable[[CommandBuffer], object]) -> None"),
          "Calls handler(buffer) on a thread of the queue when the work "
          "begins. Before commit().")
      .def(
          "add_completed_handler",
          [](Buffer& b, nb::callable function) {
            add_handler(b, std::move(function), "CommandBuffer.add_completed_handler",
                        [&](const MTL::HandlerFunction& f) { b.object->addCompletedHandler(f); });
          },
          nb::arg("handler"),
          nb::sig("def add_completed_handler(self, handler: "
                  "collections.abc.Callable[[CommandBuffer], object]) -> None"),
          "The same when the work is done or has failed: see status and error. "
          "wait_until_completed() waits for it too.")
      .def_prop_ro(
          "error",
          [](const Buffer& b) -> std::optional<std::string> {
            const NS::Error* error = b.object->error();
            if (!error) return std::nullopt;
            return text_of(error->localizedDescription());
          },
          "Why it failed; None where it did not.")
      .def_prop_rw(
          "label", [](const Buffer& b) { return text_of(b.object->label()); },
          [](Buffer& b, const std::string& text) {
            Pool pool;
            b.object->setLabel(NS::String::string(text.c_str(), NS::UTF8StringEncoding));
          },
          "A name that errors mention.")
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
  m.def("_finish", [] {
    const nb::gil_scoped_release released;
    openbnns::handlers().wait();
  });
  nb::module_::import_("atexit").attr("register")(m.attr("_finish"));
}

// What a command buffer holds: images as kernels see them, and recorded steps. The classes of src/ops record encodes of
// their own; a device runs them without knowing what they compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <variant>

#ifdef __CUDACC__
#define BNNS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define BNNS_HOST_DEVICE inline
#endif

namespace bnns::mps {

enum class PixelType : uint8_t { f32, f16, unorm8, unorm16 };

BNNS_HOST_DEVICE constexpr size_t bytes_of(PixelType type) {
  return type == PixelType::f32 ? 4 : type == PixelType::unorm8 ? 1 : 2;
}

// Images in the layout of MPSImage: 4 channels per texel (1 and 2 channels: 1 and 2), one slice of texels per 4
// channels, images one after the other. Element (n, c, y, x) is
//   data[(((n * slices + c / 4) * height + y) * width + x) * lanes + c % 4]
struct ImageView {
  void* data = nullptr;
  PixelType type = PixelType::f32;
  int64_t width = 0, height = 0, slices = 0;
  int32_t lanes = 4;
};

struct Fill {  // zeros
  void* data = nullptr;
  size_t bytes = 0;
};

// An encode of a kernel class: its plain struct, and the functions that run it on each device.
class Encode {
 public:
  struct Devices {
    void (*cpu)(const void* encode) noexcept;
    // On a CUDA stream (a cudaStream_t as void*); returns a cudaError_t, 0 for success. Never synchronises or
    // allocates. nullptr in a build without CUDA.
    int (*cuda)(const void* encode, void* stream) noexcept;
  };

  template <class Data>
  Encode(const Data& data, const Devices& devices) : devices_(&devices) {
    static_assert(std::is_trivially_copyable_v<Data> && sizeof(Data) <= sizeof data_);
    std::memcpy(data_, &data, sizeof data);
  }
  void run_cpu() const noexcept { devices_->cpu(data_); }
  int launch_cuda(void* stream) const noexcept { return devices_->cuda(data_, stream); }

 private:
  const Devices* devices_;
  alignas(16) unsigned char data_[496];
};

// One recorded step. Plain data: whoever records it keeps the memory alive until the command buffer is done.
using Operation = std::variant<Fill, Encode>;

}  // namespace bnns::mps

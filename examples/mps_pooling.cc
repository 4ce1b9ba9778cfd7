// Pooling and its gradient with Metal Performance Shaders' classes, on the GPU if there is one, else on the CPU:
// one training step's worth, checked against finite differences.
//
//   forward    y = max pooling (3 x 3, stride 2) of x          loss     L = sum of (y - target)^2 / 2
//   gradient   dL/dx from dL/dy = y - target
// Returns 0 if every derivative agrees.
#include <MetalPerformanceShaders/MetalPerformanceShaders.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr NS::UInteger kWidth = 11, kHeight = 9, kChannels = 6;
constexpr auto kLayout = MPS::DataLayoutFeatureChannelsxHeightxWidth;

NS::SharedPtr<MPS::Image> make_image(MTL::Device* device, NS::UInteger width, NS::UInteger height) {
  auto* descriptor =
      MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, width, height, kChannels);
  return NS::TransferPtr(MPS::Image::alloc()->init(device, descriptor));
}

std::vector<float> read(const MPS::Image* image) {
  std::vector<float> values(image->width() * image->height() * image->featureChannels());
  image->readBytes(values.data(), kLayout, 0);
  return values;
}

// Commits and waits; false, with the reason printed, where the buffer failed.
bool finish(MTL::CommandBuffer* buffer) {
  buffer->commit();
  buffer->waitUntilCompleted();
  if (buffer->status() == MTL::CommandBufferStatusCompleted) return true;
  std::printf("failed: %s\n", buffer->error()->localizedDescription()->utf8String());
  return false;
}

double loss(const std::vector<float>& y, const std::vector<float>& target) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += 0.5 * (double(y[i]) - target[i]) * (double(y[i]) - target[i]);
  return sum;
}

}  // namespace

int main() {
  auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  auto device = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  auto queue = NS::TransferPtr(device->newCommandQueue());
  std::printf("device: %s\n", device->name()->utf8String());

  // All values differ by at least 1 / 64, far more than the step below: no maximum changes place.
  auto x = make_image(device.get(), kWidth, kHeight);
  std::vector<float> x_values(kWidth * kHeight * kChannels);
  for (size_t i = 0; i < x_values.size(); ++i) x_values[i] = float((i * 421) % x_values.size()) / 64.0f - 4.0f;
  x->writeBytes(x_values.data(), kLayout, 0);

  auto forward = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device.get(), 3, 3, 2, 2));
  auto gradient = NS::TransferPtr(MPS::CNNPoolingMaxGradient::alloc()->init(device.get(), 3, 3, 2, 2));
  forward->setEdgeMode(MPS::ImageEdgeModeClamp);
  // Ordinary images, to be read back; by default results are temporary.
  forward->setDestinationImageAllocator(MPS::Image::defaultAllocator());
  gradient->setDestinationImageAllocator(MPS::Image::defaultAllocator());

  MPS::State* state = nullptr;
  MTL::CommandBuffer* buffer = queue->commandBuffer();
  MPS::Image* y = forward->encodeToCommandBuffer(buffer, x.get(), &state, false);
  if (!y || !finish(buffer)) return 1;
  std::printf("pooled %zu x %zu to %zu x %zu\n", x->width(), x->height(), y->width(), y->height());

  const std::vector<float> y_values = read(y), target(y_values.size(), 0.5f);
  std::vector<float> dy_values(y_values.size());
  for (size_t i = 0; i < dy_values.size(); ++i) dy_values[i] = y_values[i] - target[i];
  auto dy = make_image(device.get(), y->width(), y->height());
  dy->writeBytes(dy_values.data(), kLayout, 0);

  buffer = queue->commandBuffer();
  MPS::Image* dx = gradient->encodeToCommandBuffer(buffer, dy.get(), x.get(), state);
  if (!dx || !finish(buffer)) return 2;
  const std::vector<float> dx_values = read(dx);

  // Central differences of the loss, pixel by pixel. L is quadratic in y, so they are exact but for rounding.
  double largest = 0;
  const float step = 1.0f / 256;
  for (size_t i = 0; i < x_values.size(); i += 7) {
    auto inner = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    double at[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<float> moved = x_values;
      moved[i] += side == 0 ? step : -step;
      x->writeBytes(moved.data(), kLayout, 0);
      buffer = queue->commandBuffer();
      MPS::Image* moved_y = forward->encodeToCommandBuffer(buffer, x.get());
      if (!moved_y || !finish(buffer)) return 3;
      at[side] = loss(read(moved_y), target);
    }
    largest = std::fmax(largest, std::fabs((at[0] - at[1]) / (2 * double(step)) - double(dx_values[i])));
  }
  std::printf("loss %.6f, largest difference to finite differences %.2e\n", loss(y_values, target), largest);
  return largest < 1e-5 ? 0 : 4;
}

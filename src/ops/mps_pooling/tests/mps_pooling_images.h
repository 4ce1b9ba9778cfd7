// Images for tests of the kernels: seeded values, next to a page that faults.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "src/ops/mps_pooling/pixels.h"
#include "tests/support/testing.h"

namespace bnns::testing {

enum class Values { integers, reals, with_nan };

// An image whose last (or first) byte touches a page that faults.
struct TestImage {
  std::unique_ptr<Guarded<unsigned char>> memory;
  mps::ImageView view;
  size_t elements = 0;

  TestImage(Random& random, mps::PixelType type, int64_t images, int64_t channels, int64_t height, int64_t width,
            Values values) {
    view.type = type, view.width = width, view.height = height, view.slices = (channels + 3) / 4;
    view.lanes = channels == 1 ? 1 : channels == 2 ? 2 : 4;
    elements = static_cast<size_t>(images * view.slices * height * width * view.lanes);
    memory = std::make_unique<Guarded<unsigned char>>(
        elements * mps::bytes_of(type),
        random.below(2) ? Guarded<unsigned char>::Side::end : Guarded<unsigned char>::Side::begin);
    view.data = memory->data();
    for (size_t i = 0; i < elements; ++i) {
      float x = values == Values::integers ? static_cast<float>(random.integer(-3, 3))
                                           : static_cast<float>(random.uniform(-1, 1));
      if (values == Values::integers && x == 0 && random.below(2)) x = -0.0f;
      if (values == Values::with_nan) {
        const size_t kind = random.below(6);
        if (kind < 2) x = std::numeric_limits<float>::quiet_NaN();
        if (kind == 2) x = -HUGE_VALF;
        if (kind == 3) x = HUGE_VALF;
      }
      mps::store_pixel(memory->data(), type, i, x);
    }
  }
  std::vector<unsigned char> bytes() const {
    return std::vector<unsigned char>(memory->data(), memory->data() + memory->size());
  }
  void restore(const std::vector<unsigned char>& bytes) { std::copy(bytes.begin(), bytes.end(), memory->data()); }
  double at(const std::vector<unsigned char>& bytes, size_t i) const {
    return mps::load_pixel(bytes.data(), view.type, i);
  }
};

}  // namespace bnns::testing

// Every entry of the tables (mps_pooling/implementations.h): all problems that it accepts, against the reference; on
// the CPU on every instruction set and with several numbers of threads, between guard pages.

#include <map>
#include <string>

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "src/mps/device/device.h"
#include "src/ops/mps_pooling/implementations.h"
#include "src/ops/mps_pooling/mps_pooling_ref.h"
#include "src/ops/mps_pooling/tests/mps_pooling_images.h"
#include "tests/support/implementations.h"

namespace bnns::mps {
namespace {

using ref::PoolImage;
using testing::TestImage;
using testing::Values;
using Bytes = std::vector<unsigned char>;

PoolImage to_reference(const TestImage& image, int64_t channels) {
  const ImageView& v = image.view;
  const int64_t plane = v.height * v.width * v.lanes;
  PoolImage out(static_cast<int64_t>(image.elements) / (v.slices * plane), channels, v.height, v.width);
  for (int64_t i = 0; i < static_cast<int64_t>(out.v.size()); ++i) {
    const int64_t x = i % v.width, y = i / v.width % v.height, c = i / v.width / v.height % channels;
    const int64_t n = i / v.width / v.height / channels;
    const int64_t at = (n * v.slices + c / 4) * plane + (y * v.width + x) * v.lanes + c % 4;
    out.v[size_t(i)] = load_pixel(image.memory->data(), v.type, size_t(at));
  }
  return out;
}

struct Shape {
  int64_t kernel, stride, dilation, height, width, channels;
  bool clipped;  // a target that is larger than what is written
};
constexpr Shape kShapes[] = {{2, 2, 1, 16, 20, 16, false}, {2, 2, 1, 9, 7, 16, true},    {3, 2, 1, 15, 18, 16, false},
                             {3, 2, 1, 33, 9, 8, true},    {3, 1, 1, 14, 14, 16, false}, {3, 1, 1, 5, 35, 16, true},
                             {3, 1, 1, 33, 34, 16, false}, {7, 1, 1, 7, 7, 16, false},   {5, 3, 1, 13, 17, 8, false},
                             {3, 1, 2, 12, 11, 8, false},  {17, 1, 1, 33, 34, 4, false}, {2, 2, 1, 8, 6, 3, false},
                             {3, 1, 1, 6, 7, 1, false}};

struct Problem {
  PoolEncode e;
  std::unique_ptr<TestImage> source, gradient, target;
  PoolImage want;
  Bytes before;

  Problem(const Shape& s, PoolKind kind, PoolEdge edge, PixelType type, bool backward, uint64_t seed) {
    testing::Random random(seed);
    const bool global = s.kernel == s.height && s.kernel == s.width;
    e.kind = kind, e.edge = edge, e.backward = backward, e.images = 2, e.channels = s.channels;
    const auto axis = [&](PoolAxis& a, int64_t size) {
      a.kernel = s.kernel, a.stride = s.stride, a.dilation = kind == PoolKind::max ? s.dilation : 1;
      // The first window begins at the edge, or a pixel before it (but where that would split what tiles the image).
      a.first_centre = a.before() - (s.kernel == 3 && kind != PoolKind::l2_norm ? 1 : 0);
      return global ? 1 : std::max<int64_t>(1, (size - a.extent()) / s.stride + 1);
    };
    const int64_t wx = axis(e.x, s.width), wy = axis(e.y, s.height);
    const int64_t extra = s.clipped ? 3 : 0;
    e.target_x = s.clipped ? 2 : 0, e.target_y = s.clipped ? 1 : 0;
    e.width = backward ? s.width : wx, e.height = backward ? s.height : wy;
    const Values values = type == PixelType::f32 || type == PixelType::f16 ? Values::integers : Values::reals;
    source = std::make_unique<TestImage>(random, type, e.images, s.channels, s.height, s.width, values);
    gradient = std::make_unique<TestImage>(random, type, e.images, s.channels, wy, wx, values);
    target = std::make_unique<TestImage>(random, type, e.images, s.channels, e.height + extra, e.width + extra, values);
    e.source = source->view, e.target = target->view;
    if (backward) e.gradient = gradient->view, e.gradient_width = wx, e.gradient_height = wy;
    before = target->bytes();
    const PoolImage x = to_reference(*source, s.channels);
    want = to_reference(*target, s.channels);
    if (backward) {
      ref::pool_backward(e, to_reference(*gradient, s.channels), x, &want);
    } else {
      ref::pool_forward(e, x, &want);
    }
  }

  // Small integers: sums and maxima are exact, quotients and roots are rounded a few times, and the format rounds once.
  // Of normalised formats results are cut to [0, 1].
  void expect_good(const std::string& what) const {
    const PoolImage have = to_reference(*target, want.C);
    const PixelType type = e.target.type;
    const double step = type == PixelType::f32      ? 0x1p-23
                        : type == PixelType::f16    ? 0x1p-10
                        : type == PixelType::unorm8 ? 1.0 / 255
                                                    : 1.0 / 65535;
    for (size_t i = 0; i < want.v.size(); ++i) {
      const bool unit = type == PixelType::unorm8 || type == PixelType::unorm16;
      const double w = unit ? std::clamp(want.v[i], 0.0, 1.0) : want.v[i];
      const double most = e.kind == PoolKind::max && !unit ? 0 : unit ? 0.51 * step : 8 * step * (1 + std::fabs(w));
      ASSERT_LE(std::fabs(have.v[i] - w), most) << what << ": element " << i << " is " << have.v[i] << ", not " << w;
    }
  }
};

template <class F>
void for_each_problem(F&& f) {
  uint64_t seed = 1;
  for (const Shape& s : kShapes) {
    for (const PoolKind kind : {PoolKind::max, PoolKind::average, PoolKind::l2_norm}) {
      for (const PoolEdge edge : {PoolEdge::zero, PoolEdge::clamp}) {
        for (const PixelType type : {PixelType::f32, PixelType::f16, PixelType::unorm8, PixelType::unorm16}) {
          if (bytes_of(type) != 4 && type != PixelType::f16 && s.channels > 8) continue;
          for (const bool backward : {false, true}) f(Problem(s, kind, edge, type, backward, seed++));
        }
      }
    }
  }
}

TEST(MpsPoolingImplementations, EveryEntryOfTheCpuEqualsTheReference) {
  std::map<std::string, int> ran;  // on the widest instruction set
  for_each_problem([&](Problem p) {
    testing::for_each_isa([&] {
      for (size_t k = 0; k < kCpuImplementations; ++k) {
        const CpuImplementation& entry = kOnCpu[k];
        if (!entry.accepts(p.e)) continue;
        const testing::Skip skip(testing::names_before(kOnCpu, k));
        Bytes first;
        for (const size_t threads : testing::kThreadCounts) {
          const std::string what =
              std::string(entry.name) + ", " + text_of(p.e) + ", threads " + std::to_string(threads);
          p.target->restore(p.before);
          const CallRecord record;
          pool_cpu(p.e, threads);
          ASSERT_TRUE(record.has(entry.name) && record.size() == 1) << what;
          p.expect_good(what);
          if (::testing::Test::HasFatalFailure()) return;
          if (threads == 1) first = p.target->bytes();
          ASSERT_EQ(p.target->bytes(), first) << what << ": other bits than with one";
        }
        if (isa() == best_isa()) ++ran[entry.name];
      }
    });
  });
  for (const CpuImplementation& entry : kOnCpu) {
    const bool needs_avx512 =
        std::string(entry.when).find("as rows") == 0 || std::string(entry.when).find("AVX-512") != std::string::npos;
    if (needs_avx512 && best_isa() < Isa::avx512) {
      std::printf("%s did not run: this machine has no AVX-512\n", entry.name);
      continue;
    }
    EXPECT_GT(ran[entry.name], 0) << entry.name << " ran in no problem";
  }
}

// The choice alone, which needs no GPU: images as the device allocates them.
TEST(MpsPoolingImplementations, EveryEntryOfCudaIsChosenForSomeProblem) {
  std::map<std::string, int> chosen;
  for_each_problem([&](const Problem& p) {
    PoolEncode e = p.e;
    e.source.data = e.target.data = e.gradient.data = reinterpret_cast<void*>(uintptr_t{1} << 20);
    ++chosen[find(kOnCuda, e).name];
  });
  for (const CudaImplementation& entry : kOnCuda) EXPECT_GT(chosen[entry.name], 0) << entry.name;
}

TEST(MpsPoolingImplementations, EveryEntryOfCudaEqualsTheReference) {
  const auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  const auto device = NS::TransferPtr(MTLX::CreateCUDADevice(0));
  if (!device) GTEST_SKIP() << "entries of CUDA did not run: " << MTLX::lastError();
  DeviceBackend& backend = device_impl(device.get()).backend();
  const auto queue = backend.make_queue();
  std::map<std::string, int> ran;
  for_each_problem([&](Problem p) {
    TestImage* images[] = {p.source.get(), p.gradient.get(), p.target.get()};
    ImageView* views[] = {&p.e.source, &p.e.gradient, &p.e.target};
    for (int i = 0; i < 3; ++i) views[i]->data = backend.allocate(images[i]->memory->size(), false);
    for (size_t k = 0; k < kCudaImplementations; ++k) {
      const CudaImplementation& entry = kOnCuda[k];
      if (!entry.accepts(p.e)) continue;
      const std::string what = std::string(entry.name) + ", " + text_of(p.e);
      const testing::Skip skip(testing::names_before(kOnCuda, k));
      p.target->restore(p.before);
      for (int i = 0; i < 3; ++i) {
        backend.copy_to_device(views[i]->data, images[i]->memory->data(), images[i]->memory->size());
      }
      const CallRecord record;
      const std::vector<Operation> operations = {Encode(p.e, kPoolDevices)};
      QueueBackend::Token token = nullptr;
      WorkTime span;
      ASSERT_EQ(queue->start(operations, &token), "") << what;
      ASSERT_EQ(queue->complete(operations, token, &span), "") << what;
      ASSERT_TRUE(record.has(entry.name) && record.size() == 1) << what;
      backend.copy_to_host(p.target->memory->data(), p.e.target.data, p.target->memory->size());
      p.expect_good(what);
      if (::testing::Test::HasFatalFailure()) return;
      ++ran[entry.name];
    }
    for (int i = 0; i < 3; ++i) backend.free(views[i]->data, images[i]->memory->size());
  });
  for (const CudaImplementation& entry : kOnCuda) EXPECT_GT(ran[entry.name], 0) << entry.name << " ran in no problem";
}

TEST(MpsPoolingImplementations, TheTablesAreInTheReadme) {
  testing::expect_table_in_readme(kOnCpu, "cpu", "src/ops/mps_pooling/README.md");
  testing::expect_table_in_readme(kOnCuda, "cuda", "src/ops/mps_pooling/README.md");
}

}  // namespace
}  // namespace bnns::mps

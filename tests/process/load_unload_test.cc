// A program that loads the library while it runs, uses it and unloads it again: no worker thread outlives the library's
// code, nothing stays behind, and the program's floating-point mode is as before.

#include <bnns/bnns.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

class Library {
 public:
  Library() : handle_(dlopen(BNNS_LIBRARY, RTLD_NOW | RTLD_LOCAL)) { EXPECT_NE(handle_, nullptr) << dlerror(); }
  ~Library() { EXPECT_EQ(dlclose(handle_), 0); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // A call that wakes workers: ReLU of half a million numbers.
  void use() const {
    const auto create = find<decltype(&BNNSFilterCreateLayerActivation)>("BNNSFilterCreateLayerActivation");
    const auto apply = find<decltype(&BNNSFilterApply)>("BNNSFilterApply");
    const auto destroy = find<decltype(&BNNSFilterDestroy)>("BNNSFilterDestroy");
    std::vector<float> x(1 << 19, -1), y(x.size(), 7);
    x.back() = 3;
    BNNSLayerParametersActivation layer = {};
    layer.i_desc.layout = BNNSDataLayoutVector;
    layer.i_desc.size[0] = x.size();
    layer.i_desc.data_type = BNNSDataTypeFloat32;
    layer.o_desc = layer.i_desc;
    layer.activation.function = BNNSActivationFunctionRectifiedLinear;
    BNNSFilterParameters options = {};
    options.n_threads = 4;
    BNNSFilter filter = create(&layer, &options);
    ASSERT_EQ(apply(filter, x.data(), y.data()), 0);
    EXPECT_EQ(y.front(), 0);
    EXPECT_EQ(y.back(), 3);
    destroy(filter);
  }

 private:
  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(handle_, name));
  }
  void* handle_;
};

size_t threads() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

bool is_loaded() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libbnns.so") != line.npos) return true;
  }
  return false;
}

TEST(LoadUnload, BC54_AHundredTimes) {
  const size_t before = threads();
  for (int round = 0; round < 100; ++round) {
    {
      const Library library;
      library.use();
      EXPECT_TRUE(is_loaded());
    }
    ASSERT_FALSE(is_loaded()) << "round " << round;
    ASSERT_EQ(threads(), before) << "round " << round;
  }
}

TEST(LoadUnloadDeathTest, BC54_AThreadExitsWhileWorkersLive) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Library library;
        library.use();
        std::thread([&] {
          library.use();
          std::exit(3);
        }).join();
      },
      ::testing::ExitedWithCode(3), "");
}

#if defined(__x86_64__)
TEST(LoadUnload, BC58_LoadingKeepsTheFloatingPointMode) {
  const unsigned before = _mm_getcsr();
  for (const unsigned mode : {0x1f80u, 0x5f80u, 0x9fc0u}) {
    _mm_setcsr(mode);
    {
      const Library library;
      EXPECT_EQ(_mm_getcsr(), mode) << "loaded";
      library.use();
      EXPECT_EQ(_mm_getcsr(), mode) << "used";
    }
    EXPECT_EQ(_mm_getcsr(), mode) << "unloaded";
  }
  _mm_setcsr(before);
}
#endif

}  // namespace

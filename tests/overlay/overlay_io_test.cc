// Saving and loading through the overlay: what comes back, what is refused, what a moved-from file does.

#include <stdlib.h>

#include <filesystem>
#include <functional>

#include "tests/overlay/overlay_testing.h"

namespace {

using namespace bnns;

class OverlayIo : public ::testing::Test {
 protected:
  OverlayIo() {
    char name[] = "/tmp/bnns-overlay-io-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~OverlayIo() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
  std::string path(const char* name) const { return folder_ + "/" + name; }
};

std::string reason_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Error::Code::arrayDescriptorInvalidData);
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(OverlayIo, RoundTrip) {
  const auto w = NDArray::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, Shape::matrixRowMajor(3, 2));
  const auto i = NDArray::from<std::int64_t>({7, 8}, {2});
  saveArrays(path("f"), {{"w", w}, {"i", i}}, {{"epoch", "12"}, {"a", "b"}});
  for (const auto mode : {ArrayFile::Mode::read, ArrayFile::Mode::map}) {
    const ArrayFile file(path("f"), mode);
    EXPECT_EQ(file.count(), 2u);
    EXPECT_EQ(file.names(), (std::vector<std::string>{"i", "w"}));  // wide types first
    EXPECT_TRUE(file.contains("w"));
    EXPECT_FALSE(file.contains("v"));
    EXPECT_EQ(file.info("w").shape[0], 2u);
    EXPECT_STREQ(file.info("w").type_name, "F32");
    EXPECT_EQ(file.metadata("epoch"), "12");
    EXPECT_EQ(file.metadata("lr"), std::nullopt);
    EXPECT_EQ(file.metadata(), (std::vector<Metadata>{{"a", "b"}, {"epoch", "12"}}));
    NDArray to = NDArray::repeating(0.0f, Shape::matrixRowMajor(3, 2));
    file.copy("w", to);
    EXPECT_EQ(to.makeArray<float>(), w.makeArray<float>());
    const NDArray made = file.array("w");
    EXPECT_EQ(made.shape().layout(), DataLayout::matrixFirstMajor);
    EXPECT_EQ(made.shape().size()[0], 2u);
    EXPECT_EQ(made.makeArray<float>(), w.makeArray<float>());
    EXPECT_EQ(file.array("i").makeArray<std::int64_t>(), (std::vector<std::int64_t>{7, 8}));
    const InputView view = file.view("w", DataLayout::matrixRowMajor);
    EXPECT_EQ(view.size[0], 3u);
    EXPECT_EQ(static_cast<const float*>(view.data)[5], 6.0f);
  }
}

TEST_F(OverlayIo, Refusals) {
  const auto w = NDArray::from({1.0f, 2.0f}, {2});
  const auto batch = NDArray::repeating(1.0f, {2}, 3);
  EXPECT_NE(reason_of([&] { ArrayFile file(path("absent")); }).find("ArrayFile: BNNSExtArrayFileOpen: "),
            std::string::npos);
  EXPECT_NE(reason_of([&] {
              saveArrays(path("f"), {{"w", w}, {"w", w}});
            }).find("w is there twice"),
            std::string::npos);
  EXPECT_NE(reason_of([&] {
              saveArrays(path("f"), {{"b", batch}});
            }).find("saveArrays: b has 3 samples, expected 1"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("f")));
  saveArrays(path("f"), {{"w", w}});
  ArrayFile file(path("f"));
  NDArray three = NDArray::repeating(0.0f, {3});
  EXPECT_NE(reason_of([&] { file.copy("w", three); }).find("w: the array is [3], expected [2]"), std::string::npos);
  EXPECT_NE(reason_of([&] { file.array("v"); }).find("v is not in the file"), std::string::npos);
  EXPECT_NE(reason_of([&] { file.view("w", DataLayout::imageCHW); }).find("expected one of 1 axes"), std::string::npos);
  EXPECT_NE(reason_of([&] { file.info(1); }).find("index is 1, expected less than 1"), std::string::npos);
  ArrayFile other = std::move(file);
  EXPECT_EQ(other.count(), 1u);
  EXPECT_NE(reason_of([&] { file.copy("w", three); }).find("file is NULL"), std::string::npos);
  file = std::move(other);
  EXPECT_EQ(file.count(), 1u);
}

}  // namespace

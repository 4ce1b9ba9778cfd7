// The IDX reader: what it reads, and that everything damaged is refused with a line that names file and fault.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tools/bnns/data/idx.h"

namespace bnns::tool {
namespace {

namespace fs = std::filesystem;

std::string word(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns, std::size_t bytes) {
  std::string text = word(0x803) + word(count) + word(rows) + word(columns);
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * 7);
  return text;
}

std::string labels(std::uint32_t count, std::size_t bytes) {
  std::string text = word(0x801) + word(count);
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i % 10);
  return text;
}

std::string gzip(const std::string& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class IdxTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("bnns_idx_test_" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  // Reads the pair written by the caller and returns the reason of the refusal.
  std::string refusal(const std::string& image_bytes, const std::string& label_bytes) const {
    const fs::path a = write("images", image_bytes), b = write("labels", label_bytes);
    return reason([&] { read_idx_pair(a, b); });
  }

  static std::string reason(const std::function<void()>& read) {
    try {
      read();
    } catch (const DataError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find('\n'), text.npos);
      return text;
    }
    return "accepted";
  }

  fs::path folder_;
};

#define EXPECT_REASON(text, part) EXPECT_NE((text).find(part), std::string::npos) << "reason: " << (text)

TEST_F(IdxTest, ReadsPlainAndGzipAlike) {
  const std::string image_bytes = images(5, 3, 4, 60), label_bytes = labels(5, 5);
  const Dataset plain = read_idx_pair(write("i", image_bytes), write("l", label_bytes));
  const Dataset packed = read_idx_pair(write("ig", gzip(image_bytes)), write("lg", gzip(label_bytes)));
  EXPECT_EQ(plain.rows, 3u);
  EXPECT_EQ(plain.columns, 4u);
  EXPECT_EQ(plain.count(), 5u);
  EXPECT_EQ(plain.pixels.size(), 60u);
  EXPECT_EQ(plain.image(1)[0], static_cast<std::uint8_t>(12 * 7));
  EXPECT_EQ(plain.labels[4], 4);
  EXPECT_EQ(packed.pixels, plain.pixels);
  EXPECT_EQ(packed.labels, plain.labels);
}

TEST_F(IdxTest, ReadsGzipOfSeveralMembersAndChunks) {
  const std::string all = images(3000, 28, 28, 3000 * 784);  // more than one chunk of the reader
  const std::string split = gzip(all.substr(0, 1000001)) + gzip(all.substr(1000001));
  const Dataset set = read_idx_pair(write("i", split), write("l", labels(3000, 3000)));
  ASSERT_EQ(set.pixels.size(), 3000u * 784);
  EXPECT_TRUE(std::equal(set.pixels.begin(), set.pixels.end(), all.begin() + 16,
                         [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
}

TEST_F(IdxTest, RefusesTruncatedHeader) {
  EXPECT_REASON(refusal("", labels(5, 5)), "images: header is 0 bytes, expected 16");
  EXPECT_REASON(refusal(images(5, 3, 4, 0).substr(0, 11), labels(5, 5)), "header is 11 bytes, expected 16");
  EXPECT_REASON(refusal(gzip(images(5, 3, 4, 0).substr(0, 15)), labels(5, 5)), "header is 15 bytes, expected 16");
  EXPECT_REASON(refusal(images(5, 3, 4, 60), labels(5, 0).substr(0, 6)), "labels: header is 6 bytes, expected 8");
}

TEST_F(IdxTest, RefusesTruncatedData) {
  EXPECT_REASON(refusal(images(5, 3, 4, 59), labels(5, 5)), "data is 59 bytes, expected 60 = 5 x 3 x 4");
  EXPECT_REASON(refusal(gzip(images(5, 3, 4, 59)), labels(5, 5)), "data is 59 bytes, expected 60 = 5 x 3 x 4");
  EXPECT_REASON(refusal(images(5, 3, 4, 60), labels(5, 4)), "data is 4 bytes, expected 5 = 5");
}

TEST_F(IdxTest, RefusesTrailingBytes) {
  EXPECT_REASON(refusal(images(5, 3, 4, 61), labels(5, 5)), "data is 61 bytes, expected 60");
  EXPECT_REASON(refusal(gzip(images(5, 3, 4, 61)), labels(5, 5)), "data is more than 60 bytes, expected 60");
  EXPECT_REASON(refusal(gzip(images(5, 3, 4, 60)) + "x", labels(5, 5)), "gzip data");
}

TEST_F(IdxTest, RefusesWrongMagic) {
  EXPECT_REASON(refusal(labels(5, 60), labels(5, 5)), "magic number is 0x00000801, expected 0x00000803");
  EXPECT_REASON(refusal(images(5, 3, 4, 60), images(5, 3, 4, 60)), "magic number is 0x00000803, expected 0x00000801");
  EXPECT_REASON(refusal("not an IDX file at all", labels(5, 5)), "magic number is 0x6e6f7420");
}

TEST_F(IdxTest, RefusesHugeDimensionsWithoutTakingMemory) {
  const std::uint32_t big = 0xffffffffu;
  EXPECT_REASON(refusal(images(big, big, big, 60), labels(5, 5)),
                "4294967295 x 4294967295 x 4294967295, expected at most");
  EXPECT_REASON(refusal(images(1u << 22, 1u << 21, 1u << 21, 60), labels(5, 5)),
                "expected at most");  // 2^64 wraps to 0
  EXPECT_REASON(refusal(gzip(images(big, 1, 1, 60)), labels(5, 5)), "expected at most");
  EXPECT_REASON(refusal(images(1u << 31, 1, 1, 60), labels(5, 5)), "data is 60 bytes, expected 2147483648");
  EXPECT_REASON(refusal(gzip(images(1u << 31, 1, 1, 60)), labels(5, 5)), "data is 60 bytes, expected 2147483648");
}

TEST_F(IdxTest, RefusesZeroDimensions) {
  EXPECT_REASON(refusal(images(0, 28, 28, 0), labels(0, 0)),
                "dimensions are 0 x 28 x 28, expected each to be at least 1");
  EXPECT_REASON(refusal(images(5, 0, 28, 0), labels(5, 5)), "dimensions are 5 x 0 x 28");
  EXPECT_REASON(refusal(images(0, 0xffffffffu, 0xffffffffu, 0), labels(5, 5)), "at least 1");
}

TEST_F(IdxTest, RefusesMismatchedCountsAndLabels) {
  EXPECT_REASON(refusal(images(5, 3, 4, 60), labels(6, 6)), "holds 6 labels, expected 5");
  std::string wrong = labels(5, 5);
  wrong[8 + 3] = 10;
  EXPECT_REASON(refusal(images(5, 3, 4, 60), wrong), "label 3 is 10, expected 0 to 9");
}

TEST_F(IdxTest, RefusesCorruptGzip) {
  const std::string good = gzip(images(5, 3, 4, 60)), label_bytes = labels(5, 5);
  EXPECT_REASON(refusal(good.substr(0, good.size() / 2), label_bytes), "gzip data ends early");
  EXPECT_REASON(refusal(good.substr(0, good.size() - 1), label_bytes), "gzip data ends early");
  std::string crc = good;
  crc[crc.size() - 6] ^= 1;  // the checksum of the contents
  EXPECT_REASON(refusal(crc, label_bytes), "damaged gzip data: incorrect data check");
}

// Every single damage to a small file ends in a refusal or in a well-formed set; under ASan this also proves that no
// byte outside the buffers is touched.
TEST_F(IdxTest, SurvivesEveryCutAndEveryFlippedBit) {
  for (const std::string& good : {images(2, 3, 2, 12), gzip(images(2, 3, 2, 12))}) {
    const fs::path label_file = write("labels", labels(2, 2));
    for (std::size_t length = 0; length < good.size(); ++length) {
      const fs::path file = write("images", good.substr(0, length));
      EXPECT_NE(reason([&] { read_idx_pair(file, label_file); }), "accepted") << "cut at " << length;
    }
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string damaged = good;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const fs::path file = write("images", damaged);
      reason([&] {
        const Dataset set = read_idx_pair(file, label_file);
        EXPECT_EQ(set.pixels.size(), set.count() * set.rows * set.columns);
      });
    }
  }
}

TEST_F(IdxTest, ReadsFolderWithBothPairs) {
  write("train-images-idx3-ubyte", images(5, 3, 4, 60));
  write("train-labels-idx1-ubyte.gz", gzip(labels(5, 5)));
  write("t10k-images-idx3-ubyte.gz", gzip(images(2, 3, 4, 24)));
  write("t10k-labels-idx1-ubyte", labels(2, 2));
  const DataSplit data = read_idx_folder(folder_);
  EXPECT_EQ(data.train.count(), 5u);
  EXPECT_EQ(data.test.count(), 2u);
}

TEST_F(IdxTest, SplitsASinglePairInFileOrder) {
  write("t10k-images-idx3-ubyte", images(10, 1, 2, 20));
  write("t10k-labels-idx1-ubyte", labels(10, 10));
  const DataSplit data = read_idx_folder(folder_);
  ASSERT_EQ(data.train.count(), 8u);
  ASSERT_EQ(data.test.count(), 2u);
  EXPECT_EQ(data.train.labels[7], 7);
  EXPECT_EQ(data.test.labels[0], 8);
  EXPECT_EQ(data.test.image(0)[0], static_cast<std::uint8_t>(16 * 7));
}

TEST_F(IdxTest, RefusesBadFolders) {
  const auto folder_reason = [&](const fs::path& folder) { return reason([&] { read_idx_folder(folder); }); };
  EXPECT_REASON(folder_reason(folder_), "holds no IDX files, expected train-images-idx3-ubyte");
  EXPECT_REASON(folder_reason(folder_ / "absent"), "absent: no such folder");
  EXPECT_REASON(folder_reason(write("file", "x")), "is not a folder");
  write("train-images-idx3-ubyte", images(5, 3, 4, 60));
  EXPECT_REASON(folder_reason(folder_), "has no partner, expected train-labels-idx1-ubyte");
  write("train-labels-idx1-ubyte", labels(5, 5));
  write("t10k-images-idx3-ubyte", images(2, 4, 4, 32));
  write("t10k-labels-idx1-ubyte", labels(2, 2));
  EXPECT_REASON(folder_reason(folder_), "train pictures are 3 x 4, t10k pictures 4 x 4");
  fs::remove(folder_ / "train-images-idx3-ubyte");
  EXPECT_REASON(folder_reason(folder_), "has no partner, expected train-images-idx3-ubyte");
  fs::remove(folder_ / "train-labels-idx1-ubyte");
  write("t10k-images-idx3-ubyte", images(1, 4, 4, 16));
  write("t10k-labels-idx1-ubyte", labels(1, 1));
  EXPECT_REASON(folder_reason(folder_), "at least 2");
  fs::remove(folder_ / "t10k-images-idx3-ubyte");
  fs::create_directory(folder_ / "t10k-images-idx3-ubyte");
  EXPECT_REASON(folder_reason(folder_), "is not a regular file");
}

}  // namespace
}  // namespace bnns::tool

// Saving and loading: what comes back is what went in, for every layout, type and stride; what is in the file is what
// the format says; a file is replaced whole or not at all.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <thread>

#include "src/io/element_type.h"
#include "src/io/tests/io_testing.h"
#include "tests/support/testing.h"

namespace bnns::io::testing {
namespace {

using Sizes = std::vector<size_t>;

int save_one(const std::string& path, const char* name, const BNNSNDArrayDescriptor& d) {
  const BNNSExtNamedArray arrays[] = {{name, &d}};
  return BNNSExtArraysSave(path.c_str(), 1, arrays, 0, nullptr);
}

// The whole file by hand: length 56 + padding, header, elements by rising address.
TEST(IoSaveLoad, BytesOfAFileWorkedByHand) {
  const Folder folder;
  float w[] = {1, 2, 3, 4, 5, 6};
  const auto d = describe(BNNSDataLayoutRowMajorMatrix, {3, 2}, BNNSDataTypeFloat32, w);
  ASSERT_EQ(save_one(folder / "a", "w", d), 0) << BNNSExtLastError();
  std::string header = R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  ASSERT_EQ(header.size(), 57u);
  header.resize(64, ' ');
  EXPECT_EQ(read_bytes(folder / "a"), file_of(header, std::string(reinterpret_cast<char*>(w), sizeof w)));
  EXPECT_EQ(folder.files(), 1u) << "a temporary file is left";
}

TEST(IoSaveLoad, ShapesOfLayouts) {
  const Folder folder;
  struct Case {
    BNNSDataLayout layout;
    std::initializer_list<size_t> sizes;
    Sizes shape;
  };
  const Case cases[] = {
      {BNNSDataLayoutVector, {5}, {5}},
      {BNNSDataLayout1DFirstMajor, {5}, {5}},
      {BNNSDataLayoutRowMajorMatrix, {3, 2}, {2, 3}},
      {BNNSDataLayoutColumnMajorMatrix, {3, 2}, {2, 3}},
      {BNNSDataLayout2DLastMajor, {3, 2}, {2, 3}},
      {BNNSDataLayout2DFirstMajor, {3, 2}, {3, 2}},
      {BNNSDataLayoutImageCHW, {4, 3, 2}, {2, 3, 4}},
      {BNNSDataLayoutSNE, {4, 3, 2}, {2, 3, 4}},
      {BNNSDataLayoutNSE, {4, 3, 2}, {2, 3, 4}},
      {BNNSDataLayoutMHA_DHK, {4, 3, 2}, {3, 2, 4}},
      {BNNSDataLayout3DFirstMajor, {4, 3, 2}, {4, 3, 2}},
      {BNNSDataLayoutConvolutionWeightsOIHW, {5, 4, 3, 2}, {2, 3, 4, 5}},
      {BNNSDataLayoutConvolutionWeightsOIHrWr, {5, 4, 3, 2}, {2, 3, 4, 5}},
      {BNNSDataLayoutConvolutionWeightsIOHrWr, {5, 4, 3, 2}, {2, 3, 4, 5}},
      {BNNSDataLayout4DFirstMajor, {5, 4, 3, 2}, {5, 4, 3, 2}},
      {BNNSDataLayout8DLastMajor, {1, 2, 1, 3, 1, 2, 1, 2}, {2, 1, 2, 1, 3, 1, 2, 1}},
      {BNNSDataLayout8DFirstMajor, {1, 2, 1, 3, 1, 2, 1, 2}, {1, 2, 1, 3, 1, 2, 1, 2}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(static_cast<unsigned>(c.layout));
    std::vector<float> in(120), out(120, -1.0f);
    std::iota(in.begin(), in.end(), 0.0f);
    ASSERT_EQ(save_one(folder / "a", "x", describe(c.layout, c.sizes, BNNSDataTypeFloat32, in.data())), 0)
        << BNNSExtLastError();
    for (const BNNSExtArrayFileMode mode : {BNNSExtArrayFileRead, BNNSExtArrayFileMap}) {
      const File file = open_file(folder / "a", mode);
      ASSERT_TRUE(file) << BNNSExtLastError();
      EXPECT_EQ(shape_of(file.get(), "x"), c.shape);
      const auto to = describe(c.layout, c.sizes, BNNSDataTypeFloat32, out.data());
      ASSERT_EQ(BNNSExtArrayFileCopy(file.get(), "x", &to), 0) << BNNSExtLastError();
      const size_t count = BNNSNDArrayGetDataSize(&to) / sizeof(float);
      EXPECT_TRUE(std::equal(out.begin(), out.begin() + std::ptrdiff_t(count), in.begin()));
      BNNSNDArrayDescriptor view{};
      ASSERT_EQ(BNNSExtArrayFileView(file.get(), "x", c.layout, &view), 0) << BNNSExtLastError();
      EXPECT_EQ(std::memcmp(view.size, to.size, sizeof to.size), 0);
      EXPECT_EQ(std::memcmp(view.data, in.data(), count * sizeof(float)), 0);
    }
  }
}

// A matrix that is saved in one layout is loaded in the other, element (r, c) to element (r, c).
TEST(IoSaveLoad, StridesSayWhereElementsLie) {
  const Folder folder;
  const size_t rows = 3, columns = 4;
  std::vector<float> in(rows * 7, bnns::testing::poison());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) in[r * 7 + c] = float(10 * r + c);
  }
  ASSERT_EQ(save_one(folder / "a", "x",
                     describe(BNNSDataLayoutRowMajorMatrix, {columns, rows}, BNNSDataTypeFloat32, in.data(), {1, 7})),
            0)
      << BNNSExtLastError();
  const File file = open_file(folder / "a");
  std::vector<float> out(rows * 20, bnns::testing::poison());
  const auto to = describe(BNNSDataLayout2DFirstMajor, {rows, columns}, BNNSDataTypeFloat32, out.data(), {2, 17});
  ASSERT_EQ(BNNSExtArrayFileCopy(file.get(), "x", &to), 0) << BNNSExtLastError();
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t r = i / 17, c = i % 17 / 2;
    const bool named = r < rows && i % 17 % 2 == 0 && c < columns;
    if (named) {
      EXPECT_EQ(out[i], float(10 * r + c)) << i;
    } else {
      EXPECT_TRUE(bnns::testing::is_poison(out[i])) << i << " was written";
    }
  }
}

TEST(IoSaveLoad, EveryTypeOfBnns) {
  const Folder folder;
  for (const ElementType& type : kElementTypes) {
    if (type.data_type == kNoDataType) continue;
    SCOPED_TRACE(type.name);
    std::vector<unsigned char> in(6 * type.bytes), out(in.size(), 0xee);
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = type.data_type == BNNSDataTypeBoolean ? i % 2 : (unsigned char)(37 * i);
    ASSERT_EQ(save_one(folder / "a", "x", describe(BNNSDataLayout2DFirstMajor, {2, 3}, type.data_type, in.data())), 0);
    const File file = open_file(folder / "a");
    BNNSExtArrayInfo info{};
    ASSERT_EQ(BNNSExtArrayFileInfo(file.get(), 0, &info), 0);
    EXPECT_STREQ(info.type_name, type.name);
    EXPECT_EQ(info.data_type, type.data_type);
    EXPECT_EQ(info.bytes, in.size());
    const auto to = describe(BNNSDataLayout2DFirstMajor, {2, 3}, type.data_type, out.data());
    ASSERT_EQ(BNNSExtArrayFileCopy(file.get(), "x", &to), 0) << BNNSExtLastError();
    EXPECT_EQ(in, out);
  }
}

// Odd numbers of narrow elements between wide ones: every array can be used where it lies.
TEST(IoSaveLoad, EveryArrayIsAligned) {
  const Folder folder;
  uint8_t bytes[3] = {1, 2, 3};
  uint16_t halves[3] = {4, 5, 6};
  float floats[3] = {7, 8, 9};
  int64_t longs[1] = {10};
  const auto a = describe(BNNSDataLayoutVector, {3}, BNNSDataTypeUInt8, bytes);
  const auto b = describe(BNNSDataLayoutVector, {3}, BNNSDataTypeFloat16, halves);
  const auto c = describe(BNNSDataLayoutVector, {3}, BNNSDataTypeFloat32, floats);
  const auto d = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeInt64, longs);
  const BNNSExtNamedArray arrays[] = {{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}};
  ASSERT_EQ(BNNSExtArraysSave((folder / "f").c_str(), 4, arrays, 0, nullptr), 0);
  for (const BNNSExtArrayFileMode mode : {BNNSExtArrayFileRead, BNNSExtArrayFileMap}) {
    const File file = open_file(folder / "f", mode);
    ASSERT_EQ(BNNSExtArrayFileCount(file.get()), 4u);
    for (const BNNSExtNamedArray& each : arrays) {
      BNNSNDArrayDescriptor view{};
      ASSERT_EQ(BNNSExtArrayFileView(file.get(), each.name, BNNSDataLayoutVector, &view), 0) << BNNSExtLastError();
      EXPECT_EQ(std::memcmp(view.data, each.array->data, BNNSNDArrayGetDataSize(each.array)), 0);
    }
  }
}

TEST(IoSaveLoad, NamesAndMetadataOfAnyText) {
  const Folder folder;
  float x = 1;
  const auto d = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeFloat32, &x);
  const char* const names[] = {"",   "layer.0.weight", "quote\"back\\slash/", "\x01\t\n\r\b\f\x1f\x7f", "größe",
                               "層", "\U0001F600"};
  std::vector<BNNSExtNamedArray> arrays;
  std::vector<BNNSExtMetadata> metadata;
  for (const char* name : names) arrays.push_back({name, &d}), metadata.push_back({name, "value of any \"text\" 層"});
  ASSERT_EQ(BNNSExtArraysSave((folder / "f").c_str(), arrays.size(), arrays.data(), metadata.size(), metadata.data()),
            0)
      << BNNSExtLastError();
  const File file = open_file(folder / "f");
  ASSERT_TRUE(file) << BNNSExtLastError();
  EXPECT_EQ(BNNSExtArrayFileMetadataCount(file.get()), metadata.size());
  for (const char* name : names) {
    EXPECT_NE(BNNSExtArrayFileFind(file.get(), name), SIZE_MAX) << name;
    EXPECT_STREQ(BNNSExtArrayFileMetadata(file.get(), name), metadata[0].value) << name;
  }
  EXPECT_EQ(BNNSExtArrayFileFind(file.get(), "weight"), SIZE_MAX);
  EXPECT_EQ(BNNSExtArrayFileMetadata(file.get(), "epoch"), nullptr);
  std::string last;
  for (size_t i = 0; i < metadata.size(); ++i) {
    BNNSExtMetadata pair{};
    ASSERT_EQ(BNNSExtArrayFileMetadataAt(file.get(), i, &pair), 0);
    EXPECT_TRUE(i == 0 || last < pair.key);
    last = pair.key;
  }
}

TEST(IoSaveLoad, EscapesOfOtherWriters) {
  const Folder folder;
  const std::string header =
      "{\"\\u0061\\u00e9\\u5c64\\ud83d\\ude00\\/\" : {\"shape\":[ ] ,\"data_offsets\" : "
      "[0,\n4],\t\"dtype\":\"\\u00463\\u0032\"}} \n";
  write_bytes(folder / "f", file_of(header, "abcd"));
  const File file = open_file(folder / "f");
  ASSERT_TRUE(file) << BNNSExtLastError();
  float x = 0;
  const auto d = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeFloat32, &x);
  ASSERT_EQ(BNNSExtArrayFileCopy(file.get(), "aé層\U0001F600/", &d), 0) << BNNSExtLastError();
  EXPECT_EQ(std::memcmp(&x, "abcd", 4), 0);
}

TEST(IoSaveLoad, AFileWithoutArrays) {
  const Folder folder;
  const BNNSExtMetadata metadata[] = {{"format", "pt"}};
  ASSERT_EQ(BNNSExtArraysSave((folder / "a").c_str(), 0, nullptr, 0, nullptr), 0) << BNNSExtLastError();
  ASSERT_EQ(BNNSExtArraysSave((folder / "b").c_str(), 0, nullptr, 1, metadata), 0) << BNNSExtLastError();
  EXPECT_EQ(BNNSExtArrayFileCount(open_file(folder / "a").get()), 0u);
  const File file = open_file(folder / "b", BNNSExtArrayFileMap);
  EXPECT_EQ(BNNSExtArrayFileCount(file.get()), 0u);
  EXPECT_STREQ(BNNSExtArrayFileMetadata(file.get(), "format"), "pt");
}

// Listed, and refused where they would become a descriptor.
TEST(IoSaveLoad, TypesThatBnnsHasNot) {
  const Folder folder;
  const std::string header =
      R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]}})";
  write_bytes(folder / "f", file_of(header, "abcdefgh"));
  const File file = open_file(folder / "f");
  ASSERT_TRUE(file) << BNNSExtLastError();
  BNNSExtArrayInfo info{};
  ASSERT_EQ(BNNSExtArrayFileInfo(file.get(), 0, &info), 0);
  EXPECT_STREQ(info.type_name, "F64");
  EXPECT_EQ(static_cast<unsigned>(info.data_type), 0u);
  EXPECT_EQ(std::memcmp(info.data, "abcdefgh", 8), 0);
  float x = 3;
  BNNSNDArrayDescriptor d = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeFloat32, &x);
  EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), "d", &d), -1);
  EXPECT_NE(std::string(BNNSExtLastError()).find("d: dtype is F64, expected F32, F16"), std::string::npos);
  EXPECT_EQ(BNNSExtArrayFileView(file.get(), "d", BNNSDataLayoutVector, &d), -1);
  EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), "e", &d), -1);
  EXPECT_NE(std::string(BNNSExtLastError()).find("e: shape is [0,3], expected at least one"), std::string::npos);
  EXPECT_EQ(x, 3);
}

TEST(IoSaveLoad, TheOldFileStaysWhereTheNewOneFails) {
  const Folder folder;
  std::vector<float> big(1 << 16, 1.0f);
  const auto d = describe(BNNSDataLayoutVector, {big.size()}, BNNSDataTypeFloat32, big.data());
  ASSERT_EQ(save_one(folder / "f", "x", d), 0);
  const std::string before = read_bytes(folder / "f");
  rlimit limit{}, small{4096, 4096};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small.rlim_max = limit.rlim_max;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const int status = save_one(folder / "f", "y", d);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status, -1);
  EXPECT_NE(std::string(BNNSExtLastError()).find("f: could not be written: File too large"), std::string::npos)
      << BNNSExtLastError();
  EXPECT_EQ(read_bytes(folder / "f"), before);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(IoSaveLoad, ReplacesModeLinksAndOpenFiles) {
  const Folder folder;
  float x = 1;
  const auto d = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeFloat32, &x);
  ASSERT_EQ(save_one(folder / "f", "x", d), 0);
  ASSERT_EQ(chmod((folder / "f").c_str(), 0640), 0);
  ASSERT_EQ(symlink("f", (folder / "link").c_str()), 0);
  const File mapped = open_file(folder / "f", BNNSExtArrayFileMap);
  x = 2;
  ASSERT_EQ(save_one(folder / "link", "x", d), 0) << BNNSExtLastError();
  struct stat facts {};
  ASSERT_EQ(lstat((folder / "link").c_str(), &facts), 0);
  EXPECT_TRUE(S_ISLNK(facts.st_mode));
  ASSERT_EQ(stat((folder / "f").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0640u);
  float old = 0, now = 0;
  const auto to_old = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeFloat32, &old);
  const auto to_now = describe(BNNSDataLayoutVector, {1}, BNNSDataTypeFloat32, &now);
  EXPECT_EQ(BNNSExtArrayFileCopy(mapped.get(), "x", &to_old), 0);
  EXPECT_EQ(BNNSExtArrayFileCopy(open_file(folder / "f").get(), "x", &to_now), 0);
  EXPECT_EQ(old, 1);
  EXPECT_EQ(now, 2);
}

TEST(IoSaveLoad, ManyThreadsOneFile) {
  const Folder folder;
  std::vector<float> in(1000);
  std::iota(in.begin(), in.end(), 0.0f);
  const auto d = describe(BNNSDataLayoutVector, {in.size()}, BNNSDataTypeFloat32, in.data());
  ASSERT_EQ(save_one(folder / "f", "x", d), 0);
  const File file = open_file(folder / "f", BNNSExtArrayFileMap);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        std::vector<float> out(in.size());
        const auto to = describe(BNNSDataLayoutVector, {out.size()}, BNNSDataTypeFloat32, out.data());
        EXPECT_EQ(BNNSExtArrayFileCopy(file.get(), "x", &to), 0);
        EXPECT_EQ(in, out);
        EXPECT_EQ(save_one(folder / "g", "x", d), 0) << BNNSExtLastError();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(folder.files(), 2u);
}

}  // namespace
}  // namespace bnns::io::testing

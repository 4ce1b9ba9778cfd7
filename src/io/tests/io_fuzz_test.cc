// Damaged files: seeded mutations of valid ones are opened or refused with a reason, never more. What opens is read
// completely. Memory stays below the file's size, whatever its header says.
// 20,000 mutations; BNNS_FUZZ_RUNS of the environment says another number (the long run is 1,000,000).

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "src/io/file_bytes.h"
#include "src/io/tests/io_testing.h"
#include "tests/support/testing.h"

namespace {
std::atomic<size_t> allocated{0};  // by operator new since it was set to 0
}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  allocated.fetch_add(bytes, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace bnns::io::testing {
namespace {

using bnns::testing::Random;

std::vector<std::string> seeds() {
  const Folder folder;
  std::vector<std::string> files;
  std::vector<float> f(60, 1.5f);
  uint8_t bytes[5] = {0, 1, 1, 0, 1};
  const auto w = describe(BNNSDataLayoutConvolutionWeightsOIHW, {3, 2, 2, 5}, BNNSDataTypeFloat32, f.data());
  const auto b = describe(BNNSDataLayoutVector, {5}, BNNSDataTypeFloat32, f.data());
  const auto h = describe(BNNSDataLayout2DFirstMajor, {2, 3}, BNNSDataTypeBFloat16, f.data());
  const auto o = describe(BNNSDataLayoutVector, {5}, BNNSDataTypeBoolean, bytes);
  const BNNSExtNamedArray arrays[] = {{"conv.weight", &w}, {"conv.bias", &b}, {"größe\n", &h}, {"o", &o}};
  const BNNSExtMetadata metadata[] = {{"format", "pt"}, {"epoch", "\"12\"\t"}};
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4}}) {
    for (const size_t pairs : {size_t{0}, size_t{2}}) {
      EXPECT_EQ(BNNSExtArraysSave((folder / "f").c_str(), count, arrays, pairs, metadata), 0);
      files.push_back(read_bytes(folder / "f"));
    }
  }
  files.push_back(file_of(
      R"({"a\u00e9\ud83d\ude00":{"shape":[],"data_offsets":[0,8],"dtype":"F64"}, "e":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
      "abcdefgh"));
  return files;
}

void mutate(std::string& file, const std::vector<std::string>& all, Random& random) {
  static const char* const kPieces[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "\\",
                                        "\\u0000",
                                        "\\ud800",
                                        "0",
                                        "18446744073709551615",
                                        "-1",
                                        "1e9",
                                        "\"shape\"",
                                        "\"__metadata__\":{",
                                        "\"dtype\":\"F32\"",
                                        "\xff",
                                        "\xe2\x82",
                                        " ",
                                        "[[[[[[[["};
  const size_t at = file.empty() ? 0 : random.below(file.size() + 1);
  const size_t length = std::min(file.size() - at, random.below(12));
  switch (random.below(9)) {
    case 0:
      if (at < file.size()) file[at] = char(file[at] ^ (1 << random.below(8)));
      break;
    case 1:
      file.erase(at, length);
      break;
    case 2:
      file.insert(at, kPieces[random.below(std::size(kPieces))]);
      break;
    case 3:
      file.resize(at);
      break;
    case 4:
      file.insert(at, file.substr(random.below(file.size() + 1), random.below(60)));
      break;
    case 5:
      file.append(random.below(20), 'x');
      break;
    case 6:  // a length that is nearly right
      if (file.size() >= 8) {
        uint64_t n;
        std::memcpy(&n, file.data(), 8);
        n += random.below(17) - 8;
        std::memcpy(file.data(), &n, 8);
      }
      break;
    case 7: {  // a digit for a digit
      const size_t digit = file.find_first_of("0123456789", std::max<size_t>(at, 8));
      if (digit != file.npos) file[digit] = char('0' + random.below(10));
      break;
    }
    default: {
      const std::string& other = all[random.below(all.size())];
      file.replace(at, length, other.substr(random.below(other.size() + 1), random.below(40)));
    }
  }
}

// Touches everything that an open file offers.
size_t read_all(BNNSExtArrayFile file, std::vector<char>& room) {
  size_t sum = 0;
  for (size_t i = 0; i < BNNSExtArrayFileCount(file); ++i) {
    BNNSExtArrayInfo info{};
    EXPECT_EQ(BNNSExtArrayFileInfo(file, i, &info), 0);
    EXPECT_EQ(BNNSExtArrayFileFind(file, info.name), i);
    for (size_t k = 0; k < info.bytes; ++k) sum += static_cast<unsigned char>(static_cast<const char*>(info.data)[k]);
    BNNSNDArrayDescriptor d{};
    const auto layout = static_cast<BNNSDataLayout>(info.rank < 2 ? 0x10000 : (info.rank << 16) | 0x8001);
    if (BNNSExtArrayFileView(file, info.name, layout, &d) != 0) continue;
    EXPECT_LE(BNNSNDArrayGetDataSize(&d), room.size());
    d.data = room.data();
    if (BNNSExtArrayFileCopy(file, info.name, &d) != 0) continue;
    EXPECT_EQ(std::memcmp(room.data(), info.data, info.bytes), 0);
  }
  for (size_t i = 0; i < BNNSExtArrayFileMetadataCount(file); ++i) {
    BNNSExtMetadata pair{};
    EXPECT_EQ(BNNSExtArrayFileMetadataAt(file, i, &pair), 0);
    EXPECT_EQ(BNNSExtArrayFileMetadata(file, pair.key), pair.value);
    sum += std::strlen(pair.key) + std::strlen(pair.value);
  }
  return sum;
}

TEST(IoFuzz, MutatedFiles) {
  const char* const asked = std::getenv("BNNS_FUZZ_RUNS");
  const size_t runs = asked ? std::strtoull(asked, nullptr, 10) : 20000;
  const uint64_t seed = 1;
  const std::vector<std::string> all = seeds();
  Random random(seed);
  std::vector<char> room(1 << 16);
  const int memory = memfd_create("bnns-io-fuzz", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  const std::string path = "/proc/self/fd/" + std::to_string(memory);
  size_t opened = 0, sum = 0;
  for (size_t run = 0; run < runs && !HasFailure(); ++run) {
    std::string file = all[random.below(all.size())];
    for (size_t k = 1 + random.below(4); k > 0; --k) mutate(file, all, random);
    ASSERT_EQ(ftruncate(memory, 0), 0);
    ASSERT_EQ(pwrite(memory, file.data(), file.size(), 0), ssize_t(file.size()));
    BNNSExtClearLastError();
    allocated = 0;
    const BNNSExtArrayFileMode mode = run % 2 ? BNNSExtArrayFileMap : BNNSExtArrayFileRead;
    const File handle(BNNSExtArrayFileOpen(path.c_str(), mode));
    // The handle itself, and the index, which is smaller than the header. (The copy of the file comes from
    // posix_memalign, and its size from fstat.)
    EXPECT_LE(allocated.load(), file.size() / 2 + 512) << "run " << run << " of seed " << seed;
    if (handle) {
      ++opened, sum += read_all(handle.get(), room);
    } else {
      EXPECT_STRNE(BNNSExtLastError(), "") << "run " << run;
      EXPECT_EQ(std::strpbrk(BNNSExtLastError(), "\n\r\x1b"), nullptr) << BNNSExtLastError();
    }
  }
  close(memory);
  std::printf("%zu mutations of seed %zu: %zu still open (%zu)\n", runs, size_t{seed}, opened, sum);
  EXPECT_GT(opened, runs / 100) << "the mutations leave nothing that opens";
  EXPECT_LT(opened, runs);
}

// The most arrays and keys that fit: the index stays below the header.
TEST(IoFuzz, ManySmallArraysTakeLittleMemory) {
  const Folder folder;
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i < 20000; ++i) header += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  header += '}';
  for (int i = 0; i < 20000; ++i)
    header += ",\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  header += '}';
  write_bytes(folder / "f", file_of(header));
  for (const BNNSExtArrayFileMode mode : {BNNSExtArrayFileRead, BNNSExtArrayFileMap}) {
    allocated = 0;
    const File file = open_file(folder / "f", mode);
    const size_t used = allocated.load();
    ASSERT_TRUE(file) << BNNSExtLastError();
    EXPECT_LT(used, header.size() / 2);  // what was read comes from posix_memalign
    EXPECT_EQ(BNNSExtArrayFileCount(file.get()), 20000u);
    EXPECT_EQ(BNNSExtArrayFileMetadataCount(file.get()), 20000u);
    EXPECT_NE(BNNSExtArrayFileFind(file.get(), "19999"), SIZE_MAX);
  }
}

}  // namespace
}  // namespace bnns::io::testing

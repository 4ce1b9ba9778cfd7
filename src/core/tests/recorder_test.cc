// The recorder behind BNNS_TRACE and BNNS_PROFILE, in a process that has both: what it keeps of calls, parts and
// ranges, what a forked child leaves alone, and what happens at its bounds. That the file is valid JSON and that its
// events nest is the matter of tests/tool/tool_trace.py.
#include "src/core/record/recorder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bnns/bnns.h"
#include "src/core/log.h"
#include "src/core/record/files.h"

namespace bnns {
namespace {

const std::string path = ::testing::TempDir() + "recorder_test." + std::to_string(getpid()) + ".json";

// Before the first call reads them. What the process's end writes is written early, so that no file stays.
const bool settings = [] {
  setenv("BNNS_TRACE", path.c_str(), 1);
  setenv("BNNS_PROFILE", "1", 1);
  static const pid_t process = getpid();
  return std::atexit([] {
           if (getpid() != process) return;
           recorder::write_files();
           std::remove(path.c_str());
         }) == 0;
}();

// The lines of a trace: each has one event.
std::vector<std::string> trace() {
  EXPECT_TRUE(recorder::write_trace(path.c_str()));
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

size_t count(const std::vector<std::string>& lines, std::initializer_list<const char*> parts) {
  size_t n = 0;
  for (const std::string& line : lines) {
    bool all = true;
    for (const char* part : parts) all = all && line.find(part) != line.npos;
    n += all ? 1 : 0;
  }
  return n;
}

std::string profile(size_t columns) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  recorder::print_profile(out, columns);
  std::fclose(out);
  const std::string result(text, size);
  std::free(text);
  return result;
}

BNNSNDArrayDescriptor row(size_t n, float* data) {
  BNNSNDArrayDescriptor d = {};
  d.layout = BNNSDataLayoutVector;
  d.data_type = BNNSDataTypeFloat32;
  d.size[0] = n;
  d.data = data;
  return d;
}

// A fully connected layer that is worth two threads at a batch of 64.
struct Layer {
  static constexpr size_t kIn = 256, kOut = 192, kBatch = 64;
  std::vector<float> w = std::vector<float>(kIn * kOut, 0.5f), x = std::vector<float>(kIn * kBatch, 1.0f),
                     y = std::vector<float>(kOut * kBatch);
  BNNSFilter filter;

  Layer() {
    BNNSLayerParametersFullyConnected p = {};
    p.i_desc = row(kIn, nullptr), p.o_desc = row(kOut, nullptr), p.w_desc = row(kIn, w.data());
    p.w_desc.layout = BNNSDataLayoutRowMajorMatrix, p.w_desc.size[1] = kOut;
    BNNSFilterParameters parameters = {};
    parameters.n_threads = 2;
    filter = BNNSFilterCreateLayerFullyConnected(&p, &parameters);
    EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  }
  ~Layer() { BNNSFilterDestroy(filter); }
  int apply(float* to) const { return BNNSFilterApplyBatch(filter, kBatch, x.data(), kIn, to, kOut); }
};

TEST(Recorder, CallsPartsAndRanges) {
  ASSERT_TRUE(settings);
  Layer layer;
  BNNSExtTraceBegin("a \"range\"\n");
  size_t parts = 0;
  // A worker that sleeps may come too late for a call: another one then.
  for (int call = 0; call < 2000 && parts == 0; ++call) {
    ASSERT_EQ(layer.apply(layer.y.data()), 0) << BNNSExtLastError();
    if (call % 50 == 0) parts = count(trace(), {"\"cat\":\"part\"", "fully_connected f32 i256 o192"});
  }
  BNNSExtTraceEnd();
  BNNSExtTraceEnd();  // one too many
  EXPECT_GT(parts, 0u);
  ASSERT_EQ(BNNSFilterApply(nullptr, layer.x.data(), layer.y.data()), -1);  // a refused call is no event
  std::thread([&] {
    std::vector<float> own(Layer::kOut * Layer::kBatch);
    EXPECT_EQ(layer.apply(own.data()), 0);
  }).join();

  const std::vector<std::string> lines = trace();
  EXPECT_EQ(count(lines, {"\"name\":\"create fully_connected\"", "\"cat\":\"call\""}), 1u);
  EXPECT_EQ(count(lines, {"\"cat\":\"range\"", "\"name\":\"a \\\"range\\\"\\u000a\""}), 1u);
  EXPECT_EQ(count(lines, {"\"name\":\"caller 1\""}), 1u);
  EXPECT_EQ(count(lines, {"\"name\":\"worker 1\""}), 1u);
  EXPECT_EQ(count(lines, {"\"cat\":\"call\"", "\"tid\":2"}), 1u);  // the other thread's
  const size_t all = count(lines, {"\"name\":\"apply fully_connected\"", "\"cat\":\"call\""});
  EXPECT_GT(all, 1u);
  // x, w and y; two operations for each product.
  const size_t bytes = 4 * (256 * 192 + 64 * (256 + 192)), operations = size_t{2} * 64 * 256 * 192;
  const std::string work = "\"bytes\":" + std::to_string(bytes) + ",\"operations\":" + std::to_string(operations);
  EXPECT_EQ(
      count(lines, {"\"cat\":\"call\"", "\"implementation\":\"gemm/", "\"batch\":64", "\"threads\":2", work.c_str()}),
      all);

  const std::string table = profile(200);
  EXPECT_NE(table.find("apply    fully_connected f32 i256 o192"), table.npos) << table;
  EXPECT_NE(table.find(" GFLOP/s  apply"), table.npos) << table;
  EXPECT_EQ(table.find("range"), table.npos) << "ranges are the trace's alone\n" << table;
  const std::string narrow = profile(40);
  for (size_t from = narrow.find('\n', narrow.find('\n') + 1) + 1; from < narrow.size();) {
    const size_t end = narrow.find('\n', from);
    EXPECT_LE(end - from, 40u) << narrow;
    from = end + 1;
  }
}

TEST(Recorder, RangesNestSixteenDeep) {
  for (int i = 0; i < 20; ++i) BNNSExtTraceBegin("deep");
  for (int i = 0; i < 20; ++i) BNNSExtTraceEnd();
  BNNSExtTraceBegin("after");
  BNNSExtTraceEnd();
  const std::vector<std::string> lines = trace();
  EXPECT_EQ(count(lines, {"\"name\":\"deep\""}), 16u);
  EXPECT_EQ(count(lines, {"\"name\":\"after\""}), 1u);
}

TEST(Recorder, LanesOfThreadsThatEndedAreUsedAgain) {
  for (int t = 0; t < 600; ++t) std::thread([] { const Layer own; }).join();
  const std::vector<std::string> lines = trace();
  EXPECT_EQ(count(lines, {"\"thread_name\"", "caller"}), 2u);
  EXPECT_GE(count(lines, {"\"tid\":2", "create fully_connected"}), 600u);
}

TEST(Recorder, ForkedChildWritesNothing) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads after a fork of many";
#endif
  Layer layer;
  ASSERT_EQ(layer.apply(layer.y.data()), 0);
  std::remove(path.c_str());
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    const bool good = layer.apply(layer.y.data()) == 0;
    std::exit(good ? 0 : 1);  // with the library's end
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  struct stat file;
  EXPECT_NE(stat(path.c_str(), &file), 0) << "the child has written the parent's file";
}

TEST(Recorder, AFileThatCannotBeWritten) {
  EXPECT_FALSE(recorder::write_trace("/nowhere/trace.json"));
  EXPECT_EQ(errno, ENOENT);
  if (access("/dev/full", W_OK) == 0) {
    EXPECT_FALSE(recorder::write_trace("/dev/full"));
  }
}

// The last two fill what the recorder has.
TEST(Recorder, MoreKindsOfCallsThanItTellsApart) {
  const CallRecord record;
  const int64_t now = detail::monotonic_nanoseconds();
  for (uint64_t kind = 1; kind <= 2 * recorder::kSites; ++kind) {
    const std::string problem = "kind " + std::to_string(kind);
    recorder::add({"apply", problem.c_str(), nullptr, "none", kind, 1, &record, now, now + 1000}, "kind");
  }
  const recorder::Site* others = recorder::site_at(recorder::kOtherCalls);
  ASSERT_NE(others, nullptr);
  EXPECT_GT(others->calls, recorder::kSites);
  size_t known = 0;
  for (uint32_t slot = 0; slot < recorder::kSiteSlots; ++slot) known += recorder::site_at(slot) ? 1 : 0;
  EXPECT_EQ(known, recorder::kSites);
  const std::string table = profile(80);
  EXPECT_NE(table.find("  call     others: "), table.npos) << table;
  EXPECT_LE(std::count(table.begin(), table.end(), '\n'), 43) << table;
}

TEST(Recorder, MoreEventsThanItKeeps) {
  Layer layer;
  EXPECT_EQ(recorder::lost_events(), 0u);
  const size_t most = recorder::kChunks * recorder::Chunk::kEvents;
  for (size_t k = 0; k <= most; ++k) recorder::add_part(0, 1, 0, 1);
  const uint64_t lost = recorder::lost_events();
  EXPECT_GT(lost, 0u);
  for (int call = 0; call < 1000; ++call) ASSERT_EQ(layer.apply(layer.y.data()), 0);  // goes on
  EXPECT_GT(recorder::lost_events(), lost);
  EXPECT_EQ(recorder::chunk_at(recorder::kChunks), nullptr);
}

}  // namespace
}  // namespace bnns

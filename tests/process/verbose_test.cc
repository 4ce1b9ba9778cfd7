// BNNS_VERBOSE=1: every call of the table writes one line with problem, batch, algorithm, instruction set, threads and
// time, and the algorithm is the one that BNNSExtImplementation names.

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

// "apply,fully_connected f32 i784 o128,batch 32,gemm/tiles,avx512,2 threads,12.3 us". The problem may have commas.
struct Line {
  std::string action, problem, batch, names, isa, threads, time;

  explicit Line(const std::string& text) {
    std::string rest = text;
    for (std::string* field : {&time, &threads, &isa, &names, &batch}) {
      const size_t comma = rest.rfind(',');
      if (comma == std::string::npos) return;
      *field = rest.substr(comma + 1);
      rest.resize(comma);
    }
    const size_t comma = rest.find(',');
    if (comma == std::string::npos) return;
    action = rest.substr(0, comma), problem = rest.substr(comma + 1);
  }

  size_t samples() const { return std::strtoul(batch.c_str() + std::strlen("batch "), nullptr, 10); }
  bool is_backward() const { return action == "backward"; }
  bool has(const char* name) const {
    return ("+" + names + "+").find("+" + std::string(name) + "+") != std::string::npos;
  }
};

void expect_fields(const Line& line) {
  const auto begins = [](const std::string& text, const char* with) { return text.rfind(with, 0) == 0; };
  const auto ends = [](const std::string& text, const std::string& with) {
    return text.size() > with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
  };
  EXPECT_FALSE(line.problem.empty());
  EXPECT_TRUE(begins(line.batch, "batch "));
  EXPECT_NE(line.names, "");
  EXPECT_NE(line.names, "-");
  EXPECT_EQ(line.isa, BNNSExtGetISA());
  EXPECT_TRUE(ends(line.threads, " thread") || ends(line.threads, " threads"));
  EXPECT_GT(std::atoi(line.threads.c_str()), 0);
  EXPECT_TRUE(ends(line.time, " us"));
}

// The algorithm that a pass is said to take is in the line. Of the gradients, one that was wanted.
void expect_named(const Line& line, BNNSFilter filter) {
  const auto said = [&](BNNSExtPass pass) {
    const char* name = BNNSExtImplementation(filter, pass, line.samples());
    EXPECT_NE(name, nullptr) << BNNSExtLastError();
    return std::string(name ? name : "");
  };
  if (line.is_backward()) {
    const std::string dx = said(BNNSExtPassInputGradient), dw = said(BNNSExtPassWeightsGradient);
    EXPECT_TRUE(line.has(dx.c_str()) || line.has(dw.c_str())) << "said to be " << dx << " and " << dw;
  } else {
    const std::string y = said(BNNSExtPassForward);
    EXPECT_TRUE(line.has(y.c_str())) << "said to be " << y;
  }
}

TEST(Verbose, EveryCallHasALineWithItsAlgorithm) {
  setenv("BNNS_VERBOSE", "1", 1);  // before the first call reads it
  std::vector<std::string> lines;
  BNNSExtSetLogCallback(
      [](BNNSExtLogLevel level, const char* message, void* user) {
        if (level == BNNSExtLogVerbose) static_cast<std::vector<std::string>*>(user)->push_back(message);
      },
      &lines);
  FilterOptions options = {};
  options.n_threads = kTableThreads;
  std::set<std::string> operators;
  size_t calls = 0;
  for (const std::unique_ptr<Layer>& layer : every_layer()) {
    BNNSFilter filter = layer->create ? layer->create(&options) : nullptr;
    ASSERT_TRUE(filter || !layer->create) << layer->name << ": " << BNNSExtLastError();
    for (const Layer::Call& call : layer->calls) {
      lines.clear();
      ASSERT_EQ(call.run(filter, &options), 0) << layer->name << ", " << call.name << ": " << BNNSExtLastError();
      ++calls;
      size_t applied = 0;
      for (const std::string& text : lines) {
        SCOPED_TRACE(layer->name + ", " + call.name + ": " + text);
        const Line line(text);
        expect_fields(line);
        if (line.action == "create") continue;
        ++applied;
        // BNNSExtImplementation is about calls without indices; this one has them.
        const bool indexed = layer->name.find("indexed") != std::string::npos;
        if (filter && !indexed) expect_named(line, filter);
        operators.insert(line.problem.substr(0, line.problem.find(' ')));
      }
      EXPECT_GE(applied, 1u) << layer->name << ", " << call.name << " has no line";
    }
    BNNSFilterDestroy(filter);
  }
  BNNSExtSetLogCallback(nullptr, nullptr);
  EXPECT_GE(calls, 150u);
  EXPECT_GE(operators.size(), 40u);
}

}  // namespace
}  // namespace bnns::testing

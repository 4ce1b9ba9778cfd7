// The rows of the table behind a small C interface, for bench/bench.py. Texts are JSON and stay valid until the next
// call.

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/description.h"
#include "bench/limits.h"
#include "bench/onednn.h"
#include "bench/row.h"
#include "bench/timing.h"
#include "src/core/implementation.h"
#include "src/core/isa.h"

#ifdef BNNS_PEER_ONEDNN
#include <omp.h>
#endif

#define BENCH_API extern "C" __attribute__((visibility("default")))

namespace bnns::bench {

namespace {

// A row that has been opened, and where its rotation through the sets stands.
struct Open {
  Case data;
  size_t next = 0;
};

std::string text;

const char* say(const nlohmann::json& json) {
  text = json.dump();
  return text.c_str();
}

// Adds our call of the same description in f32, on data of its own.
void add_own_f32(Row& row, const Row& f32) {
  row.open = [open = row.open, f32](Case& c, size_t threads) {
    open(c, threads);
    auto other = std::make_shared<Case>();
    other->sets = fill_sets(f32);
    f32.open(*other, threads);
    auto next = std::make_shared<size_t>(0);
    const auto call = [=](Data&) { other->contenders[0].call(other->sets[(*next)++ % other->sets.size()]); };
    c.contenders.push_back({"ours f32", call, ""});
  };
}

}  // namespace
}  // namespace bnns::bench

using namespace bnns::bench;

// All rows, in order. Also keeps freed memory in the process: PyTorch allocates its results per call, and would
// otherwise pay for fresh pages each time.
BENCH_API const char* bench_rows() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  if (rows().empty()) {
    add_operator_rows();
    add_step_rows();
    add_overhead_rows();
#ifdef BNNS_BENCH_VECLIB
    add_veclib_rows();
#endif
  }
  nlohmann::json all = nlohmann::json::array();
  for (const Row& r : rows()) {
    all.push_back({{"family", r.family},
                   {"op", r.op},
                   {"direction", r.direction},
                   {"shape", r.shape},
                   {"type", r.type},
                   {"operations", r.operations},
                   {"bytes", r.bytes},
                   {"quick", r.quick},
                   {"attributes", r.attributes}});
  }
  return say(all);
}

// Adds the row of a description (bench/description.h): {"index": its number} or {"error": why it cannot be}.
BENCH_API const char* bench_add(const char* description) {
  if (rows().empty()) bench_rows();
  try {
    const Description d{description};
    const auto maker = makers().find(d.family);
    if (maker == makers().end()) return say({{"error", "no family \"" + d.family + "\""}});
    Row row = maker->second(d);
    if (d.type_name != "f32") add_own_f32(row, maker->second(Description(d.text("f32"))));
    rows().push_back(std::move(row));
    return say({{"index", rows().size() - 1}});
  } catch (const std::exception& e) {
    return say({{"error", e.what()}});
  }
}

BENCH_API const char* bench_machine() {
  nlohmann::json machine = {{"isa", bnns::isa_name(bnns::isa())}, {"compiler", __VERSION__}};
#ifdef BNNS_PEER_ONEDNN
  const dnnl::version_t* v = dnnl::version();
  machine["oneDNN"] = std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
#endif
  return say(machine);
}

// Operations and bytes per second that this machine reaches now: FMA, and a copy with non-temporal stores.
BENCH_API const char* bench_limits(size_t threads) {
  settle();
  return say({{"operations", fma_rate(threads)}, {"bytes", copy_rate(threads)}});
}

BENCH_API void* bench_open(size_t row, size_t threads) {
#ifdef BNNS_PEER_ONEDNN
  omp_set_num_threads(int(threads));
#endif
  BNNSExtSetNumThreads(threads);
  const Row& r = rows()[row];
  auto open = std::make_unique<Open>();
  try {
    open->data.sets = fill_sets(r);
    r.open(open->data, threads);
  } catch (const std::exception& e) {
    text = e.what();
    return nullptr;
  }
  return open.release();
}

// Why the last bench_open or bench_warm failed.
BENCH_API const char* bench_error() {
  return text.c_str();
}

// Makes the layers of every set and touches their memory, so that no turn that counts does. -1: a call failed.
BENCH_API int bench_warm(void* open) {
  Case& c = static_cast<Open*>(open)->data;
  try {
    for (const Contender& one : c.contenders) {
      for (Data& set : c.sets) {
        if (one.name != "plain loop") one.call(set);  // has no layers to make, and is slow
      }
    }
  } catch (const std::exception& e) {
    text = e.what();
    return -1;
  }
  return 0;
}

// Our call on the first set.
BENCH_API void bench_first(void* open) {
  Case& c = static_cast<Open*>(open)->data;
  c.contenders[0].call(c.sets[0]);
}

BENCH_API void bench_close(void* open) {
  delete static_cast<Open*>(open);
}

// {"contenders": names, "result": the array that ours writes, "peer_implementation": oneDNN's,
// "sets": [{name: [address, type, shape]}]}
BENCH_API const char* bench_case(void* open) {
  const Case& c = static_cast<Open*>(open)->data;
  nlohmann::json sets = nlohmann::json::array(), names = nlohmann::json::array();
  for (const Data& data : c.sets) {
    nlohmann::json arrays = nlohmann::json::object();
    for (const auto& [name, array] : data.arrays()) {
      arrays[name] = {reinterpret_cast<uintptr_t>(array.data()), kTypeNames[int(array.type())], array.shape()};
    }
    sets.push_back(arrays);
  }
  for (const Contender& one : c.contenders) names.push_back(one.name);
  return say({{"contenders", names},
              {"result", c.contenders[0].result},
              {"peer_implementation", c.implementation},
              {"sets", sets}});
}

// The algorithms that our call takes, by name, joined by "+"; "" of an operator that has one only. It makes one call.
BENCH_API const char* bench_implementation(void* open) {
  Case& c = static_cast<Open*>(open)->data;
  const bnns::CallRecord record;
  c.contenders[0].call(c.sets[0]);
  char names[256] = "";
  if (record.size()) record.join(names, sizeof names);
  return say(names);
}

// Seconds per call of one contender over `calls` calls, after one that warms up.
BENCH_API double bench_time(void* open, size_t contender, size_t calls) {
  auto& o = *static_cast<Open*>(open);
  const Call& call = o.data.contenders[contender].call;
  const auto data = [&]() -> Data& { return o.data.sets[o.next++ % o.data.sets.size()]; };
  call(data());
  const double start = now();
  for (size_t i = 0; i < calls; ++i) call(data());
  return (now() - start) / double(calls);
}

BENCH_API void bench_settle() {
  settle();
}

// The largest difference between our result and another contender's, as a share of the largest value; -1: not compared.
BENCH_API double bench_difference(void* open, size_t contender) {
  auto& c = static_cast<Open*>(open)->data;
  Data& data = c.sets[0];
  const Contender &ours = c.contenders[0], &other = c.contenders[contender];
  if (ours.result.empty() || other.result.empty()) return -1;
  const Array& a = data[ours.result];
  std::memset(a.data(), 0, a.bytes());  // some add to it; and what is left unwritten shows
  ours.call(data);
  std::vector<float> mine(a.count());
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = a.get(i);
  const Array& b = data[other.result];
  std::memset(b.data(), 0, b.bytes());
  other.call(data);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < mine.size(); ++i) {
    largest = std::max(largest, std::fabs(double(mine[i])));
    const double d = std::fabs(double(mine[i]) - double(b.get(i)));
    worst = std::max(worst, std::isnan(d) ? INFINITY : d);
  }
  return largest > 0 ? worst / largest : worst;
}

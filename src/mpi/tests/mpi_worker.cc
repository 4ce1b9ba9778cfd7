// What the ranks of mpi_test.py run: mpi_worker MODE. Public calls only; every rank prints "rank R: ok MODE" where all
// was as expected, else a line that says what was not.
#include <bnns/bnns_distributed.h>
#include <bnns/bnns_extensions.h>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "src/core/half.h"

namespace {

using Floats = std::vector<float>;

int faults = 0;
size_t my_rank = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  ++faults;
  std::printf("rank %zu: WRONG %s (last error: %s)\n", my_rank, what.c_str(), BNNSExtLastError());
}

BNNSNDArrayDescriptor vector_of(void* data, size_t n, BNNSDataType type = BNNSDataTypeFloat32) {
  BNNSNDArrayDescriptor d{};
  d.layout = BNNSDataLayoutVector, d.size[0] = n, d.data = data, d.data_type = type;
  return d;
}

// Numbers whose sums depend on their order.
float value(size_t shard, size_t array, size_t i) {
  uint64_t x = (shard * 1000003u + array * 10007u + i + 1) * 0x9e3779b97f4a7c15u;
  x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
  const float sign = (x & 1) != 0 ? -1.0f : 1.0f;
  return sign * static_cast<float>(static_cast<double>(x >> 40) / 1048576.0 * ((x >> 8) % 7 == 0 ? 1000 : 1));
}

float rounded(float v, BNNSDataType type) {
  if (type == BNNSDataTypeFloat16) return bnns::half_to_float(bnns::float_to_half(v));
  if (type == BNNSDataTypeBFloat16) return bnns::bfloat16_to_float(bnns::float_to_bfloat16(v));
  return v;
}

void store(void* data, size_t i, float v, BNNSDataType type) {
  if (type == BNNSDataTypeFloat32) static_cast<float*>(data)[i] = v;
  if (type == BNNSDataTypeFloat16) static_cast<uint16_t*>(data)[i] = bnns::float_to_half(v);
  if (type == BNNSDataTypeBFloat16) static_cast<uint16_t*>(data)[i] = bnns::float_to_bfloat16(v);
}

float load(const void* data, size_t i, BNNSDataType type) {
  if (type == BNNSDataTypeFloat16) return bnns::half_to_float(static_cast<const uint16_t*>(data)[i]);
  if (type == BNNSDataTypeBFloat16) return bnns::bfloat16_to_float(static_cast<const uint16_t*>(data)[i]);
  return static_cast<const float*>(data)[i];
}

// The tree, written down: pairs of neighbours, level by level, every node rounded to what travels.
float tree(Floats nodes, BNNSExtGroupReduction reduction, BNNSDataType wire) {
  for (float& node : nodes) node = rounded(node, wire);
  const auto leaves = static_cast<float>(nodes.size());
  while (nodes.size() > 1) {
    Floats above(nodes.size() / 2);
    for (size_t i = 0; i < above.size(); ++i) {
      const float a = nodes[2 * i], b = nodes[2 * i + 1];
      above[i] = rounded(reduction == BNNSExtGroupMax ? (a > b ? a : b) : a + b, wire);
    }
    nodes = above;
  }
  return reduction == BNNSExtGroupMean ? nodes[0] / leaves : nodes[0];
}

struct Case {
  std::vector<size_t> sizes;
  BNNSExtGroupReduction reduction;
  BNNSDataType wire, type;
  size_t shards;
};

std::string text_of(const Case& c) {
  return "reduction " + std::to_string(c.reduction) + " wire " + std::to_string(c.wire) + " type " +
         std::to_string(c.type) + " shards " + std::to_string(c.shards) + " arrays " + std::to_string(c.sizes.size()) +
         " of " + std::to_string(c.sizes[0]);
}

void sums(const Case& c) {
  BNNSExtGroupParameters parameters{};
  parameters.wire = c.wire, parameters.shards = c.shards;
  BNNSExtGroup group = BNNSExtGroupCreate(nullptr, &parameters);
  expect(group != nullptr, "creating a group: " + text_of(c));
  if (!group) return;
  const size_t local = BNNSExtGroupShards(group), rank = BNNSExtGroupRank(group);
  std::vector<std::vector<uint32_t>> memory;
  std::vector<BNNSNDArrayDescriptor> arrays;
  for (size_t n : c.sizes) memory.emplace_back(n + 1, 0x7fc00001u);
  for (size_t a = 0; a < c.sizes.size(); ++a) arrays.push_back(vector_of(memory[a].data(), c.sizes[a], c.type));
  for (int step = 0; step < 2; ++step) {  // memory serves again
    for (size_t s = 0; s < local; ++s) {
      for (size_t a = 0; a < arrays.size(); ++a) {
        for (size_t i = 0; i < c.sizes[a]; ++i) store(arrays[a].data, i, value(rank * local + s, a, i), c.type);
        const BNNSNDArrayDescriptor* one[] = {&arrays[a]};
        expect(BNNSExtGroupReduceStart(group, c.reduction, s, 1, one) == 0, "starting: " + text_of(c));
      }
    }
    expect(BNNSExtGroupReduceWait(group) == 0, "waiting: " + text_of(c));
    for (size_t a = 0; a < arrays.size(); ++a) {
      for (size_t i = 0; i < c.sizes[a]; i += i < 2000 ? 1 : 97) {
        Floats leaves;
        for (size_t s = 0; s < c.shards; ++s) leaves.push_back(rounded(value(s, a, i), c.type));
        const float want = rounded(tree(leaves, c.reduction, c.wire), c.type), got = load(arrays[a].data, i, c.type);
        if (std::memcmp(&want, &got, sizeof want) == 0) continue;
        expect(false, text_of(c) + ": arrays[" + std::to_string(a) + "][" + std::to_string(i) + "] is " +
                          std::to_string(got) + ", expected " + std::to_string(want));
        break;
      }
      expect(memory[a][c.sizes[a]] == 0x7fc00001u, "an element behind an array was written: " + text_of(c));
    }
  }
  expect(BNNSExtGroupFinalize(group) == 0, "finalizing: " + text_of(c));
}

void all_sums() {
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  for (const BNNSDataType wire : types) {
    for (const BNNSExtGroupReduction reduction : {BNNSExtGroupSum, BNNSExtGroupMean, BNNSExtGroupMax}) {
      sums({{1, 7, 1000, 20001}, reduction, wire, wire, 8});
    }
  }
  for (const BNNSDataType type : types) sums({{333, 5}, BNNSExtGroupMean, BNNSDataTypeFloat32, type, 8});
  sums({{700001, 3, 524288, 17}, BNNSExtGroupMean, BNNSDataTypeFloat32, BNNSDataTypeFloat32, 8});  // several buckets
  sums({{100, 30000}, BNNSExtGroupSum, BNNSDataTypeFloat32, BNNSDataTypeFloat32, 16});
}

// Integers: exact in any order.
void fast_mode() {
  for (const BNNSDataType wire : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    BNNSExtGroupParameters parameters{};
    parameters.mode = BNNSExtGroupFast, parameters.wire = wire;
    BNNSExtGroup group = BNNSExtGroupCreate(nullptr, &parameters);
    expect(group != nullptr, "creating a fast group");
    if (!group) return;
    const size_t size = BNNSExtGroupSize(group), rank = BNNSExtGroupRank(group);
    expect(BNNSExtGroupShards(group) == 1, "one shard for a rank");
    Floats a(600000), b(3);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i + rank) % 5);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>((rank + i) % size);
    const auto da = vector_of(a.data(), a.size()), db = vector_of(b.data(), b.size());
    const BNNSNDArrayDescriptor *one[] = {&da}, *other[] = {&db};
    expect(BNNSExtGroupReduceStart(group, BNNSExtGroupSum, 0, 1, one) == 0, "starting sum");
    expect(BNNSExtGroupReduceStart(group, BNNSExtGroupMax, 0, 1, other) == 0, "starting max");
    expect(BNNSExtGroupReduceWait(group) == 0, "waiting");
    for (size_t i = 0; i < a.size(); ++i) {
      float want = 0;
      for (size_t r = 0; r < size; ++r) want += static_cast<float>((i + r) % 5);
      if (a[i] != want) {
        expect(false, "fast sum");
        break;
      }
    }
    for (float v : b) expect(v == static_cast<float>(size - 1), "fast max");
    expect(BNNSExtGroupFinalize(group) == 0, "finalizing");
  }
}

// Broadcast, all_reduce, items, the optimizer's step; refusals that concern one rank alone.
void other_calls() {
  BNNSExtGroup group = BNNSExtGroupCreate(nullptr, nullptr);
  expect(group != nullptr, "creating a group");
  if (!group) return;
  const size_t size = BNNSExtGroupSize(group), rank = BNNSExtGroupRank(group), local = BNNSExtGroupShards(group);
  std::vector<int64_t> whole(1001, static_cast<int64_t>(rank));
  Floats w(5, static_cast<float>(rank + 1)), dw(5), t{static_cast<float>(rank)};
  auto da = vector_of(whole.data(), whole.size(), BNNSDataTypeInt64), dt = vector_of(t.data(), 1),
       db = vector_of(w.data(), w.size());
  BNNSNDArrayDescriptor *two[] = {&da, &db}, *time[] = {&dt};
  expect(BNNSExtGroupBroadcast(group, size - 1, 2, two) == 0, "broadcast");
  for (int64_t v : whole) expect(v == static_cast<int64_t>(size - 1), "broadcast of integers");
  for (float v : w) expect(v == static_cast<float>(size), "broadcast of floats");
  expect(
      BNNSExtGroupAllReduce(group, BNNSExtGroupSum, 1, time) == 0 && t[0] == static_cast<float>(size * (size - 1) / 2),
      "sum over ranks");
  t[0] = static_cast<float>(rank);
  expect(BNNSExtGroupAllReduce(group, BNNSExtGroupMax, 1, time) == 0 && t[0] == static_cast<float>(size - 1),
         "maximum over ranks");
  expect(BNNSExtGroupAllReduce(group, BNNSExtGroupMean, 1, time) == 0 && t[0] == static_cast<float>(size - 1),
         "mean over ranks");

  size_t first = 77, count = 77;
  for (size_t s = 0; s < local; ++s) {
    expect(BNNSExtGroupItems(group, 64, s, &first, &count) == 0 && count == 8 && first == (rank * local + s) * 8,
           "items");
  }
  first = count = 77;
  expect(BNNSExtGroupItems(group, 100, 0, &first, &count) == -1 && first == 77 && count == 77, "a batch of 100");
  expect(std::strstr(BNNSExtLastError(), "batch is 100, expected a multiple of 8") != nullptr, "the reason");

  BNNSOptimizerSGDMomentumFields sgd{};
  sgd.learning_rate = 1, sgd.gradient_scale = 1;
  auto g = vector_of(dw.data(), dw.size());
  BNNSNDArrayDescriptor* parameters[] = {&db};
  const BNNSNDArrayDescriptor* gradients[] = {&g};
  const auto step = [&] {
    return BNNSExtGroupOptimizerStep(group, BNNSOptimizerFunctionSGDMomentum, &sgd, 1, parameters, gradients, nullptr,
                                     nullptr);
  };
  expect(step() == -1 && w[0] == static_cast<float>(size), "a step without gradients");
  for (size_t s = 0; s < local; ++s) {
    for (float& v : dw) v = static_cast<float>(rank * local + s);
    expect(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, s, 1, gradients) == 0, "starting");
  }
  expect(step() == 0 && w[4] == static_cast<float>(size) - 3.5f && dw[4] == 3.5f, "the step");

  const auto refused = [&](int status, const char* reason) {
    expect(status == -1 && std::strstr(BNNSExtLastError(), reason) != nullptr, std::string("refused: ") + reason);
  };
  refused(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, local, 1, gradients), "expected less than");
  auto sparse = g;
  sparse.stride[0] = 2, sparse.size[0] = 2;
  const BNNSNDArrayDescriptor *gaps[] = {&sparse}, *none[] = {nullptr};
  refused(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, 0, 1, gaps), "it must be dense");
  refused(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, 0, 1, none), "arrays[0] is NULL");
  refused(BNNSExtGroupReduceStart(group, static_cast<BNNSExtGroupReduction>(9), 0, 1, gradients), "reduction is 9");
  refused(BNNSExtGroupAllReduce(group, BNNSExtGroupSum, 1, two), "data_type");
  refused(BNNSExtGroupBroadcast(group, size, 1, two), "root is");
  BNNSExtGroup absent = nullptr;  // a variable that may change: clang warns of a constant
  refused(BNNSExtGroupReduceWait(absent), "group is NULL");
  if (local > 1) {
    expect(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, 0, 1, gradients) == 0, "starting");
    refused(BNNSExtGroupReduceWait(group), "shard 0 has given 1 of 1 arrays");
    expect(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, 0, 1, gradients) == 0, "one more");
    refused(BNNSExtGroupReduceStart(group, BNNSExtGroupMean, 1, 1, const_cast<const BNNSNDArrayDescriptor**>(time)),
            "arrays[0] of shard 1 is not what shard 0 gave");
  }
  expect(BNNSExtGroupFinalize(group) == 0, "finalizing");
  BNNSExtGroupParameters p{};
  p.shards = 6;
  expect(BNNSExtGroupCreate(nullptr, &p) == nullptr, "6 shards");
  p.shards = 1;
  if (size > 1) {
    expect(BNNSExtGroupCreate(nullptr, &p) == nullptr, "more ranks than shards");
    const std::string reason = std::to_string(size) + " ranks are more than 1 shards";
    expect(std::strstr(BNNSExtLastError(), reason.c_str()) != nullptr, reason);
  }
}

// One rank, drawn by seed, that is asked for something else: an error on every rank, with the name of that rank.
void mismatches(uint64_t seed, int runs) {
  MPI_Comm world = MPI_COMM_WORLD;
  for (int run = 0; run < runs; ++run) {
    int size = 0;
    MPI_Comm_size(world, &size);
    const uint64_t draw = (seed + static_cast<uint64_t>(run)) * 0x9e3779b97f4a7c15u;
    const size_t odd_one = (draw >> 33) % static_cast<size_t>(size), step_at = draw >> 17 & 3, kind = (draw >> 40) % 8;
    BNNSExtGroupParameters parameters{};
    parameters.timeout = 20;
    const bool odd = my_rank == odd_one;
    if (kind == 7 && odd) parameters.wire = BNNSDataTypeBFloat16;
    BNNSExtGroup group = BNNSExtGroupCreate(&world, &parameters);
    std::string reason = group ? "" : BNNSExtLastError();
    if (group) {
      const size_t local = BNNSExtGroupShards(group);
      Floats a(1000, 1), b(200, 1), half(500, 1);
      auto da = vector_of(a.data(), a.size()), db = vector_of(b.data(), b.size());
      BNNSNDArrayDescriptor* both[] = {&da, &db};
      for (size_t step = 0; step < 8 && reason.empty(); ++step) {
        const bool now = odd && step == step_at;
        if (now && kind == 0) db.size[0] = 199;
        if (now && kind == 1) db.data_type = BNNSDataTypeBFloat16;
        const size_t n = now && kind == 2 ? 1 : 2;
        const auto reduction = now && kind == 3 ? BNNSExtGroupSum : BNNSExtGroupMean;
        const size_t root = now && kind == 4 ? 1 : 0;
        int status = 0;
        if (now && kind == 5) status = BNNSExtGroupAllReduce(group, BNNSExtGroupSum, 2, both);  // before the broadcast
        if (status == 0) status = BNNSExtGroupBroadcast(group, root, 2, both);
        if (now && kind == 6 && status == 0) {  // gone in good order
          BNNSExtGroupFinalize(group);
          group = nullptr;
          reason = BNNSExtLastError();
          break;
        }
        for (size_t s = 0; s < local && status == 0; ++s) {
          status = BNNSExtGroupReduceStart(group, reduction, s, n, const_cast<const BNNSNDArrayDescriptor**>(both));
        }
        if (status == 0) status = BNNSExtGroupReduceWait(group);
        if (status != 0) reason = BNNSExtLastError();
      }
      if (group) {
        expect(BNNSExtGroupFinalize(group) == -1, "finalizing a group that failed");
      }
    }
    const std::string name = "rank " + std::to_string(odd_one);
    const bool named = reason.find(name) != reason.npos && (kind == 7 || reason.find("call ") != reason.npos) &&
                       (kind > 2 || reason.find("arrays[1]") != reason.npos);
    expect(named, "mismatch " + std::to_string(kind) + " of " + name + ": " + reason);
    if (my_rank == 0 && runs <= 16) std::printf("mismatch %zu: %s\n", kind, reason.c_str());
    std::fflush(stdout);
    MPI_Barrier(world);
  }
}

// Trains until `odd_one` is killed, or stopped as a host that hangs, after `milliseconds`, or is busy for longer than
// the timeout; the others print what they were told, and how long after. No parameter was stepped halfway.
void fault(const std::string& what, size_t odd_one, int milliseconds, double timeout) {
  BNNSExtGroupParameters parameters{};
  parameters.timeout = timeout;
  BNNSExtGroup group = BNNSExtGroupCreate(nullptr, &parameters);
  expect(group != nullptr, "creating a group");
  if (!group) return;
  const size_t local = BNNSExtGroupShards(group);
  const bool odd = BNNSExtGroupRank(group) == odd_one;
  Floats w1(300000, 0), w2(10, 0), g1(w1.size()), g2(w2.size());
  auto dw1 = vector_of(w1.data(), w1.size()), dw2 = vector_of(w2.data(), w2.size()),
       dg1 = vector_of(g1.data(), g1.size()), dg2 = vector_of(g2.data(), g2.size());
  BNNSNDArrayDescriptor* w[] = {&dw1, &dw2};
  const BNNSNDArrayDescriptor* g[] = {&dg1, &dg2};
  BNNSOptimizerSGDMomentumFields sgd{};
  sgd.learning_rate = 1, sgd.gradient_scale = 1;
  float steps = 0;
  int status = BNNSExtGroupBroadcast(group, 0, 2, w);
  auto last = std::chrono::steady_clock::now();
  while (status == 0 && steps < 1e6f) {
    if (odd && what == "busy" && steps == 3) std::this_thread::sleep_for(std::chrono::duration<double>(timeout + 1));
    last = std::chrono::steady_clock::now();
    for (size_t s = 0; s < local && status == 0; ++s) {
      g1.assign(g1.size(), -1), g2.assign(g2.size(), -1);
      status = BNNSExtGroupReduceStart(group, BNNSExtGroupMean, s, 2, g);
    }
    if (status == 0) {
      status = BNNSExtGroupOptimizerStep(group, BNNSOptimizerFunctionSGDMomentum, &sgd, 2, w, g, nullptr, nullptr);
    }
    if (status == 0) steps += 1;
    if (odd && (what == "kill" || what == "stop") && steps == 2) {  // the launchers' own exchanges are over
      if (what == "stop") std::printf("pid %d\n", static_cast<int>(getpid()));
      std::fflush(stdout);
      std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        std::raise(what == "kill" ? SIGKILL : SIGSTOP);
      }).detach();
    }
  }
  const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - last).count();
  const std::string reason = BNNSExtLastError();
  for (const Floats* each : {&w1, &w2}) {
    for (float v : *each) {
      if (v == steps) continue;
      expect(false, "a parameter is " + std::to_string(v) + " after " + std::to_string(steps) + " steps");
      break;
    }
  }
  expect(reason.find("rank " + std::to_string(odd_one)) != reason.npos, "the rank's name in: " + reason);
  expect(waited <= timeout + 1, "the timeout, waited " + std::to_string(waited));
  std::printf("rank %zu: after %.0f steps and %.2f s: %s\n", my_rank, static_cast<double>(steps), waited,
              reason.c_str());
  BNNSExtGroupFinalize(group);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int i, double otherwise) { return argc > i ? std::atof(argv[i]) : otherwise; };
  const bool own_mpi = mode == "mismatch";  // a caller's communicator
  if (own_mpi) {
    int provided = 0;
    // Without threads of its own: what is under way goes on in calls.
    MPI_Init_thread(nullptr, nullptr, number(2, 1) < 0 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    my_rank = static_cast<size_t>(rank);
  } else {
    BNNSExtGroupParameters any{};
    any.mode = BNNSExtGroupFast;
    BNNSExtGroup group = BNNSExtGroupCreate(nullptr, &any);
    my_rank = BNNSExtGroupRank(group);
    BNNSExtGroupFinalize(group);
  }
  // A launcher that loses a rank may drop what the others say.
  if (const char* folder = std::getenv("MPI_WORKER_OUTPUT")) {
    if (!std::freopen((std::string(folder) + "/rank" + std::to_string(my_rank)).c_str(), "w", stdout)) return 1;
  }
  if (mode == "all") all_sums(), fast_mode(), other_calls();
  if (mode == "fast") fast_mode();
  if (mode == "mismatch") mismatches(static_cast<uint64_t>(std::abs(number(2, 1))), static_cast<int>(number(3, 8)));
  if (mode == "kill" || mode == "stop" || mode == "busy") {
    fault(mode, static_cast<size_t>(number(2, 1)), static_cast<int>(number(3, 100)), number(4, 3));
  }
  if (faults == 0) std::printf("rank %zu: ok %s\n", my_rank, mode.c_str());
  std::fflush(stdout);
  if (mode == "all" || mode == "fast") return faults == 0 ? 0 : 1;
  if (own_mpi) MPI_Barrier(MPI_COMM_WORLD);
  // MPICH's launcher ends soon after the first that exits without MPI_Finalize: all shall have said what they have to.
  if (!own_mpi) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  _exit(faults == 0 ? 0 : 1);  // groups failed: MPI_Finalize might wait for ever
}

#include "src/mpi/call.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include "bnns/bnns.h"

namespace bnns::mpi {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...) {
  char line[300];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(line, sizeof line, text, arguments);
  va_end(arguments);
  return line;
}

std::string type_text(uint32_t type) {
  switch (static_cast<BNNSDataType>(type)) {
    case BNNSDataTypeFloat32:
      return "Float32";
    case BNNSDataTypeFloat16:
      return "Float16";
    case BNNSDataTypeBFloat16:
      return "BFloat16";
    default:
      return format("type %#x", type);
  }
}

std::string elements_text(const Record& r) {
  return format("%llu elements of ", static_cast<unsigned long long>(r.count)) + type_text(r.type);
}

// The parameters of a group are its records.
std::string parameter_difference(int rank, const Record& a, int other_rank, const Record& b) {
  constexpr const char* kNames[] = {"mode", "shards", "wire"};
  const char* name = a.index < 3 ? kNames[a.index] : "a parameter";
  return format("parameters->%s is %llu on rank %d, %llu on rank %d", name, static_cast<unsigned long long>(a.count),
                rank, static_cast<unsigned long long>(b.count), other_rank);
}

}  // namespace

const char* name_of(Call call) {
  switch (call) {
    case Call::create:
      return "BNNSExtGroupCreate";
    case Call::broadcast:
      return "BNNSExtGroupBroadcast";
    case Call::all_reduce:
      return "BNNSExtGroupAllReduce";
    case Call::reduce_start:
      return "BNNSExtGroupReduceStart";
    case Call::finalize:
      return "BNNSExtGroupFinalize";
  }
  return "a call";
}

uint64_t hash_of(uint64_t sequence, const std::vector<Record>& records) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((value >> shift) & 255)) * 0x100000001b3u;
  };
  mix(sequence);
  for (const Record& r : records) {
    mix(r.count);
    mix(static_cast<uint64_t>(r.number) << 32 | static_cast<uint32_t>(r.call));
    mix(static_cast<uint64_t>(r.detail) << 32 | r.arrays);
    mix(static_cast<uint64_t>(r.index) << 32 | r.type);
  }
  return hash;
}

std::string text_of(const Record& r) {
  if (r.call == Call::create) return name_of(r.call);
  return format("call %u (%s)", r.number, name_of(r.call));
}

std::string difference(int rank, const std::vector<Record>& mine, int other_rank, const std::vector<Record>& other) {
  const size_t common = std::min(mine.size(), other.size());
  for (size_t i = 0; i < common; ++i) {
    const Record &a = mine[i], &b = other[i];
    if (a == b) continue;
    if (a.call != b.call || a.number != b.number) {
      return format("rank %d is at %s, rank %d at %s", rank, text_of(a).c_str(), other_rank, text_of(b).c_str());
    }
    if (a.call == Call::create) return parameter_difference(rank, a, other_rank, b);
    if (a.detail != b.detail) {
      return format("%s: %s is %u on rank %d, %u on rank %d", text_of(a).c_str(),
                    a.call == Call::broadcast ? "root" : "reduction", a.detail, rank, b.detail, other_rank);
    }
    if (a.count != b.count || a.type != b.type) {
      return format("%s: arrays[%u] has %s on rank %d, %s on rank %d", text_of(a).c_str(), a.index,
                    elements_text(a).c_str(), rank, elements_text(b).c_str(), other_rank);
    }
    return format("%s: n is %u on rank %d, %u on rank %d, from arrays[%u] on", text_of(a).c_str(), a.arrays, rank,
                  b.arrays, other_rank, std::min(a.arrays, b.arrays));
  }
  if (mine.size() == other.size()) return "";
  const bool more = mine.size() > other.size();
  const Record& r = more ? mine[common] : other[common];
  return format("%s: rank %d gives arrays[%u], rank %d does not", text_of(r).c_str(), more ? rank : other_rank, r.index,
                more ? other_rank : rank);
}

}  // namespace bnns::mpi

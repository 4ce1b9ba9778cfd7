// What ranks compare before anything moves: the calls they were asked for, array by array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bnns::mpi {

enum class Call : uint32_t { create, broadcast, all_reduce, reduce_start, finalize };

const char* name_of(Call call);

// One array of a call, or a call without arrays. Travels as it lies in memory, when ranks disagree.
struct Record {
  uint64_t count;   // elements; of Call::create the value of a parameter
  uint32_t number;  // of the call, from 1
  Call call;
  uint32_t detail;  // the root of a broadcast, or what a reduction computes
  uint32_t arrays;  // of the call
  uint32_t index;   // of the array
  uint32_t type;    // BNNSDataType
  friend bool operator==(const Record&, const Record&) = default;
};

// Equal texts of records have equal hashes (FNV-1a); ranks compare 64 bits, and the records only if these differ.
uint64_t hash_of(uint64_t sequence, const std::vector<Record>& records);

// "call 12 (BNNSExtGroupReduceStart)".
std::string text_of(const Record& record);

// What differs between two ranks' records of the same operation, or "".
std::string difference(int rank, const std::vector<Record>& mine, int other_rank, const std::vector<Record>& other);

}  // namespace bnns::mpi

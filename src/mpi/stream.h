// The arrays that are reduced in one step, one behind the other, cut into buckets of equal size.
//
// A bucket holds the nodes of the tree that this rank has so far (arithmetic.h). When the rank's last shard has filled
// it, the rank's shards are one sum, and the bucket goes on its way to the other ranks while the caller fills the next.
// Where the cuts are follows from the sequence of arrays alone, so it is the same on every rank.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "src/mpi/engine.h"
#include "src/mpi/operation.h"

namespace bnns::mpi {

enum class Reduction : uint32_t { sum, mean, max };

// An array as a reduction sees it: dense, of a type that has sums.
struct Values {
  void* data;
  BNNSDataType type;
  size_t count;
  friend bool operator==(const Values&, const Values&) = default;
};

class Stream {
 public:
  struct Options {
    WireType wire;
    size_t shards;   // of this rank
    size_t divisor;  // of a mean
    bool fast;       // MPI's order
    int ranks;
  };
  explicit Stream(const Options& options) : options_(options) {}

  // What a call gives for a shard; `record` is that of a call, without its array. Throws Error, and nothing has been
  // taken then.
  void give(Engine* engine, Reduction reduction, size_t shard, const std::vector<Values>& arrays, const Record& record);
  // Waits, and writes the results over the arrays; the stream is empty then.
  void finish(Engine* engine);
  bool is_empty() const { return items_.empty(); }
  bool has(const void* data) const;

 private:
  struct Item {
    Values values;
    Reduction reduction;
    size_t bucket, at;  // its first value's place
  };
  struct Bucket {
    std::vector<std::unique_ptr<std::byte[]>> levels;  // of the tree; the last is the rank's sum
    std::unique_ptr<std::byte[]> incoming;
    size_t count = 0, filled = 0;  // values; of the present shard
    bool closed = false;
    Combine how = Combine::sum;
    std::vector<Record> records;
    std::unique_ptr<Operation> operation;
  };
  void check_shard(Reduction reduction, size_t shard, const std::vector<Values>& arrays) const;
  Item& append(Reduction reduction, const Values& values, const Record& record);
  Bucket& open_bucket(Combine how);
  void close_bucket(Engine* engine);
  void fill(Engine* engine, const Item& item, size_t shard);
  void launch_if_ready(Engine* engine, Bucket& bucket);
  size_t height() const;

  Options options_;
  std::vector<Item> items_;
  std::vector<std::unique_ptr<Bucket>> buckets_, spare_;  // spare_: their memory serves the next step
  size_t shard_ = 0, next_ = 0;                           // where the rank's shards are: items given of this one
};

}  // namespace bnns::mpi

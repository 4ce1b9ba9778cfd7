#include "src/mpi/stream.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/core/error.h"

namespace bnns::mpi {
namespace {

constexpr size_t kBucketValues = size_t{512} * 1024;  // 2 MiB of f32: large for a message, small for a cache

Combine how_of(Reduction reduction) {
  return reduction == Reduction::max ? Combine::max : Combine::sum;
}

}  // namespace

size_t Stream::height() const {
  return static_cast<size_t>(std::countr_zero(options_.shards));
}

bool Stream::has(const void* data) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) { return item.values.data == data; });
}

// Every shard gives what the first gave, in the same order.
void Stream::check_shard(Reduction reduction, size_t shard, const std::vector<Values>& arrays) const {
  const bool next_shard = shard == shard_ + 1 && next_ == items_.size() && !items_.empty();
  if (shard >= options_.shards) {
    fail_invalid("group: shard is %zu, expected less than %zu = shards of this rank", shard, options_.shards);
  }
  if (shard != shard_ && !next_shard) {
    fail_invalid("group: shard is %zu, but shard %zu has given %zu of %zu arrays: shards come one after the other",
                 shard, shard_, next_, items_.size());
  }
  if (shard == 0) return;
  const size_t first = next_shard ? 0 : next_;
  if (items_.size() - first < arrays.size()) {
    fail_invalid("group: shard %zu gives %zu arrays, expected at most %zu, as shard 0", shard, first + arrays.size(),
                 items_.size());
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Item& there = items_[first + i];
    if (arrays[i] == there.values && reduction == there.reduction) continue;
    fail_invalid("group: arrays[%zu] of shard %zu is not what shard 0 gave in this place, %zu elements at %p", i, shard,
                 there.values.count, there.values.data);
  }
}

void Stream::give(Engine* engine, Reduction reduction, size_t shard, const std::vector<Values>& arrays,
                  const Record& record) {
  check_shard(reduction, shard, arrays);
  if (shard != shard_) {
    if (shard == 1) close_bucket(engine);
    for (auto& bucket : buckets_) bucket->filled = 0;
    shard_ = shard, next_ = 0;
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (shard == 0) {
      Record each = record;
      each.index = static_cast<uint32_t>(i);
      append(reduction, arrays[i], each);
    }
    fill(engine, items_[next_++], shard);
  }
}

Stream::Bucket& Stream::open_bucket(Combine how) {
  std::unique_ptr<Bucket> bucket;
  if (!spare_.empty()) {
    bucket = std::move(spare_.back());
    spare_.pop_back();
  } else {
    bucket = std::make_unique<Bucket>();
    const size_t bytes = kBucketValues * options_.wire.bytes();
    for (size_t l = 0; l <= height(); ++l) bucket->levels.emplace_back(new std::byte[bytes]);
    if (options_.ranks > 1 && !options_.fast) bucket->incoming.reset(new std::byte[bytes]);
  }
  bucket->count = bucket->filled = 0;
  bucket->closed = false;
  bucket->how = how;
  bucket->records.clear();
  bucket->operation.reset();
  buckets_.push_back(std::move(bucket));
  return *buckets_.back();
}

// Places an array behind the others; the buckets that it covers are made.
Stream::Item& Stream::append(Reduction reduction, const Values& values, const Record& record) {
  const Combine how = how_of(reduction);
  Record mine = record;
  mine.count = values.count;
  mine.type = static_cast<uint32_t>(values.type);
  Item item{values, reduction, 0, 0};
  bool placed = false;
  for (size_t left = values.count; left > 0;) {
    Bucket* last = buckets_.empty() ? nullptr : buckets_.back().get();
    if (!last || last->closed || last->count == kBucketValues || last->how != how) {
      if (last) last->closed = true;
      last = &open_bucket(how);
    }
    if (!std::exchange(placed, true)) item.bucket = buckets_.size() - 1, item.at = last->count;
    const size_t n = std::min(left, kBucketValues - last->count);
    last->count += n;
    left -= n;
    last->records.push_back(mine);
    last->closed = last->count == kBucketValues;
  }
  items_.push_back(item);
  return items_.back();
}

void Stream::fill(Engine* engine, const Item& item, size_t shard) {
  const auto* x = static_cast<const std::byte*>(item.values.data);
  const size_t value_bytes = item.values.type == BNNSDataTypeFloat32 ? 4 : 2;
  size_t at = item.at, left = item.values.count;
  for (size_t b = item.bucket; left > 0; ++b, at = 0) {
    Bucket& bucket = *buckets_[b];
    const size_t n = std::min(left, bucket.count - at);
    void* levels[64];
    for (size_t l = 0; l <= height(); ++l) {
      levels[l] = bucket.levels[l].get() + at * options_.wire.bytes();
    }
    add_leaf(options_.wire, bucket.how, item.values.type, x, n, levels, shard);
    bucket.filled += n;
    x += n * value_bytes;
    left -= n;
    // One that was closed because the next array is reduced otherwise waits here for that array.
    if (b > 0) launch_if_ready(engine, *buckets_[b - 1]);
    launch_if_ready(engine, bucket);
  }
}

void Stream::close_bucket(Engine* engine) {
  if (buckets_.empty()) return;
  buckets_.back()->closed = true;
  launch_if_ready(engine, *buckets_.back());
}

void Stream::launch_if_ready(Engine* engine, Bucket& bucket) {
  if (!engine || bucket.operation || !bucket.closed || shard_ + 1 != options_.shards || bucket.filled != bucket.count) {
    return;
  }
  void* const sum = bucket.levels.back().get();
  if (options_.fast) {
    auto operation = std::make_unique<FastReduction>(options_.wire, bucket.how);
    operation->set_block(sum, bucket.count);
    bucket.operation = std::move(operation);
  } else {
    auto operation = std::make_unique<TreeReduction>(options_.wire, bucket.how, options_.ranks);
    operation->set_block(sum, bucket.incoming.get(), bucket.count);
    bucket.operation = std::move(operation);
  }
  bucket.operation->records = bucket.records;
  engine->submit(*bucket.operation);
}

void Stream::finish(Engine* engine) {
  if (items_.empty()) return;
  if (shard_ + 1 != options_.shards || next_ != items_.size()) {
    fail_invalid(
        "group: shard %zu has given %zu of %zu arrays; every one of the %zu shards of this rank gives them all", shard_,
        next_, items_.size(), options_.shards);
  }
  close_bucket(engine);
  if (engine) engine->wait();
  for (const Item& item : items_) {
    const float scale = item.reduction == Reduction::mean ? 1.0f / static_cast<float>(options_.divisor) : 1.0f;
    auto* out = static_cast<std::byte*>(item.values.data);
    size_t at = item.at, left = item.values.count;
    for (size_t b = item.bucket; left > 0; ++b, at = 0) {
      const size_t n = std::min(left, buckets_[b]->count - at);
      write_result(options_.wire, buckets_[b]->levels.back().get() + at * options_.wire.bytes(), scale,
                   item.values.type, out, n);
      out += n * (item.values.type == BNNSDataTypeFloat32 ? 4 : 2);
      left -= n;
    }
  }
  for (auto& bucket : buckets_) spare_.push_back(std::move(bucket));
  buckets_.clear();
  items_.clear();
  shard_ = next_ = 0;
}

}  // namespace bnns::mpi

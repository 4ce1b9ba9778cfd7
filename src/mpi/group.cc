#include "src/mpi/group.h"

#include <bit>
#include <utility>

#include "src/core/error.h"
#include "src/mpi/arrays.h"

namespace bnns::mpi {
namespace {

constexpr size_t kShards = 8;
constexpr double kTimeout = 30, kLongestTimeout = 1e7;

BNNSDataType wire_of(const BNNSExtGroupParameters& p) {
  return static_cast<uint32_t>(p.wire) == 0 ? BNNSDataTypeFloat32 : p.wire;
}

size_t shards_of(const BNNSExtGroupParameters& p, const Link& link) {
  if (p.mode == BNNSExtGroupFast) return static_cast<size_t>(link.size);
  return p.shards == 0 ? kShards : p.shards;
}

}  // namespace

// In words that are the same on every rank, before any of them waits for the others.
void Group::check_parameters(const BNNSExtGroupParameters& p, const Link& link) {
  if (p.mode > BNNSExtGroupFast) {
    fail_invalid("group: parameters->mode is %u, expected BNNSExtGroupDeterministic or BNNSExtGroupFast",
                 static_cast<unsigned>(p.mode));
  }
  const BNNSDataType wire = wire_of(p);
  if (wire != BNNSDataTypeFloat32 && wire != BNNSDataTypeFloat16 && wire != BNNSDataTypeBFloat16) {
    fail_invalid("group: parameters->wire is %#x, expected Float32, Float16 or BFloat16", static_cast<unsigned>(wire));
  }
  if (!(p.timeout >= 0 && p.timeout <= kLongestTimeout)) {
    fail_invalid("group: parameters->timeout is %g s, expected 0 to %g", p.timeout, kLongestTimeout);
  }
  if (p.mode == BNNSExtGroupFast) {
    if (p.shards == 0 || p.shards == static_cast<size_t>(link.size)) return;
    fail_invalid("group: parameters->shards is %zu, expected 0: in fast mode each of the %d ranks has one", p.shards,
                 link.size);
  }
  const size_t shards = shards_of(p, link), ranks = static_cast<size_t>(link.size);
  if (!std::has_single_bit(shards)) {
    fail_invalid("group: parameters->shards is %zu, expected a power of two", shards);
  }
  if (ranks > shards) {
    fail_invalid("group: %zu ranks are more than %zu shards: start fewer, or give parameters->shards", ranks, shards);
  }
  if (shards % ranks != 0) {
    fail_invalid("group: %zu shards are not a multiple of %zu ranks: start 1, 2, 4, ... of them, or use fast mode",
                 shards, ranks);
  }
}

Group::Group(const Link& link, const BNNSExtGroupParameters& p) : link_(link), all_shards_(shards_of(p, link)) {
  if (link.size > 1) engine_ = std::make_unique<Engine>(link, p.timeout == 0 ? kTimeout : p.timeout);
  Stream::Options options{{wire_of(p)}, shards(), all_shards_, p.mode == BNNSExtGroupFast, link.size};
  step_ = std::make_unique<Stream>(options);
  options.shards = 1, options.divisor = size();
  ranks_ = std::make_unique<Stream>(options);
}

Group* Group::create(const void* communicator, const BNNSExtGroupParameters* given) {
  const BNNSExtGroupParameters parameters = given ? *given : BNNSExtGroupParameters{};
  if (communicator && !is_mpi_running()) {
    fail_invalid("group: communicator is not NULL, but MPI is not initialized, or finalized");
  }
  if (communicator && *static_cast<const MPI_Comm*>(communicator) == MPI_COMM_NULL) {
    fail_invalid("group: communicator is MPI_COMM_NULL, expected one that this process is in");
  }
  Link link;
  if (communicator || is_mpi_running() || was_started_by_launcher()) {
    if (!is_mpi_running()) start_mpi();
    const double timeout = parameters.timeout > 0 ? parameters.timeout : kTimeout;
    link = make_link(communicator ? *static_cast<const MPI_Comm*>(communicator) : MPI_COMM_WORLD, timeout);
  }
  check_parameters(parameters, link);
  std::unique_ptr<Group> group(new Group(link, parameters));
  group_began();
  std::vector<Record> records;
  for (const uint64_t value : {static_cast<uint64_t>(parameters.mode), static_cast<uint64_t>(group->all_shards_),
                               static_cast<uint64_t>(wire_of(parameters))}) {
    Record record{};
    record.call = Call::create, record.count = value, record.index = static_cast<uint32_t>(records.size());
    records.push_back(record);
  }
  Group* const made = group.release();
  try {
    made->meet(records);
  } catch (const Error&) {
    finalize_failed(made);
    throw;
  }
  return made;
}

// What is under way refers to its memory, and a rank that is gone will never end it: only the thread stops.
void Group::finalize_failed(Group* group) {
  group->alive_ = 0;
  group->engine_->stop();
  group_ended(true);
}

void Group::finalize(Group* group) {
  try {
    group->meet({group->next_call(Call::finalize, 0, 0)});
  } catch (const Error&) {
    finalize_failed(group);
    throw;
  }
  group->alive_ = 0;
  group->engine_.reset();
  if (group->link_.comm != MPI_COMM_NULL) MPI_Comm_free(&group->link_.comm);
  delete group;
  group_ended(false);
}

void Group::meet(std::vector<Record> records) {
  if (!engine_) return;
  Meeting meeting;
  meeting.records = std::move(records);
  engine_->submit(meeting);
  engine_->wait();
}

Record Group::next_call(Call call, size_t detail, size_t arrays) {
  if (engine_) engine_->check_alive();
  Record record{};
  record.number = ++calls_, record.call = call, record.detail = static_cast<uint32_t>(detail);
  record.arrays = static_cast<uint32_t>(arrays);
  return record;
}

void Group::items(size_t batch, size_t shard, size_t* first, size_t* count) const {
  if (shard >= shards()) {
    fail_invalid("group: shard is %zu, expected less than %zu = shards of this rank", shard, shards());
  }
  if (batch % all_shards_ != 0) {
    fail_invalid("group: batch is %zu, expected a multiple of %zu = shards of all ranks", batch, all_shards_);
  }
  *count = batch / all_shards_;
  *first = (rank() * shards() + shard) * *count;
}

void Group::broadcast(size_t root, size_t n, BNNSNDArrayDescriptor* const* arrays) {
  if (root >= size()) fail_invalid("group: root is %zu, expected less than %zu = ranks", root, size());
  const std::vector<Bytes> blocks = bytes_of(n, arrays);
  const Record call = next_call(Call::broadcast, root, n);
  if (!engine_) return;
  size_t total = 0;
  std::vector<Record> records(n == 0 ? 1 : n, call);
  for (size_t i = 0; i < n; ++i) {
    records[i].index = static_cast<uint32_t>(i), records[i].count = blocks[i].count;
    records[i].type = static_cast<uint32_t>(blocks[i].type);
    total += blocks[i].bytes;
  }
  auto operation = std::make_unique<Broadcast>(static_cast<int>(root), total);
  operation->records = std::move(records);
  if (root == rank()) copy_in(blocks, operation->data());
  try {
    engine_->submit(*operation);
    engine_->wait();
  } catch (...) {
    (void)operation.release();  // it may be under way for ever
    throw;
  }
  if (root != rank()) copy_out(operation->data(), blocks);
}

void Group::all_reduce(BNNSExtGroupReduction reduction, size_t n, BNNSNDArrayDescriptor* const* arrays) {
  const std::vector<Values> values = values_of(n, arrays);
  const Reduction how = reduction_of(reduction);
  ranks_->give(engine_.get(), how, 0, values, next_call(Call::all_reduce, reduction, n));
  ranks_->finish(engine_.get());
}

void Group::reduce_start(BNNSExtGroupReduction reduction, size_t shard, size_t n,
                         const BNNSNDArrayDescriptor* const* arrays) {
  const std::vector<Values> values = values_of(n, arrays);
  const Reduction how = reduction_of(reduction);
  step_->give(engine_.get(), how, shard, values, next_call(Call::reduce_start, reduction, n));
  if (engine_) engine_->poll();
}

void Group::reduce_wait() {
  if (engine_) engine_->check_alive();
  step_->finish(engine_.get());
}

void Group::check_started(size_t n, const BNNSNDArrayDescriptor* const* gradients) const {
  if (engine_) engine_->check_alive();
  if (n != 0 && !gradients) fail_invalid("group: gradients is NULL, expected %zu descriptors", n);
  for (size_t i = 0; i < n; ++i) {
    if (gradients[i] && step_->has(gradients[i]->data)) continue;
    fail_invalid("group: gradients[%zu] was not given to BNNSExtGroupReduceStart since the last wait", i);
  }
}

}  // namespace bnns::mpi

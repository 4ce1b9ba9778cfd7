#include "src/mpi/operation.h"

#include <algorithm>

namespace bnns::mpi {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;     // of one message: MPI counts in int
constexpr size_t kSmallBytes = size_t{32} * 1024;  // a block below is not halved

template <BNNSDataType type, Combine how>
void combine_16(void* in, void* inout, int* n, MPI_Datatype*) {
  combine({type}, how, in, inout, inout, static_cast<size_t>(*n));
}

// MPI has no 16-bit floats: operations of our own on their bit patterns.
MPI_Op operation_16(BNNSDataType type, Combine how) {
  static MPI_Op known[2][2] = {{MPI_OP_NULL, MPI_OP_NULL}, {MPI_OP_NULL, MPI_OP_NULL}};
  static MPI_User_function* const functions[2][2] = {
      {combine_16<BNNSDataTypeFloat16, Combine::sum>, combine_16<BNNSDataTypeFloat16, Combine::max>},
      {combine_16<BNNSDataTypeBFloat16, Combine::sum>, combine_16<BNNSDataTypeBFloat16, Combine::max>}};
  const size_t t = type == BNNSDataTypeBFloat16 ? 1 : 0, h = how == Combine::max ? 1 : 0;
  if (known[t][h] == MPI_OP_NULL) check_mpi(MPI_Op_create(functions[t][h], 1, &known[t][h]), "MPI_Op_create");
  return known[t][h];
}

}  // namespace

bool Broadcast::advance(const Link& link, int) {
  if (!begun_) {
    begun_ = true;
    for (size_t first = 0; first < bytes_.size(); first += kMostBytes) {
      const size_t n = std::min(kMostBytes, bytes_.size() - first);
      requests_.push_back(MPI_REQUEST_NULL);
      check_mpi(MPI_Ibcast(bytes_.data() + first, static_cast<int>(n), MPI_BYTE, root_, link.comm, &requests_.back()),
                "MPI_Ibcast", root_);
    }
  }
  int done = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall", root_);
  return done != 0;
}

TreeReduction::TreeReduction(WireType wire, Combine how, int ranks) : wire_(wire), how_(how) {
  for (int reached = 1; reached < ranks; reached *= 2) ++distances_;
}

void TreeReduction::set_block(void* values, void* other, size_t n) {
  values_ = values, other_ = other;
  halves_ = n * wire_.bytes() > kSmallBytes;
  step_ = 0;
  ranges_.assign(1, {0, n});
}

// False when there is no further step.
bool TreeReduction::start_step(const Link& link, int tag) {
  const int steps = halves_ ? 2 * distances_ : distances_;
  if (step_ == steps) return false;
  const int d = step_ < distances_ ? step_ : steps - 1 - step_, partner = link.rank ^ (1 << d);
  const Range range = ranges_.back();
  if (!halves_) {  // all of it, to and fro
    exchange_.start(link, tag, partner, values_, range.end * wire_.bytes(), partner, other_, range.end * wire_.bytes());
    return true;
  }
  if (step_ < distances_) {  // keeps a half, and gives the other to the partner who keeps that
    const size_t middle = range.begin + range.size() / 2;
    const bool left = (link.rank >> d & 1) == 0;
    const Range kept = left ? Range{range.begin, middle} : Range{middle, range.end};
    const Range given = left ? Range{middle, range.end} : Range{range.begin, middle};
    exchange_.start(link, tag, partner, at(values_, given.begin), given.size() * wire_.bytes(), partner,
                    at(other_, kept.begin), kept.size() * wire_.bytes());
    ranges_.push_back(kept);
    return true;
  }
  const Range whole = ranges_[ranges_.size() - 2];  // before the halving that is undone
  const Range missing = range.begin == whole.begin ? Range{range.end, whole.end} : Range{whole.begin, range.begin};
  exchange_.start(link, tag, partner, at(values_, range.begin), range.size() * wire_.bytes(), partner,
                  at(values_, missing.begin), missing.size() * wire_.bytes());
  return true;
}

void TreeReduction::finish_step(const Link& link) {
  if (step_ < distances_) {
    const Range r = ranges_.back();
    void *mine = at(values_, r.begin), *theirs = at(other_, r.begin);
    const bool left = (link.rank >> step_ & 1) == 0;  // the lower rank's sum is the left operand
    combine(wire_, how_, left ? mine : theirs, left ? theirs : mine, mine, r.size());
  } else {
    ranges_.pop_back();
  }
  ++step_;
}

bool TreeReduction::advance(const Link& link, int tag) {
  for (;;) {
    if (!exchange_.is_under_way() && !start_step(link, tag)) return true;
    if (!exchange_.test()) return false;
    finish_step(link);
  }
}

bool FastReduction::advance(const Link& link, int) {
  if (!begun_) {
    begun_ = true;
    const bool is_float = wire_.type == BNNSDataTypeFloat32;
    const MPI_Op op = is_float ? how_ == Combine::max ? MPI_MAX : MPI_SUM : operation_16(wire_.type, how_);
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values_, static_cast<int>(n_), is_float ? MPI_FLOAT : MPI_UINT16_T, op,
                             link.comm, &request_),
              "MPI_Iallreduce");
  }
  int done = 0;
  check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace bnns::mpi

#include "src/ops/arithmetic/arithmetic_operand.h"

#include "src/core/checked.h"
#include "src/ops/arithmetic/arithmetic.h"

namespace bnns::arithmetic {

Space::Space(const Tensor& t, size_t batch_size, bool row_first)
    : order(t), batch(batch_size), sample(t.count), total(checked_mul(batch_size, t.count, "arithmetic: batch_size")) {
  if (!row_first) return;
  size_t kept = 0;
  order.axis[kept++] = 0;
  for (size_t j = 0; j < t.rank; ++j) {
    if (t.axis[j] != 0) order.axis[kept++] = t.axis[j];
  }
}

size_t Placement::bytes() const {
  return batch == 0 ? 0 : ((batch - 1) * batch_stride + tensor->span) * type_bytes(tensor->type);
}

namespace {

// Strides in bytes of the axes that have more than one element, the batch included.
struct Lattice {
  size_t axes = 0, element;
  size_t extent[kMaxRank + 1], stride[kMaxRank + 1];

  explicit Lattice(const Placement& p) : element(type_bytes(p.tensor->type)) {
    for (size_t k = 0; k < p.tensor->rank; ++k) add(p.tensor->size[k], p.tensor->stride[k] * element);
    add(p.batch, p.batch_stride * element);
  }
  void add(size_t n, size_t bytes) {
    if (n > 1) extent[axes] = n, stride[axes++] = bytes;
  }
  // If all elements lie in [k * period, k * period + width) for integers k: that width; else 0.
  size_t width(size_t period) const {
    size_t result = element;
    for (size_t j = 0; j < axes; ++j) {
      if (stride[j] < period)
        result += (extent[j] - 1) * stride[j];
      else if (stride[j] % period != 0)
        return 0;
    }
    return result;
  }
};

}  // namespace

bool share_memory(const Placement& a, const Placement& b) noexcept {
  const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
  if (x + a.bytes() <= y || y + b.bytes() <= x) return false;
  const Lattice la(a), lb(b);
  for (size_t j = 0; j < la.axes; ++j) {
    const size_t period = la.stride[j];
    if (period == 0) continue;
    const size_t wa = la.width(period), wb = lb.width(period);
    const size_t shift = (y % period + period - x % period) % period;  // where b begins inside a's period
    if (wa && wb && shift >= wa && shift + wb <= period) return false;
  }
  return true;
}

bool same_place(const Placement& a, const Placement& b) noexcept {
  if (a.data != b.data || a.tensor->type != b.tensor->type || a.tensor->rank != b.tensor->rank) return false;
  if (a.batch != b.batch || (a.batch > 1 && a.batch_stride != b.batch_stride)) return false;
  for (size_t k = 0; k < a.tensor->rank; ++k) {
    if (a.tensor->size[k] != b.tensor->size[k]) return false;
    if (a.tensor->size[k] > 1 && a.tensor->stride[k] != b.tensor->stride[k]) return false;
  }
  return true;
}

Operand::Operand(const Space& space, const Tensor& t, const void* data, size_t batch_stride)
    : data_(const_cast<void*>(data)),
      type_(t.type),
      sample_(space.sample),
      total_(space.total),
      batch_stride_(batch_stride),
      elements_(t, space.order) {
  // Products of leading extents: as long as elements lie side by side, as long as nothing moves, and the last axis that
  // moves.
  size_t run = 1, still = 1, product = 1;
  bool side_by_side = true, standing = true;
  const auto axis = [&](size_t extent, size_t stride) {
    if (extent == 1) return;
    side_by_side = side_by_side && stride == product;
    standing = standing && stride == 0;
    if (side_by_side) run *= extent;
    if (standing) still *= extent;
    product *= extent;
    if (stride != 0) period_ = product;
  };
  for (size_t j = 0; j < space.order.rank; ++j) {
    const size_t k = space.order.axis[j];
    axis(space.order.size[k], t.size[k] == 1 ? 0 : t.stride[k]);
  }
  axis(space.batch, batch_stride);

  const bool f32 = type_ == BNNSDataTypeFloat32;
  if (f32 && run == total_) {
    access_ = Access::direct;
  } else if (period_ < total_ && period_ <= kBlock) {
    access_ = Access::tiled;
  } else if (f32 && run >= kMinRun) {
    access_ = Access::runs;
    cut_ = run;
  } else if (still >= kMinRun) {
    access_ = Access::filled;
    cut_ = still;
  } else {
    access_ = Access::staged;
  }
  pointer_ = access_ == Access::direct || access_ == Access::runs;
}

void* Operand::sample_at(size_t index) const {
  return element_at(data_, type_, index * batch_stride_);
}

float* Operand::at(size_t first) const {
  if (access_ == Access::direct) return static_cast<float*>(data_) + first;
  return static_cast<float*>(sample_at(first / sample_)) + elements_.offset(first % sample_);
}

void Operand::gather(size_t first, size_t n, float* buffer) const {
  size_t index = first / sample_, begin = first % sample_;
  for (size_t done = 0; done < n; ++index, begin = 0) {
    const size_t m = std::min(n - done, sample_ - begin);
    const float* found = elements_.read(sample_at(index), begin, m, buffer + done);
    if (found != buffer + done) arithmetic_copy(found, buffer + done, m);
    done += m;
  }
}

void Operand::prepare(float* buffer) const {
  if (access_ != Access::tiled) return;
  gather(0, period_, buffer);
  const size_t wanted = period_ - 1 + std::min(kBlock, total_);
  for (size_t done = period_; done < wanted; done *= 2) {
    arithmetic_copy(buffer, buffer + done, std::min(done, wanted - done));
  }
}

const float* Operand::read(size_t first, size_t n, float* buffer) const {
  switch (access_) {
    case Access::direct:
    case Access::runs:
      return at(first);
    case Access::tiled:
      return buffer + first % period_;
    case Access::filled:
      gather(first, 1, buffer);
      arithmetic_fill(buffer[0], buffer, n);
      return buffer;
    case Access::staged:
      break;
  }
  gather(first, n, buffer);
  return buffer;
}

void Operand::write(size_t first, size_t n, const float* values) const {
  if (pointer_) {
    float* to = at(first);
    if (to != values) arithmetic_copy(values, to, n);
    return;
  }
  size_t index = first / sample_, begin = first % sample_;
  for (size_t done = 0; done < n; ++index, begin = 0) {
    const size_t m = std::min(n - done, sample_ - begin);
    void* base = sample_at(index);
    float* to = elements_.target(base, begin, nullptr);
    if (to)
      arithmetic_copy(values + done, to, m);
    else
      elements_.write(base, begin, m, values + done);
    done += m;
  }
}

void Operand::accumulate(size_t first, size_t n, const float* values) const {
  if (pointer_) {
    float* to = at(first);
    const float* const terms[] = {to, values};
    return arithmetic_forward_block(BNNSArithmeticAdd, terms, to, n);
  }
  size_t index = first / sample_, begin = first % sample_;
  for (size_t done = 0; done < n; ++index, begin = 0) {
    const size_t m = std::min(n - done, sample_ - begin);
    elements_.accumulate(sample_at(index), begin, m, values + done);
    done += m;
  }
}

}  // namespace bnns::arithmetic

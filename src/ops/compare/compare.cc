#include "src/ops/compare/compare.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"
#include "src/tensor/overlap.h"
#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

constexpr const char* kOp = "compare";
constexpr size_t kTaskElements = 32 * 1024;

Tensor read_operand(const BNNSNDArrayDescriptor* d, const char* field) {
  const Tensor t = resolve_with_data(d, kOp, field);
  check_plain(t, kOp, field);
  return t;
}

void check_sizes(const Tensor& x, const char* name, const Tensor& y) {
  if (x.rank == y.rank && std::equal(x.size, x.size + x.rank, y.size)) return;
  fail_invalid("%s: %s is %s, expected the sizes of out, %s", kOp, name, x.text().c_str(), y.text().c_str());
}

// An operand's elements in the memory order of y.
Elements in_order_of(const Tensor& x, const Tensor& y) {
  Tensor view = x;
  std::copy_n(y.axis, y.rank, view.axis);
  return Elements(view);
}

__extension__ using Wide = __int128;  // holds both i64 and u64

// Elements [at, at + n) as they are stored.
void load_wide(const Tensor& t, const Elements& order, bool consecutive, size_t at, size_t n, Wide* values) {
  for (size_t i = 0; i < n; ++i) {
    const size_t offset = consecutive ? at + i : order.offset(at + i);
    if (t.is(BNNSDataTypeUInt64)) {
      values[i] = static_cast<const uint64_t*>(t.data)[offset];
    } else {
      values[i] = load_integer(t, t.data, offset);
    }
  }
}

uint8_t compare_integers(BNNSRelationalOperator op, Wide a, Wide b) {
  switch (op) {
    case BNNSRelationalOperatorEqual:
      return a == b;
    case BNNSRelationalOperatorLess:
      return a < b;
    case BNNSRelationalOperatorLessEqual:
      return a <= b;
    case BNNSRelationalOperatorGreater:
      return a > b;
    case BNNSRelationalOperatorGreaterEqual:
      return a >= b;
    default:
      return a != b;
  }
}

// y[i] = a[i] op b[i]; pieces of a fixed length without aliases are vectorised at -O2.
template <class T, class Test>
void compare_row(const T* __restrict a, const T* __restrict b, uint8_t* __restrict y, size_t n, Test test) {
  constexpr size_t kPiece = 64;
  size_t i = 0;
  for (; i + kPiece <= n; i += kPiece) {
    const T* __restrict piece_a = a + i;
    const T* __restrict piece_b = b + i;
    uint8_t* __restrict piece_y = y + i;
    for (size_t k = 0; k < kPiece; ++k) piece_y[k] = test(piece_a[k], piece_b[k]);
  }
  for (; i < n; ++i) y[i] = test(a[i], b[i]);
}
template <class T>
void compare_stored(BNNSRelationalOperator op, const T* a, const T* b, uint8_t* y, size_t n) {
  switch (op) {
    case BNNSRelationalOperatorEqual:
      return compare_row(a, b, y, n, [](T u, T v) -> uint8_t { return u == v; });
    case BNNSRelationalOperatorLess:
      return compare_row(a, b, y, n, [](T u, T v) -> uint8_t { return u < v; });
    case BNNSRelationalOperatorLessEqual:
      return compare_row(a, b, y, n, [](T u, T v) -> uint8_t { return u <= v; });
    case BNNSRelationalOperatorGreater:
      return compare_row(a, b, y, n, [](T u, T v) -> uint8_t { return u > v; });
    case BNNSRelationalOperatorGreaterEqual:
      return compare_row(a, b, y, n, [](T u, T v) -> uint8_t { return u >= v; });
    default:
      return compare_row(a, b, y, n, [](T u, T v) -> uint8_t { return u != v; });
  }
}

}  // namespace

CompareProblem make_compare_problem(const BNNSNDArrayDescriptor* in0, const BNNSNDArrayDescriptor* in1,
                                    BNNSRelationalOperator op, const BNNSNDArrayDescriptor* out) {
  CompareProblem p;
  if (static_cast<unsigned>(op) > BNNSRelationalOperatorLogicalXOR) {
    fail_invalid("%s: op is %s", kOp, enum_text(op).text);
  }
  p.op = op;
  p.x0 = read_operand(in0, "in0");
  p.x1 = op == BNNSRelationalOperatorLogicalNOT ? p.x0 : read_operand(in1, "in1");
  p.y = read_operand(out, "out");
  check_distinct(p.y, kOp, "out");
  if (!p.y.is(BNNSDataTypeBoolean)) {
    fail_invalid("%s: out has type %s, expected bool", kOp, type_name(p.y.type));
  }
  check_sizes(p.x0, "in0", p.y);
  check_sizes(p.x1, "in1", p.y);
  check_in_place_or_apart({p.x0, p.x0.data, 0, "in0"}, {p.y, p.y.data, 0, "out"}, 1, kOp);
  check_in_place_or_apart({p.x1, p.x1.data, 0, "in1"}, {p.y, p.y.data, 0, "out"}, 1, kOp);
  // f32 holds integers of up to 16 bits; wider ones of one meaning need no conversion.
  const bool wide = type_bits(p.x0.type) > 16 || type_bits(p.x1.type) > 16;
  const bool comparable = is_integer(p.x0.type) && is_integer(p.x1.type) && p.x0.scale == p.x1.scale &&
                          p.x0.scale > 0 && p.x0.bias == p.x1.bias && op <= BNNSRelationalOperatorNotEqual;
  p.exact_integers = wide && comparable;
  // With a scale of 1 no two narrow integers become one f32.
  p.as_stored = comparable && p.x0.type == p.x1.type && (wide || (p.x0.scale == 1 && p.x0.bias == 0));
  return p;
}

std::string CompareProblem::text() const {
  return std::string(kOp) + " " + x0.text() + " and " + x1.text() + " op " + std::to_string(static_cast<unsigned>(op));
}

void compare_tensors(const CompareProblem& p) {
  const Elements x0 = in_order_of(p.x0, p.y), x1 = in_order_of(p.x1, p.y), y(p.y);
  const size_t count = p.y.count, tasks = div_up(count, kTaskElements);
  const bool dense = p.y.dense;
  const bool consecutive0 = p.x0.dense && std::equal(p.x0.axis, p.x0.axis + p.x0.rank, p.y.axis);
  const bool consecutive1 = p.x1.dense && std::equal(p.x1.axis, p.x1.axis + p.x1.rank, p.y.axis);
  const bool in_place = p.x0.data == p.y.data || p.x1.data == p.y.data;
  if (p.as_stored && dense && consecutive0 && consecutive1 && !in_place) {
    return parallel_for(tasks, threads_for(0, tasks, 2 * count), [&](size_t task, size_t) {
      const size_t at = task * kTaskElements, n = std::min(kTaskElements, count - at);
      with_integer(p.x0.type, [&](auto t) {
        using T = decltype(t);
        compare_stored(p.op, static_cast<const T*>(p.x0.data) + at, static_cast<const T*>(p.x1.data) + at,
                       static_cast<uint8_t*>(p.y.data) + at, n);
      });
    });
  }
  parallel_for(tasks, threads_for(0, tasks, 2 * count), [&](size_t task, size_t) {
    float buffer0[kBlock], buffer1[kBlock];
    uint8_t result[kBlock];
    const size_t end = std::min(count, (task + 1) * kTaskElements);
    for (size_t at = task * kTaskElements; at < end; at += kBlock) {
      const size_t n = std::min(kBlock, end - at);
      uint8_t* to = dense ? static_cast<uint8_t*>(p.y.data) + at : result;
      if (p.exact_integers) {
        Wide a[kBlock], b[kBlock];
        load_wide(p.x0, x0, consecutive0, at, n, a);
        load_wide(p.x1, x1, consecutive1, at, n, b);
        for (size_t i = 0; i < n; ++i) to[i] = compare_integers(p.op, a[i], b[i]);
      } else {
        compare_floats(p.op, x0.read(p.x0.data, at, n, buffer0), x1.read(p.x1.data, at, n, buffer1), to, n);
      }
      for (size_t i = 0; i < n && !dense; ++i) static_cast<uint8_t*>(p.y.data)[y.offset(at + i)] = result[i];
    }
  });
}

}  // namespace bnns

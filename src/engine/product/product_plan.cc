// Cuts a product into steps. A tensor is brought into scratch first where the GEMM core cannot read it well:
//   - an index that only this operand has: it is summed before the product, not in it
//   - integers: converted once
//   - the fastest index is one over which products are repeated (ImageCHW matrices): a product would read one element
//     of every cache line
// and a result is computed in scratch where it has indices that no operand has (the result is repeated along them), or
// where its fastest index is one of repetition.

#include "src/engine/product/product_plan.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "src/core/checked.h"
#include "src/core/memory.h"

namespace bnns::detail {
namespace {

constexpr size_t kSmallCount = 4096;  // elements: a tensor that fits in L1 may be read in any order

// Bits of the sides that have an index.
unsigned sides_of(const ProductAxis& a) {
  return (a.stride[kSideA] ? 1u : 0u) | (a.stride[kSideB] ? 2u : 0u) | (a.stride[kSideC] ? 4u : 0u);
}
constexpr unsigned kOnlyA = 1, kOnlyB = 2, kOnlyC = 4, kAll = 7, kAB = 3, kAC = 5, kBC = 6;

bool any(const AxisList& axes, unsigned sides) {
  for (size_t i = 0; i < axes.n; ++i) {
    if (sides_of(axes.axis[i]) == sides) return true;
  }
  return false;
}

// Whether products that are worth a call of gemm are repeated along the fastest index of a side. Smaller ones run along
// that index anyway (product_elements.cc).
bool repeats_fastest(const AxisList& axes, ProductSide side) {
  size_t count = 1, work = 1;
  bool fastest = false, matrix = false;
  for (size_t i = 0; i < axes.n; ++i) {
    const ProductAxis& a = axes.axis[i];
    const bool repeats = sides_of(a) == kAll;
    if (!repeats) work *= a.extent;
    if (!a.stride[side]) continue;
    count *= a.extent;
    fastest = fastest || (repeats && a.stride[side] == 1);
    matrix = matrix || !repeats;
  }
  return fastest && matrix && count > kSmallCount && work > kElementWork;
}

class Planner {
 public:
  explicit Planner(ProductPlan* plan) : plan_(*plan) {}

  // C (=|+=) alpha * sum of A
  void reduce(const ProductView& a, const ProductView& c, AxisList axes, float alpha, bool accumulate) {
    if (any(axes, kOnlyA)) {
      const bool converted = is_product_float(a);
      if (converted && !any(axes, kOnlyC)) {
        return add(ProductStep::Kind::multiply, {a, {}, c}, axes, alpha, accumulate);
      }
      const ProductView temp = converted ? staged(kSideA, a, &axes, {kAC}) : staged(kSideA, a, &axes, {kAC, kOnlyA});
      return reduce(temp, c, axes, alpha, accumulate);
    }
    // A scaled copy goes through scratch in the order of C.
    const ProductView source = alpha != 1 && !a.is_temp() ? staged(kSideA, a, &axes, {kAC}) : a;
    add(ProductStep::Kind::copy, {source, {}, c}, axes, alpha, accumulate);
  }

  // C (=|+=) alpha * sum of A B
  void multiply(ProductView a, ProductView b, const ProductView& c, AxisList axes, float alpha, bool accumulate) {
    if (any(axes, kOnlyC) || repeats_fastest(axes, kSideC)) {
      AxisList inner = axes;
      const ProductView temp = reserve(kSideC, &inner, {kBC, kAC, kAll});
      AxisList out = axes;  // temp takes the place of A
      for (size_t i = 0; i < out.n; ++i) {
        out.axis[i].stride[kSideA] = inner.axis[i].stride[kSideC];
        out.axis[i].stride[kSideB] = 0;
      }
      drop_unused(&inner);
      multiply(a, b, temp, inner, 1, false);
      drop_unused(&out);
      return reduce(temp, c, out, alpha, accumulate);
    }
    if (!is_product_float(a) || any(axes, kOnlyA) || repeats_fastest(axes, kSideA)) {
      a = staged(kSideA, a, &axes, {kAB, kAC, kAll});
    }
    if (!is_product_float(b) || any(axes, kOnlyB) || repeats_fastest(axes, kSideB)) {
      b = staged(kSideB, b, &axes, {kBC, kAB, kAll});
    }
    add(ProductStep::Kind::multiply, {a, b, c}, axes, alpha, accumulate, true);
  }

 private:
  // A dense f32 block for the axes of a side, fastest first in the order of `classes`; sets their strides. Axes of
  // other classes are not kept: their stride becomes 0.
  ProductView reserve(ProductSide side, AxisList* axes, std::initializer_list<unsigned> classes) {
    size_t stride[kMaxIndices] = {}, count = 1;
    for (const unsigned wanted : classes) {
      // Within a class in the order of another tensor that has these axes, so that they fuse.
      const ProductSide other = side == kSideC  ? (wanted & 1 ? kSideA : kSideB)
                                : (wanted & 4)  ? kSideC
                                : wanted == kAB ? (side == kSideA ? kSideB : kSideA)
                                                : side;
      size_t order[kMaxIndices], n = 0;
      for (size_t i = 0; i < axes->n; ++i) {
        if (sides_of(axes->axis[i]) == wanted) order[n++] = i;
      }
      std::sort(order, order + n,
                [&](size_t x, size_t y) { return axes->axis[x].stride[other] < axes->axis[y].stride[other]; });
      for (size_t i = 0; i < n; ++i) {
        stride[order[i]] = count;
        count = checked_mul(count, axes->axis[order[i]].extent, "scratch of the product");
      }
    }
    for (size_t i = 0; i < axes->n; ++i) axes->axis[i].stride[side] = stride[i];
    ProductView view;
    view.temp = 1 + plan_.temp_bytes;
    plan_.temp_bytes =
        checked_add(plan_.temp_bytes, round_up(checked_mul(count, sizeof(float), "scratch of the product"), kAlignment),
                    "scratch of the product");
    return view;
  }

  static void drop_unused(AxisList* axes) {
    size_t n = 0;
    for (size_t i = 0; i < axes->n; ++i) {
      if (sides_of(axes->axis[i])) axes->axis[n++] = axes->axis[i];
    }
    axes->n = n;
  }

  // Brings an operand into scratch with the axes of `classes` only: the others of its axes are summed.
  ProductView staged(ProductSide side, const ProductView& v, AxisList* axes, std::initializer_list<unsigned> classes) {
    AxisList before = *axes;
    const ProductView temp = reserve(side, axes, classes);
    AxisList move;
    for (size_t i = 0; i < axes->n; ++i) {
      const ProductAxis a{before.axis[i].extent, {before.axis[i].stride[side], 0, axes->axis[i].stride[side]}};
      if (a.stride[kSideA]) move.add(a);
    }
    drop_unused(axes);
    reduce(v, temp, move, 1, false);
    return temp;
  }

  void add(ProductStep::Kind kind, const ProductView (&views)[kSides], const AxisList& axes, float alpha,
           bool accumulate, bool has_b = false) {
    if (plan_.steps == ProductPlan::kMaxSteps) fail_unsupported("product: more than %zu steps", ProductPlan::kMaxSteps);
    ProductStep& s = plan_.step[plan_.steps++];
    s.kind = kind;
    std::copy(views, views + kSides, s.view);
    s.has_b = has_b;
    s.axes = axes;
    s.alpha = alpha;
    s.accumulate = accumulate;
  }

  ProductPlan& plan_;
};

ProductView view_of(const IndexedTensor& t) {
  ProductView v;
  v.tensor = t.tensor;
  v.data = static_cast<char*>(const_cast<void*>(t.data));
  return v;
}

AxisList axes_of(const Product& p) {
  AxisList axes;
  for (size_t i = 0; i < p.indices; ++i) {
    const ProductAxis axis{p.extent[i], {p.a.stride[i], p.b.tensor ? p.b.stride[i] : 0, p.c.stride[i]}};
    if (axis.extent != 1 && sides_of(axis) != 0) axes.add(axis);
  }
  return axes;
}

}  // namespace

void AxisList::sort(ProductSide side) {
  std::sort(axis, axis + n, [side](const ProductAxis& x, const ProductAxis& y) {
    return std::pair(x.stride[side], x.extent) < std::pair(y.stride[side], y.extent);
  });
}

void AxisList::fuse() {
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    ProductAxis* last = kept ? &axis[kept - 1] : nullptr;
    bool one = last != nullptr;
    for (size_t s = 0; s < kSides && one; ++s) one = axis[i].stride[s] == last->stride[s] * last->extent;
    if (one) {
      last->extent *= axis[i].extent;
    } else {
      axis[kept++] = axis[i];
    }
  }
  n = kept;
}

void make_product_plan(const Product& p, ProductPlan* plan) {
  Planner planner(plan);
  if (p.b.tensor) {
    planner.multiply(view_of(p.a), view_of(p.b), view_of(p.c), axes_of(p), p.alpha, p.accumulate);
  } else {
    planner.reduce(view_of(p.a), view_of(p.c), axes_of(p), p.alpha, p.accumulate);
  }
}

}  // namespace bnns::detail

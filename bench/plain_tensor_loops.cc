#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/plain_loops.h"

namespace bnns::bench::loops {
namespace {

// A shape as five axes, the missing ones of extent 1 in front, and elements from index to index along each.
struct Five {
  size_t size[5] = {1, 1, 1, 1, 1}, step[5] = {};
  explicit Five(const Shape& shape) {
    for (size_t k = 0; k < shape.size(); ++k) size[5 - shape.size() + k] = shape[k];
    for (size_t k = 5, product = 1; k-- > 0; product *= size[k]) step[k] = product;
  }
};
// Calls each(position in a, position in b) for every index of size[], with the steps of a and b.
template <class Each>
inline void walk(const size_t (&size)[5], const size_t (&a)[5], const size_t (&b)[5], Each each) {
  for (size_t i = 0; i < size[0]; ++i) {
    for (size_t j = 0; j < size[1]; ++j) {
      for (size_t k = 0; k < size[2]; ++k) {
        for (size_t l = 0; l < size[3]; ++l) {
          const size_t at = i * a[0] + j * a[1] + k * a[2] + l * a[3], to = i * b[0] + j * b[1] + k * b[2] + l * b[3];
          for (size_t m = 0; m < size[4]; ++m) each(at + m * a[4], to + m * b[4]);
        }
      }
    }
  }
}
size_t count(const Shape& shape) {
  size_t n = 1;
  for (const size_t s : shape) n *= s;
  return n;
}

struct Reduced {
  Five in, out;
  Reduced(const Shape& shape, size_t mask) : in(shape), out(shape) {
    for (size_t k = 0; k < shape.size(); ++k) {
      if (mask >> k & 1) out.size[5 - shape.size() + k] = 1;
    }
    for (size_t k = 5, product = 1; k-- > 0; product *= out.size[k]) out.step[k] = out.size[k] == 1 ? 0 : product;
  }
  size_t outputs() const {
    size_t n = 1;
    for (const size_t s : out.size) n *= s;
    return n;
  }
  size_t inputs() const { return in.step[0] * in.size[0]; }
};

}  // namespace

void reduction(const Shape& shape, size_t mask, const char* what, const float* x, float* y) {
  const Reduced r(shape, mask);
  const bool maximum = std::strcmp(what, "max") == 0;
  std::fill_n(y, r.outputs(), maximum ? -INFINITY : 0.0f);
  if (maximum) {
    walk(r.in.size, r.in.step, r.out.step, [&](size_t i, size_t o) { y[o] = x[i] > y[o] ? x[i] : y[o]; });
  } else {
    walk(r.in.size, r.in.step, r.out.step, [&](size_t i, size_t o) { y[o] += x[i]; });
  }
  const float share = std::strcmp(what, "mean") == 0 ? float(r.outputs()) / float(r.inputs()) : 1;
  for (size_t o = 0; share != 1 && o < r.outputs(); ++o) y[o] *= share;
}

void reduction_gradient(const Shape& shape, size_t mask, const char* what, const float* dy, float* dx) {
  const Reduced r(shape, mask);
  const float share = std::strcmp(what, "mean") == 0 ? float(r.outputs()) / float(r.inputs()) : 1;
  walk(r.in.size, r.in.step, r.out.step, [&](size_t i, size_t o) { dx[i] = share * dy[o]; });
}

void padding(const Shape& in, const Shape& out, const Shape& before, int mode, bool backward, const float* from,
             float* to) {
  const Five i(in), o(out);
  if (backward) std::fill_n(to, count(in), 0.0f);
  size_t pad[5] = {}, at[5];
  for (size_t k = 0; k < in.size(); ++k) pad[5 - in.size() + k] = before[k];
  const auto source = [&](size_t k, size_t position) {  // the input's index on axis k, or a number past its extent
    const auto n = ptrdiff_t(i.size[k]);
    auto p = ptrdiff_t(position) - ptrdiff_t(pad[k]);
    if (mode == 1) p = p < 0 ? -p : p >= n ? 2 * n - 2 - p : p;
    if (mode == 2) p = p < 0 ? -p - 1 : p >= n ? 2 * n - 1 - p : p;
    return size_t(p);
  };
  for (size_t a = 0; a < o.size[0]; ++a) {
    at[0] = source(0, a);
    for (size_t b = 0; b < o.size[1]; ++b) {
      at[1] = source(1, b);
      for (size_t c = 0; c < o.size[2]; ++c) {
        at[2] = source(2, c);
        for (size_t d = 0; d < o.size[3]; ++d) {
          at[3] = source(3, d);
          const bool inside = at[0] < i.size[0] && at[1] < i.size[1] && at[2] < i.size[2] && at[3] < i.size[3];
          const size_t row = at[0] * i.step[0] + at[1] * i.step[1] + at[2] * i.step[2] + at[3] * i.step[3];
          const size_t target = a * o.step[0] + b * o.step[1] + c * o.step[2] + d * o.step[3];
          for (size_t e = 0; e < o.size[4]; ++e) {
            at[4] = source(4, e);
            const bool meets = inside && at[4] < i.size[4];
            if (backward && meets) to[row + at[4]] += from[target + e];
            if (!backward) to[target + e] = meets ? from[row + at[4]] : 0;
          }
        }
      }
    }
  }
}

void resize(const Shape& in, const Shape& out, int op, bool backward, const float* from, float* to) {
  const size_t planes = in[0] * in[1], h = in[2], w = in[3], oh = out[2], ow = out[3];
  if (backward) std::fill_n(to, count(in), 0.0f);
  struct Point {
    size_t low, high;
    float share;
  };
  const auto point = [&](size_t i, size_t n, size_t m) -> Point {
    if (op == 0) return {i * n / m, i * n / m, 0};
    double p = op == 2 ? (m > 1 ? double(i) * double(n - 1) / double(m - 1) : 0)
                       : (double(i) + 0.5) * double(n) / double(m) - 0.5;
    p = std::clamp(p, 0.0, double(n - 1));
    const auto low = size_t(p);
    return {low, std::min(low + 1, n - 1), float(p - double(low))};
  };
  for (size_t plane = 0; plane < planes; ++plane) {
    for (size_t y = 0; y < oh; ++y) {
      const Point v = point(y, h, oh);
      for (size_t x = 0; x < ow; ++x) {
        const Point u = point(x, w, ow);
        const size_t o = (plane * oh + y) * ow + x, top = (plane * h + v.low) * w, bottom = (plane * h + v.high) * w;
        if (backward) {
          to[top + u.low] += (1 - v.share) * (1 - u.share) * from[o];
          to[top + u.high] += (1 - v.share) * u.share * from[o];
          to[bottom + u.low] += v.share * (1 - u.share) * from[o];
          to[bottom + u.high] += v.share * u.share * from[o];
        } else {
          const float above = from[top + u.low] + u.share * (from[top + u.high] - from[top + u.low]);
          const float below = from[bottom + u.low] + u.share * (from[bottom + u.high] - from[bottom + u.low]);
          to[o] = above + v.share * (below - above);
        }
      }
    }
  }
}

void permute(const Shape& in, const Shape& order, bool backward, const float* from, float* to) {
  const Five i(in);
  Shape out;
  for (const size_t axis : order) out.push_back(in[axis]);
  const Five o(out);
  size_t step[5] = {};  // of the input, in the order of the output
  for (size_t k = 0; k < order.size(); ++k) step[5 - order.size() + k] = i.step[5 - in.size() + order[k]];
  if (backward)
    walk(o.size, step, o.step, [&](size_t a, size_t b) { to[a] = from[b]; });
  else
    walk(o.size, step, o.step, [&](size_t a, size_t b) { to[b] = from[a]; });
}

void tile(const Shape& in, const Shape& out, bool backward, const float* from, float* to) {
  const Five i(in), o(out);
  if (backward) std::fill_n(to, count(in), 0.0f);
  for (size_t a = 0; a < o.size[0]; ++a) {
    for (size_t b = 0; b < o.size[1]; ++b) {
      for (size_t c = 0; c < o.size[2]; ++c) {
        for (size_t d = 0; d < o.size[3]; ++d) {
          const size_t at = a % i.size[0] * i.step[0] + b % i.size[1] * i.step[1] + c % i.size[2] * i.step[2] +
                            d % i.size[3] * i.step[3];
          const size_t target = a * o.step[0] + b * o.step[1] + c * o.step[2] + d * o.step[3];
          for (size_t e = 0, s = 0; e < o.size[4]; ++e, s = s + 1 == i.size[4] ? 0 : s + 1) {
            if (backward)
              to[at + s] += from[target + e];
            else
              to[target + e] = from[at + s];
          }
        }
      }
    }
  }
}

void embedding_gradient(size_t items, size_t columns, size_t n, const uint64_t* index, const float* dy, float* dw) {
  std::fill_n(dw, items * columns, 0.0f);
  for (size_t k = 0; k < n; ++k) {
    for (size_t c = 0; c < columns; ++c) dw[index[k] * columns + c] += dy[k * columns + c];
  }
}

void gather(size_t outer, size_t size, size_t inner, size_t n, const uint64_t* index, const float* x, float* y) {
  for (size_t o = 0; o < outer; ++o) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < inner; ++i) y[(o * n + k) * inner + i] = x[(o * size + index[k]) * inner + i];
    }
  }
}

void scatter(size_t outer, size_t size, size_t inner, size_t n, const uint64_t* index, bool add, const float* x,
             float* y) {
  for (size_t o = 0; o < outer; ++o) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < inner; ++i) {
        float& to = y[(o * size + index[k]) * inner + i];
        to = add ? to + x[(o * n + k) * inner + i] : x[(o * n + k) * inner + i];
      }
    }
  }
}

void index_vectors(size_t size, size_t inner, size_t n, const uint64_t* index, bool add, const float* x, float* y) {
  for (size_t k = 0; k < n; ++k) {
    const size_t at = (index[2 * k] * size + index[2 * k + 1]) * inner;
    for (size_t i = 0; i < inner; ++i) {
      if (add)
        y[at + i] += x[k * inner + i];
      else
        y[k * inner + i] = x[at + i];
    }
  }
}

void topk(size_t lines, size_t n, size_t k, bool rows, const float* x, float* y, uint64_t* index) {
  std::vector<std::pair<float, size_t>> line(n);
  for (size_t l = 0; l < lines; ++l) {
    for (size_t i = 0; i < n; ++i) line[i] = {rows ? x[l * n + i] : x[i * lines + l], i};
    std::partial_sort(line.begin(), line.begin() + ptrdiff_t(k), line.end(), [](const auto& a, const auto& b) {
      return a.first > b.first || (a.first == b.first && a.second < b.second);
    });
    for (size_t i = 0; i < k; ++i) {
      const size_t to = rows ? l * k + i : i * lines + l;
      y[to] = line[i].first, index[to] = line[i].second;
    }
  }
}

}  // namespace bnns::bench::loops

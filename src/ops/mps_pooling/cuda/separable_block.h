// What a block of the separable kernels does, for host and device alike: the machine without a GPU tests the lines that
// the GPU runs (tests/mps_pooling_separable_test.cc). A block owns a strip of target columns and walks down its rows,
// some rows of windows at a step, in phases between which its threads meet:
//
//   columns   each source column is reduced over the rows of a window: its maximum and the tap that holds it, or a sum
//   windows   each window is reduced over those columns. Forward that is the result. A gradient keeps what the window
//             sends (G, G / N, G / norm) and, of a maximum, the column that takes it: its route
//   parts     each target column adds up, from left to right, what one row of windows sends to it
//   targets   each target pixel adds up, from above, the parts of the rows of windows that reach it
//
// This is the order of the plain loops, a sum per row of windows first. For maxima it works because all windows of a
// row that choose a column choose the same pixel of it: its first maximum, among the same rows. So a route is a column,
// and the row is the column's. Sums of a forward pass and of norms go by columns first and differ by a few ulp.
#pragma once

#include "src/ops/mps_pooling/cuda/separable_axis.h"

namespace bnns::mps {

// ---- a block --------------------------------------------------------------------------------------------------------

// Images: source(p), gradient(p), target(p) are plane p of the block; read_source(plane, y, x), read_gradient, write.
template <PoolKind kKind, bool kBackward, class Images>
class SeparableBlock {
  static constexpr bool kRoutes = kBackward && kKind == PoolKind::max;
  static constexpr int kAhead = kRoutes ? 4 : 8;  // texels that are read before the first is used
  static constexpr bool kColumns = !(kBackward && kKind == PoolKind::average);

 public:
  BNNS_HOST_DEVICE SeparableBlock(const Separable& plan, const Images& block_images, char* memory, int32_t strip,
                                  int32_t chunk, int32_t plane_count)
      : e(plan), images(block_images), planes(plane_count) {
    columns = reinterpret_cast<Texel*>(memory), sent = reinterpret_cast<Texel*>(memory + e.sent_at);
    parts = reinterpret_cast<Texel*>(memory + e.parts_at);
    taps = reinterpret_cast<uint32_t*>(memory + e.taps_at), routes = reinterpret_cast<uint32_t*>(memory + e.routes_at);
    const int32_t x = strip * e.x.tile, y = chunk * e.y.tile;
    x_count = least(e.x.tile, e.x.count - x), y_count = least(e.y.tile, e.y.count - y);
    x_begin = e.x.source + x, y_begin = e.y.source + y;  // pixels; forward: windows
    if constexpr (kBackward) {
      // Pixels beyond the source get zeros.
      x_end = least(x_begin + x_count, e.x.size), y_end = least(y_begin + y_count, e.y.size);
      across = down = {0, -1};
      if (x_begin < x_end && y_begin < y_end) {
        across = {windows_on(x_begin, e.x, edges()).first, windows_on(x_end - 1, e.x, edges()).last};
        down = {windows_on(y_begin, e.y, edges()).first, windows_on(y_end - 1, e.y, edges()).last};
      }
    } else {
      across = {x_begin, x_begin + x_count - 1}, down = {y_begin, y_begin + y_count - 1};
    }
    column_begin = into(e.x.first + e.x.stride * across.first, e.x);
    column_count = into(e.x.first + e.x.stride * across.last + e.x.extent - 1, e.x) + 1 - column_begin;
    if (across.last < across.first) column_count = 0;
    by_columns = Divisor::of(column_count), by_windows = Divisor::of(across.last - across.first + 1);
    if constexpr (kBackward) by_pixels = Divisor::of(x_end - x_begin), by_targets = Divisor::of(x_count);
  }

  // team.each(f) calls f(thread, threads) on every thread, and returns when all are done.
  template <class Team>
  BNNS_HOST_DEVICE void run(Team&& team) {
    const int32_t step = e.groups * kSeparableRows;
    int32_t y = y_begin;
    row_now = down.first, slot_now = 0;
    for (int32_t w = down.first; w <= down.last; w += step) {
      const int32_t end = least(w + step, down.last + 1);
      if constexpr (kColumns) team.each([&](int32_t t, int32_t n) { reduce_columns(t, n, w, end); });
      team.each([&](int32_t t, int32_t n) { reduce_windows(t, n, w, end); });
      if constexpr (kBackward) {
        // Rows above the first that a later window reaches.
        int32_t done = end > down.last ? y_begin + y_count : least(y_end, most(y, e.y.first + e.y.stride * end));
        if (edges() && end <= down.last) done = least(done, e.y.size - 1);
        done = most(done, y);
        team.each([&](int32_t t, int32_t n) { gather_parts(t, n, w, end); });
        team.each([&](int32_t t, int32_t n) { gather_targets(t, n, y, done); });
        y = done;
        slot_now = slot_of(w + step), row_now = w + step;
      }
    }
    if constexpr (kBackward) {
      if (y < y_begin + y_count) {
        team.each([&](int32_t t, int32_t n) { gather_targets(t, n, y, y_begin + y_count); });
      }
    }
  }

 private:
  // Averages have no taps outside.
  BNNS_HOST_DEVICE bool edges() const { return kKind != PoolKind::average && e.clamp; }
  BNNS_HOST_DEVICE int32_t slot_of(int32_t w) const {
    const int32_t slot = slot_now + w - row_now;
    return slot < 0 ? slot + e.ring : slot >= e.ring ? slot - e.ring : slot;
  }

  using Column = SeparableColumn<kKind, kRoutes>;

  BNNS_HOST_DEVICE void reduce_columns(int32_t thread, int32_t threads, int32_t first, int32_t end) {
    const SeparableAxis& a = e.y;
    for (int32_t id = thread; id < planes * e.groups * column_count; id += threads) {
      const int32_t rest = by_columns.divide(id), column = id - rest * column_count, p = rest / e.groups;
      const int32_t row = (rest - p * e.groups) * kSeparableRows, w = first + row, rows = end - w;
      const int32_t x = column_begin + column;
      const Windows reached = windows_on(x, e.x, edges());
      if (rows <= 0 || reached.first > reached.last) continue;  // between two windows
      const auto source = images.source(p);
      const int32_t fy = a.first + a.stride * w;
      Column c[kSeparableRows];
      BNNS_UNROLL()
      for (int r = 0; r < kSeparableRows; ++r) c[r].begin();
      if (a.dilation == 1 && 2 * a.stride <= a.kernel) {
        // Windows overlap: each pixel is read once and meets the windows that hold it.
        const int32_t span = a.stride * (least(rows, kSeparableRows) - 1) + a.kernel;
        const int32_t j_begin = edges() ? 0 : most(0, -fy), j_end = edges() ? span : least(span, a.size - fy);
        for (int32_t j = j_begin; j < j_end; j += kAhead) {
          Texel t[kAhead];
          BNNS_UNROLL()
          for (int k = 0; k < kAhead; ++k) t[k] = images.read_source(source, into(fy + least(j + k, j_end - 1), a), x);
          BNNS_UNROLL()
          for (int k = 0; k < kAhead; ++k) {
            if (j + k >= j_end) break;
            BNNS_UNROLL()
            for (int r = 0; r < kSeparableRows; ++r) {
              const int32_t i = j + k - a.stride * r;
              if (static_cast<uint32_t>(i) < static_cast<uint32_t>(a.kernel)) c[r].take(t[k], i);
            }
          }
        }
      } else {
        BNNS_UNROLL()
        for (int r = 0; r < kSeparableRows; ++r) {
          const Inside inside = edges() ? Inside{0, a.kernel} : taps_inside(fy + a.stride * r, a);
          for (int32_t i = inside.begin; i < inside.end && r < rows; i += kAhead) {
            Texel t[kAhead];
            BNNS_UNROLL()
            for (int k = 0; k < kAhead; ++k) {
              const int32_t y = fy + a.stride * r + a.dilation * least(i + k, inside.end - 1);
              t[k] = images.read_source(source, into(y, a), x);
            }
            BNNS_UNROLL()
            for (int k = 0; k < kAhead; ++k) {
              if (i + k < inside.end) c[r].take(t[k], i + k);
            }
          }
        }
      }
      BNNS_UNROLL()
      for (int r = 0; r < kSeparableRows; ++r) {
        if (r >= rows) break;
        if constexpr (kRoutes) {
          if (((c[r].tap[0] | c[r].tap[1] | c[r].tap[2] | c[r].tap[3]) & kNoByte) == kNoByte) {
            find_lost(c[r], source, fy + a.stride * r, x);
          }
          taps[(p * e.ring + slot_of(w + r)) * e.columns + column] =
              c[r].tap[0] | c[r].tap[1] << 8 | c[r].tap[2] << 16 | c[r].tap[3] << 24;
        }
        columns[(p * e.groups * kSeparableRows + row + r) * e.columns + column] = c[r].v;
      }
    }
  }

  // Where no tap is greater than -inf: the first one that is -inf, else the first, which is NaN.
  template <class Plane>
  BNNS_HOST_DEVICE void find_lost(Column& c, const Plane& source, int32_t fy, int32_t x) const {
    const Inside inside = edges() ? Inside{0, e.y.kernel} : taps_inside(fy, e.y);
    for (int l = 0; l < 4; ++l) {
      if (c.tap[l] != kNoByte || inside.begin == inside.end) continue;
      for (int32_t i = inside.begin; i < inside.end && c.tap[l] == kNoByte; ++i) {
        if (images.read_source(source, into(fy + e.y.dilation * i, e.y), x).v[l] == -infinity()) {
          c.tap[l] = static_cast<uint32_t>(i);
        }
      }
      if (c.tap[l] == kNoByte) c.v.v[l] = not_a_number(), c.tap[l] = static_cast<uint32_t>(inside.begin);
    }
  }

  BNNS_HOST_DEVICE void reduce_windows(int32_t thread, int32_t threads, int32_t first, int32_t end) {
    const int32_t width = across.last - across.first + 1, rows = end - first;
    for (int32_t id = thread; id < planes * rows * width; id += threads) {
      const int32_t rest = by_windows.divide(id), column = id - rest * width;
      const int32_t p = planes == 1 ? 0 : rest / rows, row = rest - p * rows;
      const int32_t wx = across.first + column, wy = first + row;
      const int32_t fx = e.x.first + e.x.stride * wx, fy = e.y.first + e.y.stride * wy;
      const int32_t line = p * e.groups * kSeparableRows + row;
      Texel g = {{0, 0, 0, 0}};
      if constexpr (kBackward) g = images.read_gradient(images.gradient(p), e.y.gradient + wy, e.x.gradient + wx);
      const Inside inside = edges() ? Inside{0, e.x.kernel} : taps_inside(fx, e.x);
      const Texel* const from = columns + line * e.columns;
      if constexpr (kRoutes) {
        const uint32_t* const from_taps = taps + (p * e.ring + slot_of(wy)) * e.columns;
        routes[line * e.windows + column] = route_of(from, from_taps, fx, fy, inside);
      } else if constexpr (kColumns) {
        Texel r;
        for (int l = 0; l < 4; ++l) r.v[l] = kKind == PoolKind::max ? not_a_number() : 0.0f;
        BNNS_UNROLL(4)
        for (int32_t i = inside.begin; i < inside.end; ++i) {
          const Texel t = from[into(fx + e.x.dilation * i, e.x) - column_begin];
          for (int l = 0; l < 4; ++l) r.v[l] = kKind == PoolKind::max ? greater(r.v[l], t.v[l]) : r.v[l] + t.v[l];
        }
        if constexpr (kBackward) {
          for (int l = 0; l < 4; ++l) g.v[l] = r.v[l] == 0.0f ? 0.0f : g.v[l] / root(r.v[l]);
        } else {
          images.write(images.target(p), e.y.target + wy, e.x.target + wx, result_of(r, fx, fy));
        }
      } else {
        const int32_t n = divisor_on(fy, e.y, e.clamp) * divisor_on(fx, e.x, e.clamp);
        const float share = n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
        for (int l = 0; l < 4; ++l) g.v[l] *= share;
      }
      if constexpr (kBackward) sent[line * e.windows + column] = g;
    }
  }

  BNNS_HOST_DEVICE Texel result_of(Texel r, int32_t fx, int32_t fy) const {
    if constexpr (kKind == PoolKind::max) {
      if (!e.clamp && (overhangs(fx, e.x) || overhangs(fy, e.y))) {
        for (int l = 0; l < 4; ++l) r.v[l] = r.v[l] >= 0.0f ? r.v[l] : 0.0f;
      }
    } else if constexpr (kKind == PoolKind::average) {
      const int32_t n = divisor_on(fy, e.y, e.clamp) * divisor_on(fx, e.x, e.clamp);
      for (int l = 0; l < 4; ++l) r.v[l] = n == 0 ? 0.0f : r.v[l] / static_cast<float>(n);
    } else {
      for (int l = 0; l < 4; ++l) r.v[l] = root(r.v[l]);
    }
    return r;
  }

  // The greatest column; of equal ones that whose tap comes first, then the leftmost.
  BNNS_HOST_DEVICE uint32_t route_of(const Texel* from, const uint32_t* from_taps, int32_t fx, int32_t fy,
                                     const Inside& inside) const {
    constexpr uint32_t kNone = 0xffff;  // tap and column
    Texel best;
    uint32_t code[4];
    for (int l = 0; l < 4; ++l) best.v[l] = -infinity(), code[l] = kNone;
    const auto column = [&](int32_t i) {
      const int32_t x = fx + e.x.dilation * i;
      return (e.clamp ? into(x, e.x) : x) - column_begin;
    };
    BNNS_UNROLL(4)
    for (int32_t i = inside.begin; i < inside.end; ++i) {
      const Texel t = from[column(i)];
      for (int l = 0; l < 4; ++l) best.v[l] = greater(best.v[l], t.v[l]);
    }
    BNNS_UNROLL(4)
    for (int32_t i = inside.begin; i < inside.end; ++i) {
      const int32_t c = column(i);
      const Texel t = from[c];
      const uint32_t four = from_taps[c];
      for (int l = 0; l < 4; ++l) {
        const uint32_t own = byte_above(four, l, static_cast<uint32_t>(c));
        code[l] = t.v[l] == best.v[l] && own < code[l] ? own : code[l];
      }
    }
    const bool zero = !e.clamp && (overhangs(fx, e.x) || overhangs(fy, e.y));  // an outside zero may be greater
    uint32_t route = 0;
    for (int l = 0; l < 4; ++l) {
      uint32_t c = code[l] & 255;
      if (code[l] == kNone && inside.begin < inside.end) {  // NaN alone
        c = static_cast<uint32_t>(column(inside.begin));
        best.v[l] = not_a_number();
      }
      if (zero && !(best.v[l] >= 0.0f)) c = kNoByte;
      route |= c << 8 * l;
    }
    return route;
  }

  BNNS_HOST_DEVICE void gather_parts(int32_t thread, int32_t threads, int32_t first, int32_t end) {
    const int32_t width = x_end - x_begin, rows = end - first;
    for (int32_t id = thread; id < planes * rows * width; id += threads) {
      const int32_t rest = by_pixels.divide(id), column = id - rest * width;
      const int32_t p = planes == 1 ? 0 : rest / rows, row = rest - p * rows;
      const int32_t x = x_begin + column, line = (p * e.groups * kSeparableRows + row) * e.windows;
      const Windows w = windows_on(x, e.x, edges());
      const uint32_t own = four_bytes(static_cast<uint32_t>(x - column_begin));
      Texel sum = {{0, 0, 0, 0}};
      for (int32_t wx = w.first; wx <= w.last; ++wx) {
        const int32_t at = line + wx - across.first;
        if constexpr (kRoutes) {
          const uint32_t four = routes[at];
          if (!some_equal_byte(four, own)) continue;
          add_where(sum, sent[at], equal_bytes(four, own));
        } else {
          const Texel t = sent[at];
          const float weight = edges() ? weight_on(x, e.x.first + e.x.stride * wx, e.x) : 1.0f;
          for (int l = 0; l < 4; ++l) sum.v[l] += t.v[l] * weight;
        }
      }
      parts[(p * e.ring + slot_of(first + row)) * e.x.tile + column] = sum;
    }
  }
  BNNS_HOST_DEVICE static void add_where(Texel& sum, const Texel& t, uint32_t mask) {
    for (int l = 0; l < 4; ++l) sum.v[l] += mask >> 8 * l & 1 ? t.v[l] : 0.0f;
  }

  // Rows [begin, end) of the target.
  BNNS_HOST_DEVICE void gather_targets(int32_t thread, int32_t threads, int32_t begin, int32_t end) {
    for (int32_t id = thread; id < planes * (end - begin) * x_count; id += threads) {
      const int32_t rest = by_targets.divide(id), column = id - rest * x_count;
      const int32_t p = planes == 1 ? 0 : rest / (end - begin);
      const int32_t x = x_begin + column, y = begin + rest - p * (end - begin);
      Texel sum = {{0, 0, 0, 0}};
      if (x < x_end && y < y_end) {
        const Windows rows = windows_on(y, e.y, edges()), across_x = windows_on(x, e.x, edges());
        if (across_x.first <= across_x.last && rows.first <= rows.last) {
          sum = sum_of_parts(p, x, y, rows);
          if constexpr (kKind == PoolKind::l2_norm) {
            const Texel own = images.read_source(images.source(p), y, x);
            for (int l = 0; l < 4; ++l) sum.v[l] = sum.v[l] == 0.0f ? 0.0f : sum.v[l] * own.v[l];
          }
        }
      }
      images.write(images.target(p), e.y.target + y - e.y.source, e.x.target + x - e.x.source, sum);
    }
  }

  BNNS_HOST_DEVICE Texel sum_of_parts(int32_t p, int32_t x, int32_t y, const Windows& rows) const {
    Texel sum = {{0, 0, 0, 0}};
    int32_t slot = slot_of(rows.first);
    for (int32_t wy = rows.first; wy <= rows.last; ++wy, slot = slot + 1 == e.ring ? 0 : slot + 1) {
      const Texel* const part = parts + (p * e.ring + slot) * e.x.tile + x - x_begin;
      if constexpr (kRoutes) {
        // The first tap of this row of windows that resolves to y.
        const int32_t far = y - (e.y.first + e.y.stride * wy);
        int32_t tap = far < 0 || (e.clamp && y == 0) ? 0 : far;
        if (e.y.dilation != 1) {
          tap = (tap + e.y.dilation - 1) / e.y.dilation;
          if (tap * e.y.dilation != far && !(e.clamp && (y == 0 || y == e.y.size - 1))) continue;
        }
        const uint32_t four = taps[(p * e.ring + slot) * e.columns + x - column_begin];
        const uint32_t own = four_bytes(static_cast<uint32_t>(tap));
        if (some_equal_byte(four, own)) add_where(sum, *part, equal_bytes(four, own));
      } else {
        const float weight = edges() ? weight_on(y, e.y.first + e.y.stride * wy, e.y) : 1.0f;
        for (int l = 0; l < 4; ++l) sum.v[l] += part->v[l] * weight;
      }
    }
    return sum;
  }

  const Separable& e;
  const Images& images;
  int32_t planes;
  int32_t x_begin, y_begin, x_end, y_end, x_count, y_count;  // of the clip: pixels; forward: windows
  Windows across, down;                                      // that meet them
  int32_t column_begin, column_count;                        // source columns that these read
  Texel *columns, *sent, *parts;                             // rows of e.columns, e.windows, e.x.tile texels
  uint32_t *taps, *routes;
  Divisor by_columns, by_windows, by_pixels, by_targets;
  int32_t row_now, slot_now;  // the ring: row of windows row_now lies at slot_now
};

}  // namespace bnns::mps

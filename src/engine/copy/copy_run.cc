// Runs a copy: picks the walk that suits the axes and splits it over threads.
//
//   dense       one axis, dense on both sides: memcpy, or streaming stores when the tensor is larger than the caches
//   rows        the fastest axis is dense on both sides: memcpy per row
//   repeat      rows of the destination that repeat one row of the source, back to back: doubling what was written
//   fill        the fastest axis repeats one element
//   transpose   the fastest axis of the destination is not that of the source: tiles that use whole cache lines
//   elements    anything else of whole bytes: element by element along the fastest axis
//   convert     the types differ (or are narrower than a byte): blocks of f32 or int64 in between

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/copy/copy.h"
#include "src/tensor/elements.h"
#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

constexpr size_t kTaskBytes = 256 * 1024;
constexpr size_t kStreamBytes = 24 << 20;  // larger than the L3 share of a core: reading for ownership is a waste
constexpr size_t kLineBytes = 64;
constexpr size_t kRepeatBytes = 16 * 1024;  // of a repeated row: stays in L1
// A wide tile reads long rows (2 KiB of f32 in one go, which prefetchers follow) and writes two lines of each row of
// the destination, which are whole vectors of every type. Where the source has short rows (pixels of some channels), a
// tall tile reads many of them, which are neighbours, and writes long rows: 9.7 to 12-13 GB/s for 32 images 56 x 56
// x 64.
constexpr size_t kTileColumns = 512, kWideTileBytes = 128, kTallTileBytes = 512;

// Offsets of position `index` on axes [first, rank), in elements.
struct Offsets {
  ptrdiff_t from, to;
};
Offsets offsets_of(const CopyProblem& p, size_t first, size_t skip, size_t index) {
  Offsets o{static_cast<ptrdiff_t>(p.from_offset), static_cast<ptrdiff_t>(p.to_offset)};
  for (size_t k = first; k < p.rank; ++k) {
    if (k == skip) continue;
    const ptrdiff_t at = static_cast<ptrdiff_t>(index % p.axes[k].extent);
    index /= p.axes[k].extent;
    o.from += at * p.axes[k].from;
    o.to += at * p.axes[k].to;
  }
  return o;
}

// Below about 1 MiB a copy is over before a second thread has started.
size_t copy_threads(size_t n_threads, size_t tasks, size_t bytes) {
  return threads_for(n_threads, tasks, bytes / 8);
}

constexpr size_t kNone = kMaxCopyAxes;

size_t count_of(const CopyProblem& p, size_t first, size_t skip) {
  size_t count = 1;
  for (size_t k = first; k < p.rank; ++k) {
    if (k != skip) count *= p.axes[k].extent;
  }
  return count;
}

void copy_dense(const CopyProblem& p, size_t element, size_t n_threads) {
  const char* from = static_cast<const char*>(p.from.data) + p.from_offset * element;
  char* to = static_cast<char*>(p.to.data) + p.to_offset * element;
  const size_t bytes = p.axes[0].extent * element, tasks = div_up(bytes, kTaskBytes);
  const bool stream = bytes >= kStreamBytes;
  parallel_for(tasks, copy_threads(n_threads, tasks, bytes), [&](size_t task, size_t) {
    const size_t begin = task * kTaskBytes, m = std::min(kTaskBytes, bytes - begin);
    stream ? copy_streaming(from + begin, to + begin, m) : static_cast<void>(std::memcpy(to + begin, from + begin, m));
  });
}

// Walks the rows of the destination, which axes [0, first) make up: row(from, to) gets pointers to the first element of
// each.
template <class T, class Row>
void for_each_row(const CopyProblem& p, size_t first, size_t n_threads, Row&& row) {
  const T* from = static_cast<const T*>(p.from.data);
  T* to = static_cast<T*>(p.to.data);
  const size_t rows = count_of(p, first, kNone), row_bytes = count_of(p, 0, kNone) / rows * sizeof(T);
  const size_t group = std::max<size_t>(1, kTaskBytes / std::max<size_t>(1, row_bytes)), tasks = div_up(rows, group);
  const CopyAxis next = first < p.rank ? p.axes[first] : CopyAxis{};
  parallel_for(tasks, copy_threads(n_threads, tasks, rows * row_bytes), [&](size_t task, size_t) {
    const size_t end = std::min(rows, (task + 1) * group);
    for (size_t r = task * group; r < end;) {  // one axis at a time: short rows must not pay for divisions
      const Offsets o = offsets_of(p, first, kNone, r);
      const size_t run = std::min(end - r, next.extent - r % next.extent);
      for (size_t i = 0; i < run; ++i) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(i);
        row(from + o.from + at * next.from, to + o.to + at * next.to);
      }
      r += run;
    }
  });
}

// The first `row` elements are there: they again and again until there are `total`, each step a copy of what the steps
// before have written.
template <class T>
void repeat_written(T* to, size_t row, size_t total) {
  const size_t most = std::max(row, kRepeatBytes / sizeof(T) / row * row);
  for (size_t done = row; done < total;) {
    const size_t m = std::min({done, most, total - done});
    std::memcpy(to + done, to, m * sizeof(T));
    done += m;
  }
}
template <class T>
void repeat_row(const T* from, T* to, size_t row, size_t total) {
  std::memcpy(to, from, row * sizeof(T));
  repeat_written(to, row, total);
}

// One element again and again.
template <class T>
void fill_row(T value, T* to, size_t n) {
  constexpr size_t kFirst = 16;
  std::fill_n(to, std::min(n, n < 4 * kFirst ? n : kFirst), value);
  if (n >= 4 * kFirst) repeat_written(to, kFirst, n);
}

// Axis 0 is dense in the destination, axis `dense` in the source.
template <class T>
void copy_transposed(const CopyProblem& p, size_t dense, size_t n_threads) {
  const T* from = static_cast<const T*>(p.from.data);
  T* to = static_cast<T*>(p.to.data);
  const CopyAxis rows = p.axes[0], columns = p.axes[dense];
  const bool tall = columns.extent * sizeof(T) <= kTallTileBytes;
  const size_t tile_rows = (tall ? kTallTileBytes : kWideTileBytes) / sizeof(T);
  const size_t outer = count_of(p, 1, dense), bytes = outer * rows.extent * columns.extent * sizeof(T);
  const bool stream = bytes >= kStreamBytes;
  const size_t width = std::min(columns.extent, kTileColumns), strips = div_up(columns.extent, width);
  const size_t height = std::max(tile_rows, kTaskBytes / (width * sizeof(T)) / tile_rows * tile_rows);
  const size_t parts = div_up(rows.extent, height), tasks = outer * strips * parts;
  const size_t group = std::max<size_t>(1, kTaskBytes / (std::min(height, rows.extent) * width * sizeof(T)));
  parallel_for(div_up(tasks, group), copy_threads(n_threads, div_up(tasks, group), bytes), [&](size_t part, size_t) {
    for (size_t task = part * group; task < std::min(tasks, (part + 1) * group); ++task) {
      const Offsets o = offsets_of(p, 1, dense, task / parts / strips);
      const size_t j = task / parts % strips * width, m = std::min(width, columns.extent - j);
      // Streamed tiles begin on a line of the destination; what is before the first line is a tile of its own.
      const size_t off = reinterpret_cast<uintptr_t>(to + o.to) % kLineBytes;
      const size_t head = stream && off % sizeof(T) == 0 ? (kLineBytes - off) % kLineBytes / sizeof(T) : 0;
      const size_t piece = task % parts, last = std::min(rows.extent, head + (piece + 1) * height);
      for (size_t i = piece == 0 ? 0 : head + piece * height; i < last;) {
        const size_t n = std::min(i == 0 && head != 0 ? head : tile_rows, last - i);
        transpose_tile(from + o.from + static_cast<ptrdiff_t>(i) * rows.from + static_cast<ptrdiff_t>(j), rows.from,
                       to + o.to + static_cast<ptrdiff_t>(i) + static_cast<ptrdiff_t>(j) * columns.to, columns.to, n, m,
                       stream);
        i += n;
      }
    }
    if (stream) hwy::FlushStream();
  });
}

template <class T>
void copy_bytes(const CopyProblem& p, size_t n_threads) {
  const CopyAxis inner = p.axes[0];
  if (p.rank == 1 && inner.from == 1 && inner.to == 1) return copy_dense(p, sizeof(T), n_threads);
  if (inner.from == 1 && inner.to == 1) {
    const CopyAxis next = p.axes[1];
    if (next.from == 0 && next.to == static_cast<ptrdiff_t>(inner.extent)) {
      return for_each_row<T>(p, 2, n_threads, [&](const T* from, T* to) {
        repeat_row(from, to, inner.extent, inner.extent * next.extent);
      });
    }
    return for_each_row<T>(p, 1, n_threads,
                           [&](const T* from, T* to) { std::memcpy(to, from, inner.extent * sizeof(T)); });
  }
  if (inner.from == 0 && inner.to == 1 && (p.rank == 1 || inner.extent >= 16)) {
    return for_each_row<T>(p, 1, n_threads, [&](const T* from, T* to) { fill_row(*from, to, inner.extent); });
  }
  for (size_t k = 1; k < p.rank && inner.to == 1; ++k) {
    if (p.axes[k].from == 1) return copy_transposed<T>(p, k, n_threads);
  }
  for_each_row<T>(p, 1, n_threads, [&](const T* from, T* to) {
    for (size_t i = 0; i < inner.extent; ++i) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(i);
      to[at * inner.to] = from[at * inner.from];
    }
  });
}

// ---- conversions ------------------------------------------------------------------------------------------------

// u64 beyond i64 saturates: every other integer type saturates there too, and u64 to u64 is a copy of bytes.
template <class To, class From>
To saturated(From x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_same_v<From, uint64_t>) {
    return static_cast<To>(std::min<uint64_t>(x, static_cast<uint64_t>(Limits::max())));
  } else if constexpr (sizeof(From) < 4 && sizeof(To) <= 4) {
    constexpr int64_t low = static_cast<int64_t>(Limits::min()), high = static_cast<int64_t>(Limits::max());
    constexpr int32_t narrow_low = static_cast<int32_t>(std::max<int64_t>(low, INT32_MIN));
    constexpr int32_t narrow_high = static_cast<int32_t>(std::min<int64_t>(high, INT32_MAX));
    const int32_t value = x, above = value > narrow_low ? value : narrow_low;
    return static_cast<To>(above < narrow_high ? above : narrow_high);
  } else {
    constexpr int64_t low = std::is_signed_v<To> ? static_cast<int64_t>(Limits::min()) : 0;
    constexpr int64_t high = sizeof(To) == 8 ? INT64_MAX : static_cast<int64_t>(Limits::max());
    return static_cast<To>(std::clamp<int64_t>(static_cast<int64_t>(x), low, high));
  }
}

// Dense pieces of a fixed length, without aliases: gcc vectorises them at -O2.
template <class From, class To>
void convert_integers(const From* __restrict from, ptrdiff_t from_stride, To* __restrict to, ptrdiff_t to_stride,
                      size_t n) {
  constexpr size_t kPiece = 64;
  size_t i = 0;
  if (from_stride == 1 && to_stride == 1) {
    for (; i + kPiece <= n; i += kPiece) {
      const From* __restrict piece_from = from + i;
      To* __restrict piece_to = to + i;
      for (size_t k = 0; k < kPiece; ++k) piece_to[k] = saturated<To>(piece_from[k]);
    }
  }
  for (; i < n; ++i) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(i);
    to[at * to_stride] = saturated<To>(from[at * from_stride]);
  }
}

void copy_integers(const CopyProblem& p, size_t n_threads) {
  constexpr size_t kStretch = 16 * kBlock;  // elements of a task's row
  const CopyAxis inner = p.axes[0];
  const size_t rows = count_of(p, 1, kNone), blocks = div_up(inner.extent, kStretch), count = rows * blocks;
  const size_t group = std::max<size_t>(1, kStretch / inner.extent), tasks = div_up(count, group);
  parallel_for(tasks, copy_threads(n_threads, tasks, p.to.count * 8), [&](size_t task, size_t) {
    with_integer(p.from.type, [&](auto from_type) {
      with_integer(p.to.type, [&](auto to_type) {
        for (size_t k = task * group; k < std::min(count, (task + 1) * group); ++k) {
          const Offsets o = offsets_of(p, 1, kNone, k / blocks);
          const size_t first = k % blocks * kStretch, n = std::min(kStretch, inner.extent - first);
          const ptrdiff_t at = static_cast<ptrdiff_t>(first);
          convert_integers(static_cast<const decltype(from_type)*>(p.from.data) + o.from + at * inner.from, inner.from,
                           static_cast<decltype(to_type)*>(p.to.data) + o.to + at * inner.to, inner.to, n);
        }
      });
    });
  });
}

// One side of a conversion on axes [0, rank) that are walked forwards.
Elements lens_of(const Tensor& t, const CopyAxis* axes, size_t rank, bool source) {
  Tensor view = t;
  view.rank = rank;
  view.count = 1;
  for (size_t k = 0; k < rank; ++k) {
    view.axis[k] = static_cast<uint8_t>(k);
    view.size[k] = axes[k].extent;
    view.stride[k] = static_cast<size_t>(source ? axes[k].from : axes[k].to);
    view.count *= axes[k].extent;
  }
  return Elements(view);
}

void copy_values(const CopyProblem& p, size_t n_threads) {
  // Axes that run backwards in the source (rotated weights), and those beyond what a lens has, become an outer loop.
  CopyProblem q = p;
  CopyAxis inner[kMaxRank];
  size_t inner_rank = 0;
  q.rank = 0;
  for (size_t k = 0; k < p.rank; ++k) {
    (p.axes[k].from < 0 || inner_rank == kMaxRank ? q.axes[q.rank++] : inner[inner_rank++]) = p.axes[k];
  }
  if (inner_rank == 0) inner[inner_rank++] = CopyAxis{1, 1, 1};
  const Elements from = lens_of(p.from, inner, inner_rank, true), to = lens_of(p.to, inner, inner_rank, false);
  const bool sub_byte = type_bytes(p.to.type) == 0, sub_byte_source = type_bytes(p.from.type) == 0;
  const size_t outer = count_of(q, 0, kNone), chunk = 16 * kBlock, chunks = div_up(from.count(), chunk);
  // Elements narrower than a byte share bytes: one thread writes them all.
  const size_t threads = sub_byte ? 1 : copy_threads(n_threads, outer * chunks, outer * from.count() * 8);
  parallel_for(outer * chunks, threads, [&](size_t task, size_t) {
    float buffer[kBlock];
    const Offsets o = offsets_of(q, 0, kNone, task / chunks);
    const void* base =
        sub_byte_source ? p.from.data
                        : element_at(static_cast<const void*>(p.from.data), p.from.type, static_cast<size_t>(o.from));
    void* target = sub_byte ? p.to.data : element_at(p.to.data, p.to.type, static_cast<size_t>(o.to));
    const size_t end = std::min(from.count(), (task % chunks + 1) * chunk);
    for (size_t at = task % chunks * chunk; at < end; at += kBlock) {
      const size_t m = std::min(kBlock, end - at);
      const float* values = from.read(base, at, m, buffer);
      if (p.accumulate) {
        to.accumulate(target, at, m, values);
        continue;
      }
      float* out = to.target(target, at, buffer);
      if (out != values && out != buffer) std::memcpy(out, values, m * sizeof(float));
      to.write(target, at, m, out == buffer ? values : out);
    }
  });
}

}  // namespace

void copy_tensor(const CopyProblem& problem, size_t n_threads) {
  if (problem.kind == CopyKind::integers) return copy_integers(problem, n_threads);
  if (problem.kind == CopyKind::values) return copy_values(problem, n_threads);
  switch (type_bytes(problem.from.type)) {
    case 1:
      return copy_bytes<uint8_t>(problem, n_threads);
    case 2:
      return copy_bytes<uint16_t>(problem, n_threads);
    case 4:
      return copy_bytes<uint32_t>(problem, n_threads);
    case 8:
      return copy_bytes<uint64_t>(problem, n_threads);
    default:
      break;
  }
  // Narrower than a byte: the bits as unsigned numbers, which f32 holds exactly.
  CopyProblem bits = problem;
  for (Tensor* t : {&bits.from, &bits.to}) {
    t->type = static_cast<BNNSDataType>(BNNSDataTypeUIntBit | type_bits(t->type));
    t->scale = 1;
    t->bias = 0;
  }
  copy_values(bits, n_threads);
}

}  // namespace bnns

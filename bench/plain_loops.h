// What a user would write without a library: nested loops in f32, compiled with -O2 (bench/CMakeLists.txt). No row of
// the table may be slower than its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bnns::bench::loops {

struct Window {
  size_t n, i, h, w, o, oh, ow, kh, kw, sy, sx, py, px, dy, dx, groups;
};
void convolution(const Window& s, const float* x, const float* w, float* y);
void convolution_int8(const Window& s, const float* x, const int8_t* w, float scale, float* y);
void convolution_input(const Window& s, const float* dy, const float* w, float* dx);
void convolution_weights(const Window& s, const float* dy, const float* x, float* dw);

enum class Pool : uint8_t { max, average, average_padding, l2 };
void pooling(const Window& s, Pool mode, const float* x, float* y, uint64_t* index);
void pooling_gradient(const Window& s, Pool mode, const float* x, const float* y, const float* dy,
                      const uint64_t* index, float* dx);

// c = a * b; a is m x k (transposed: k x m), b is k x n (transposed: n x k).
void product(size_t m, size_t n, size_t k, bool ta, bool tb, const float* a, const float* b, float* c);
void product_int8(size_t m, size_t n, size_t k, const float* a, const int8_t* b, float scale, float* c);

// x is n x c x pixels; a set is all that shares mean and variance. `channels`, `samples`: those of one set.
struct Sets {
  size_t n, c, pixels;
  bool batch;       // a set is one channel of the whole batch; else `channels` of one sample
  size_t channels;  // layer: c; instance: 1; group: c / groups
  bool rows;        // gamma and beta for each element of a sample, not for each channel
};
void normalize(const Sets& s, const float* x, const float* gamma, const float* beta, float* y);
void normalize_gradient(const Sets& s, const float* x, const float* gamma, const float* dy, float* dx);

// ---- plain_tensor_loops.cc: shapes are row-major ----

using Shape = std::vector<size_t>;
// Bit k of mask: axis k is reduced. what: 's'um, 'm'ean or maximum by its first two letters.
void reduction(const Shape& in, size_t mask, const char* what, const float* x, float* y);
void reduction_gradient(const Shape& in, size_t mask, const char* what, const float* dy, float* dx);
// mode: 0 constant 0, 1 reflect, 2 symmetric.
void padding(const Shape& in, const Shape& out, const Shape& before, int mode, bool backward, const float* from,
             float* to);
// n, c, h, w; op: 0 nearest, 1 linear, 2 linear with aligned corners.
void resize(const Shape& in, const Shape& out, int op, bool backward, const float* from, float* to);
void permute(const Shape& in, const Shape& order, bool backward, const float* from, float* to);
void tile(const Shape& in, const Shape& out, bool backward, const float* from, float* to);
void embedding_gradient(size_t items, size_t columns, size_t count, const uint64_t* index, const float* dy, float* dw);
void gather(size_t outer, size_t size, size_t inner, size_t count, const uint64_t* index, const float* x, float* y);
void scatter(size_t outer, size_t size, size_t inner, size_t count, const uint64_t* index, bool add, const float* x,
             float* y);
// Index vectors of two into (.., size, inner).
void index_vectors(size_t size, size_t inner, size_t count, const uint64_t* index, bool add, const float* x, float* y);
void topk(size_t lines, size_t count, size_t k, bool rows, const float* x, float* y, uint64_t* index);

}  // namespace bnns::bench::loops

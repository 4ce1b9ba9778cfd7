// The reference: double precision, plain loops, one sequence element at a time. All arguments in one flat vector, so
// that central differences can walk over every one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/engine/activation/activation_ref.h"

namespace bnns::ref {

struct Lstm {
  size_t I, H, B, L, T, D;
  Activation gate[4] = {{BNNSActivationFunctionSigmoid, 0, 0},
                        {BNNSActivationFunctionSigmoid, 0, 0},
                        {BNNSActivationFunctionTanh, 0, 0},
                        {BNNSActivationFunctionSigmoid, 0, 0}};  // i, f, g, o
  Activation hidden = {BNNSActivationFunctionTanh, 0, 0};
  std::vector<size_t> active = {};  // sequences active at each step; empty: all
  std::vector<double> mask = {};    // [L - 1][T][B][D H], what dropout multiplies by; empty: 1

  size_t n(size_t t) const { return active.empty() ? B : active[t]; }
  size_t K(size_t l) const { return l == 0 ? I : D * H; }

  // Offsets into the arguments: x [T][B][I], h0 and c0 [L][D][B][H], then for each layer and direction
  // Wx [4][H][K], Wh [4][H][H], Wc [4][H][H], b [4][H].
  size_t x(size_t t, size_t b, size_t i) const { return (t * B + b) * I + i; }
  size_t h0(size_t l, size_t d, size_t b, size_t u) const { return T * B * I + ((l * D + d) * B + b) * H + u; }
  size_t c0(size_t l, size_t d, size_t b, size_t u) const { return h0(L, 0, 0, 0) + ((l * D + d) * B + b) * H + u; }
  size_t weights(size_t l, size_t d) const {
    size_t at = c0(L, 0, 0, 0);
    for (size_t i = 0; i < l * D + d; ++i) at += 4 * H * (K(i / D) + 2 * H + 1);
    return at;
  }
  size_t wx(size_t l, size_t d, size_t k, size_t u, size_t i) const { return weights(l, d) + (k * H + u) * K(l) + i; }
  size_t wh(size_t l, size_t d, size_t k, size_t u, size_t v) const {
    return weights(l, d) + 4 * H * K(l) + (k * H + u) * H + v;
  }
  size_t wc(size_t l, size_t d, size_t k, size_t u, size_t v) const { return wh(l, d, k, u, v) + 4 * H * H; }
  size_t b(size_t l, size_t d, size_t k, size_t u) const { return weights(l, d) + 4 * H * (K(l) + 2 * H) + k * H + u; }
  size_t arguments() const { return weights(L, 0); }

  // Offsets into the results: y [T][B][D H], last h and c [L][D][B][H].
  size_t y(size_t t, size_t b, size_t j) const { return (t * B + b) * D * H + j; }
  size_t h(size_t l, size_t d, size_t b, size_t u) const { return T * B * D * H + ((l * D + d) * B + b) * H + u; }
  size_t c(size_t l, size_t d, size_t b, size_t u) const { return h(L, 0, 0, 0) + ((l * D + d) * B + b) * H + u; }
  size_t results() const { return c(L, 0, 0, 0); }

  double masked(size_t l, size_t t, size_t b, size_t j) const {
    return mask.empty() ? 1 : mask[((l * T + t) * B + b) * D * H + j];
  }
};

// What a forward pass knows about one (layer, direction, step, sequence): previous states, input, pre-activations,
// gates, c and h.
struct LstmCell {
  bool there = false;
  std::vector<double> x, h_before, c_before, z, gate, c, h;
};

struct LstmTrace {
  std::vector<double> results;
  std::vector<LstmCell> cells;  // [L][D][T][B]
};

inline LstmTrace lstm_forward(const Lstm& m, const std::vector<double>& in) {
  const size_t H = m.H;
  LstmTrace trace;
  trace.results.assign(m.results(), 0);
  trace.cells.resize(m.L * m.D * m.T * m.B);
  const auto cell_at = [&](size_t l, size_t d, size_t t, size_t b) -> LstmCell& {
    return trace.cells[((l * m.D + d) * m.T + t) * m.B + b];
  };
  for (size_t l = 0; l < m.L; ++l) {
    for (size_t d = 0; d < m.D; ++d) {
      for (size_t b = 0; b < m.B; ++b) {
        std::vector<double> h(H), c(H);
        for (size_t u = 0; u < H; ++u) h[u] = in[m.h0(l, d, b, u)], c[u] = in[m.c0(l, d, b, u)];
        for (size_t step = 0; step < m.T; ++step) {
          const size_t t = d == 0 ? step : m.T - 1 - step;
          if (b >= m.n(t)) continue;
          LstmCell& cell = cell_at(l, d, t, b);
          cell.there = true;
          for (size_t i = 0; i < m.K(l); ++i) {
            cell.x.push_back(l == 0 ? in[m.x(t, b, i)]
                                    : cell_at(l - 1, i / H, t, b).h[i % H] * m.masked(l - 1, t, b, i));
          }
          cell.h_before = h, cell.c_before = c;
          cell.z.resize(4 * H), cell.gate.resize(4 * H), cell.c.resize(H), cell.h.resize(H);
          for (size_t k = 0; k < 4; ++k) {
            for (size_t u = 0; u < H; ++u) {
              double z = in[m.b(l, d, k, u)];
              for (size_t i = 0; i < m.K(l); ++i) z += in[m.wx(l, d, k, u, i)] * cell.x[i];
              for (size_t v = 0; v < H; ++v) z += in[m.wh(l, d, k, u, v)] * h[v];
              for (size_t v = 0; v < H; ++v) z += in[m.wc(l, d, k, u, v)] * (k == 3 ? cell.c[v] : c[v]);
              cell.z[k * H + u] = z;
              cell.gate[k * H + u] = activation_forward(m.gate[k], z);
            }
            if (k != 2) continue;  // i, f, g are known: the cell state, which the output gate looks at
            for (size_t u = 0; u < H; ++u) {
              cell.c[u] = cell.gate[H + u] * c[u] + cell.gate[u] * cell.gate[2 * H + u];
            }
          }
          for (size_t u = 0; u < H; ++u) cell.h[u] = cell.gate[3 * H + u] * activation_forward(m.hidden, cell.c[u]);
          h = cell.h, c = cell.c;
          for (size_t u = 0; u < H && l + 1 == m.L; ++u) trace.results[m.y(t, b, d * H + u)] = h[u];
        }
        for (size_t u = 0; u < H; ++u) trace.results[m.h(l, d, b, u)] = h[u], trace.results[m.c(l, d, b, u)] = c[u];
      }
    }
  }
  return trace;
}

// Gradient of sum(up * results) with respect to every argument.
inline std::vector<double> lstm_backward(const Lstm& m, const std::vector<double>& in, const LstmTrace& trace,
                                         const std::vector<double>& up) {
  const size_t H = m.H;
  std::vector<double> out(m.arguments());
  std::vector<double> above;  // gradient of a layer's output [T][B][D H]
  for (size_t i = 0; i < m.T * m.B * m.D * H; ++i) above.push_back(up[i]);
  for (size_t l = m.L; l-- > 0;) {
    std::vector<double> below(m.T * m.B * m.K(l));
    for (size_t d = 0; d < m.D; ++d) {
      for (size_t b = 0; b < m.B; ++b) {
        std::vector<double> dh(H), dc(H);
        for (size_t u = 0; u < H; ++u) dh[u] = up[m.h(l, d, b, u)], dc[u] = up[m.c(l, d, b, u)];
        for (size_t step = 0; step < m.T; ++step) {
          const size_t t = d == 0 ? m.T - 1 - step : step;
          const LstmCell& cell = trace.cells[((l * m.D + d) * m.T + t) * m.B + b];
          if (!cell.there) continue;
          std::vector<double> dz(4 * H), dc_before(H);
          for (size_t u = 0; u < H; ++u) {
            dh[u] += above[(t * m.B + b) * m.D * H + d * H + u];
            const double ch = activation_forward(m.hidden, cell.c[u]);
            dz[3 * H + u] = dh[u] * ch * activation_derivative(m.gate[3], cell.z[3 * H + u]);
            dc[u] += dh[u] * cell.gate[3 * H + u] * activation_derivative(m.hidden, cell.c[u]);
          }
          for (size_t u = 0; u < H; ++u) {
            for (size_t v = 0; v < H; ++v) dc[v] += dz[3 * H + u] * in[m.wc(l, d, 3, u, v)];
          }
          for (size_t u = 0; u < H; ++u) {
            const double i = cell.gate[u], f = cell.gate[H + u], g = cell.gate[2 * H + u];
            dz[u] = dc[u] * g * activation_derivative(m.gate[0], cell.z[u]);
            dz[H + u] = dc[u] * cell.c_before[u] * activation_derivative(m.gate[1], cell.z[H + u]);
            dz[2 * H + u] = dc[u] * i * activation_derivative(m.gate[2], cell.z[2 * H + u]);
            dc_before[u] = dc[u] * f;
          }
          dh.assign(H, 0);
          for (size_t k = 0; k < 4; ++k) {
            for (size_t u = 0; u < H; ++u) {
              const double g = dz[k * H + u];
              out[m.b(l, d, k, u)] += g;
              for (size_t i = 0; i < m.K(l); ++i) {
                out[m.wx(l, d, k, u, i)] += g * cell.x[i];
                below[(t * m.B + b) * m.K(l) + i] += g * in[m.wx(l, d, k, u, i)];
              }
              for (size_t v = 0; v < H; ++v) {
                out[m.wh(l, d, k, u, v)] += g * cell.h_before[v];
                out[m.wc(l, d, k, u, v)] += g * (k == 3 ? cell.c[v] : cell.c_before[v]);
                dh[v] += g * in[m.wh(l, d, k, u, v)];
                if (k != 3) dc_before[v] += g * in[m.wc(l, d, k, u, v)];
              }
            }
          }
          dc = dc_before;
        }
        for (size_t u = 0; u < H; ++u) out[m.h0(l, d, b, u)] = dh[u], out[m.c0(l, d, b, u)] = dc[u];
      }
    }
    above = below;
    for (size_t e = 0; e < above.size() && l > 0; ++e) {
      const size_t width = m.D * H;
      above[e] *= m.masked(l - 1, e / width / m.B, e / width % m.B, e % width);
    }
  }
  for (size_t e = 0; e < m.T * m.B * m.I; ++e) out[e] = above[e];
  return out;
}

}  // namespace bnns::ref

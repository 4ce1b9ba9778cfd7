// The reference: multi-head attention in double precision, plain loops, dense arrays in logical order.
//   x[b][i][d]   w[d][k][h]   bias[k][h]   wo[h * d_value + v][m]   Q', K', V', heads as [b][h][row][d]
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace bnns::ref {

using Values = std::vector<double>;

struct Attention {
  size_t batch = 1, queries = 1, keys = 1, heads = 1, key_size = 1, value_size = 1;
  size_t model = 1, key_model = 1, value_model = 1;
  Values q, k, v, wq, wk, wv, wo;
  Values bq, bk, bv, bo;      // empty: none
  Values key_row, value_row;  // [k][h], empty: none
  bool zero_row = false;
  std::vector<char> key_mask;  // [b][S], empty: none
  Values add;                  // [b][h][L][S], -inf where masked; empty: none
  Values keep;                 // [b][h][L][rows]: 0 or 1 / (1 - rate); empty: no dropout

  size_t rows() const { return keys + (key_row.empty() ? 0 : 1) + (zero_row ? 1 : 0); }
};

struct AttentionResults {
  Values q, k, v, p, heads, y;  // q, k, v projected; p before dropout
};

// y'[b][h][i][k] = sum_d x[b][i][d] w[d][k][h] + bias[k][h] for i < n; `rows` rows are made, those from n on are 0.
inline Values attention_projection(const Values& x, const Values& w, const Values& bias, size_t batch, size_t n,
                                   size_t rows, size_t d_in, size_t d_out, size_t heads) {
  Values y(batch * heads * rows * d_out, 0.0);
  for (size_t b = 0; b < batch; ++b)
    for (size_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < d_out; ++k) {
          double sum = bias.empty() ? 0 : bias[k * heads + h];
          for (size_t d = 0; d < d_in; ++d) sum += x[(b * n + i) * d_in + d] * w[(d * d_out + k) * heads + h];
          y[((b * heads + h) * rows + i) * d_out + k] = sum;
        }
  return y;
}

inline AttentionResults attention_forward(const Attention& a) {
  const size_t L = a.queries, S = a.keys, R = a.rows(), H = a.heads, K = a.key_size, V = a.value_size;
  AttentionResults f;
  f.q = attention_projection(a.q, a.wq, a.bq, a.batch, L, L, a.model, K, H);
  f.k = attention_projection(a.k, a.wk, a.bk, a.batch, S, R, a.key_model, K, H);
  f.v = attention_projection(a.v, a.wv, a.bv, a.batch, S, R, a.value_model, V, H);
  f.p.assign(a.batch * H * L * R, 0.0);
  f.heads.assign(a.batch * H * L * V, 0.0);
  f.y.assign(a.batch * L * a.model, 0.0);
  for (size_t b = 0; b < a.batch; ++b)
    for (size_t h = 0; h < H; ++h) {
      const size_t bh = b * H + h;
      for (size_t k = 0; k < K && !a.key_row.empty(); ++k) f.k[(bh * R + S) * K + k] = a.key_row[k * H + h];
      for (size_t v = 0; v < V && !a.value_row.empty(); ++v) f.v[(bh * R + S) * V + v] = a.value_row[v * H + h];
      for (size_t i = 0; i < L; ++i) {
        double* p = &f.p[(bh * L + i) * R];
        double largest = -INFINITY, total = 0;
        for (size_t j = 0; j < R; ++j) {
          double r = 0;
          for (size_t k = 0; k < K; ++k) r += f.q[(bh * L + i) * K + k] * f.k[(bh * R + j) * K + k];
          r /= std::sqrt(double(K));
          if (j < S && !a.add.empty()) r += a.add[(bh * L + i) * S + j];
          if (j < S && !a.key_mask.empty() && a.key_mask[b * S + j]) r = -INFINITY;
          p[j] = r;
          largest = std::fmax(largest, r);
        }
        for (size_t j = 0; j < R; ++j) total += p[j] = largest == -INFINITY ? 0 : std::exp(p[j] - largest);
        for (size_t j = 0; j < R; ++j) p[j] = total == 0 ? 0 : p[j] / total;  // nothing to attend to: zeros
        for (size_t j = 0; j < R; ++j)
          for (size_t v = 0; v < V; ++v)
            f.heads[(bh * L + i) * V + v] +=
                p[j] * (a.keep.empty() ? 1 : a.keep[(bh * L + i) * R + j]) * f.v[(bh * R + j) * V + v];
      }
    }
  for (size_t b = 0; b < a.batch; ++b)
    for (size_t i = 0; i < L; ++i)
      for (size_t m = 0; m < a.model; ++m) {
        double sum = a.bo.empty() ? 0 : a.bo[m];
        for (size_t h = 0; h < H; ++h)
          for (size_t v = 0; v < V; ++v)
            sum += f.heads[((b * H + h) * L + i) * V + v] * a.wo[(h * V + v) * a.model + m];
        f.y[(b * L + i) * a.model + m] = sum;
      }
  return f;
}

struct AttentionDeltas {
  Values q, k, v, wq, wk, wv, wo, bq, bk, bv, bo, key_row, value_row;
};

// dw, db and dx of a projection from dy'[b][h][i][k]; rows from n on are not projections.
inline void attention_projection_backward(const Values& x, const Values& w, const Values& dy, size_t batch, size_t n,
                                          size_t rows, size_t d_in, size_t d_out, size_t heads, Values* dx, Values* dw,
                                          Values* db) {
  dx->assign(batch * n * d_in, 0.0);
  dw->assign(d_in * d_out * heads, 0.0);
  db->assign(d_out * heads, 0.0);
  for (size_t b = 0; b < batch; ++b)
    for (size_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < d_out; ++k) {
          const double g = dy[((b * heads + h) * rows + i) * d_out + k];
          (*db)[k * heads + h] += g;
          for (size_t d = 0; d < d_in; ++d) {
            (*dw)[(d * d_out + k) * heads + h] += g * x[(b * n + i) * d_in + d];
            (*dx)[(b * n + i) * d_in + d] += g * w[(d * d_out + k) * heads + h];
          }
        }
}

inline AttentionDeltas attention_backward(const Attention& a, const AttentionResults& f, const Values& dy) {
  const size_t L = a.queries, S = a.keys, R = a.rows(), H = a.heads, K = a.key_size, V = a.value_size;
  AttentionDeltas g;
  g.wo.assign(H * V * a.model, 0.0);
  g.bo.assign(a.model, 0.0);
  Values dheads(f.heads.size(), 0.0), dq(f.q.size(), 0.0), dk(f.k.size(), 0.0), dv(f.v.size(), 0.0);
  for (size_t b = 0; b < a.batch; ++b)
    for (size_t i = 0; i < L; ++i)
      for (size_t m = 0; m < a.model; ++m) {
        const double up = dy[(b * L + i) * a.model + m];
        g.bo[m] += up;
        for (size_t h = 0; h < H; ++h)
          for (size_t v = 0; v < V; ++v) {
            g.wo[(h * V + v) * a.model + m] += up * f.heads[((b * H + h) * L + i) * V + v];
            dheads[((b * H + h) * L + i) * V + v] += up * a.wo[(h * V + v) * a.model + m];
          }
      }
  for (size_t bh = 0; bh < a.batch * H; ++bh)
    for (size_t i = 0; i < L; ++i) {
      Values dp(R, 0.0);
      double weighted = 0;
      for (size_t j = 0; j < R; ++j) {
        const double p = f.p[(bh * L + i) * R + j], keep = a.keep.empty() ? 1 : a.keep[(bh * L + i) * R + j];
        for (size_t v = 0; v < V; ++v) {
          dv[(bh * R + j) * V + v] += p * keep * dheads[(bh * L + i) * V + v];
          dp[j] += keep * dheads[(bh * L + i) * V + v] * f.v[(bh * R + j) * V + v];
        }
        weighted += dp[j] * p;
      }
      for (size_t j = 0; j < R; ++j) {
        const double dr = f.p[(bh * L + i) * R + j] * (dp[j] - weighted) / std::sqrt(double(K));
        for (size_t k = 0; k < K; ++k) {
          dq[(bh * L + i) * K + k] += dr * f.k[(bh * R + j) * K + k];
          dk[(bh * R + j) * K + k] += dr * f.q[(bh * L + i) * K + k];
        }
      }
    }
  attention_projection_backward(a.q, a.wq, dq, a.batch, L, L, a.model, K, H, &g.q, &g.wq, &g.bq);
  attention_projection_backward(a.k, a.wk, dk, a.batch, S, R, a.key_model, K, H, &g.k, &g.wk, &g.bk);
  attention_projection_backward(a.v, a.wv, dv, a.batch, S, R, a.value_model, V, H, &g.v, &g.wv, &g.bv);
  g.key_row.assign(K * H, 0.0);
  g.value_row.assign(V * H, 0.0);
  for (size_t b = 0; b < a.batch && !a.key_row.empty(); ++b)
    for (size_t h = 0; h < H; ++h) {
      for (size_t k = 0; k < K; ++k) g.key_row[k * H + h] += dk[((b * H + h) * R + S) * K + k];
      for (size_t v = 0; v < V; ++v) g.value_row[v * H + h] += dv[((b * H + h) * R + S) * V + v];
    }
  return g;
}

}  // namespace bnns::ref

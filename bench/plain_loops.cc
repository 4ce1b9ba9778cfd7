#include "bench/plain_loops.h"

#include <cfloat>
#include <cmath>
#include <cstring>

namespace bnns::bench::loops {
namespace {

// Calls tap(ky, kx, iy, ix) for the taps of output pixel (oy, ox) that meet the image.
template <class Tap>
inline void taps(const Window& s, size_t oy, size_t ox, Tap tap) {
  for (size_t ky = 0; ky < s.kh; ++ky) {
    const size_t iy = oy * s.sy + ky * s.dy - s.py;  // wraps to a large number outside
    if (iy >= s.h) continue;
    for (size_t kx = 0; kx < s.kw; ++kx) {
      const size_t ix = ox * s.sx + kx * s.dx - s.px;
      if (ix < s.w) tap(ky, kx, iy, ix);
    }
  }
}

// Calls sum(n, o, i of the group, i, oy, ox) in the order in which one writes these loops.
template <class Sum>
inline void pairs(const Window& s, Sum sum) {
  const size_t in = s.i / s.groups, out = s.o / s.groups;
  for (size_t n = 0; n < s.n; ++n) {
    for (size_t o = 0; o < s.o; ++o) {
      for (size_t i = 0; i < in; ++i) sum(n, o, i, o / out * in + i);
    }
  }
}

template <class W>
void forward(const Window& s, const float* x, const W* w, float scale, float* y) {
  std::memset(y, 0, s.n * s.o * s.oh * s.ow * sizeof *y);
  pairs(s, [&](size_t n, size_t o, size_t j, size_t i) {
    const float* plane = x + (n * s.i + i) * s.h * s.w;
    const W* kernel = w + (o * (s.i / s.groups) + j) * s.kh * s.kw;
    float* to = y + (n * s.o + o) * s.oh * s.ow;
    for (size_t oy = 0; oy < s.oh; ++oy) {
      for (size_t ox = 0; ox < s.ow; ++ox) {
        float sum = 0;
        taps(s, oy, ox, [&](size_t ky, size_t kx, size_t iy, size_t ix) {
          sum += plane[iy * s.w + ix] * float(kernel[ky * s.kw + kx]);
        });
        to[oy * s.ow + ox] += scale * sum;
      }
    }
  });
}

}  // namespace

void convolution(const Window& s, const float* x, const float* w, float* y) {
  forward(s, x, w, 1, y);
}
void convolution_int8(const Window& s, const float* x, const int8_t* w, float scale, float* y) {
  forward(s, x, w, scale, y);
}

void convolution_input(const Window& s, const float* dy, const float* w, float* dx) {
  std::memset(dx, 0, s.n * s.i * s.h * s.w * sizeof *dx);
  pairs(s, [&](size_t n, size_t o, size_t j, size_t i) {
    float* plane = dx + (n * s.i + i) * s.h * s.w;
    const float* kernel = w + (o * (s.i / s.groups) + j) * s.kh * s.kw;
    const float* from = dy + (n * s.o + o) * s.oh * s.ow;
    for (size_t oy = 0; oy < s.oh; ++oy) {
      for (size_t ox = 0; ox < s.ow; ++ox) {
        const float g = from[oy * s.ow + ox];
        taps(s, oy, ox,
             [&](size_t ky, size_t kx, size_t iy, size_t ix) { plane[iy * s.w + ix] += g * kernel[ky * s.kw + kx]; });
      }
    }
  });
}

void convolution_weights(const Window& s, const float* dy, const float* x, float* dw) {
  std::memset(dw, 0, s.o * (s.i / s.groups) * s.kh * s.kw * sizeof *dw);
  pairs(s, [&](size_t n, size_t o, size_t j, size_t i) {
    const float* plane = x + (n * s.i + i) * s.h * s.w;
    float* kernel = dw + (o * (s.i / s.groups) + j) * s.kh * s.kw;
    const float* from = dy + (n * s.o + o) * s.oh * s.ow;
    for (size_t oy = 0; oy < s.oh; ++oy) {
      for (size_t ox = 0; ox < s.ow; ++ox) {
        const float g = from[oy * s.ow + ox];
        taps(s, oy, ox,
             [&](size_t ky, size_t kx, size_t iy, size_t ix) { kernel[ky * s.kw + kx] += g * plane[iy * s.w + ix]; });
      }
    }
  });
}

void pooling(const Window& s, Pool mode, const float* x, float* y, uint64_t* index) {
  for (size_t plane = 0; plane < s.n * s.i; ++plane) {
    const float* from = x + plane * s.h * s.w;
    for (size_t oy = 0; oy < s.oh; ++oy) {
      for (size_t ox = 0; ox < s.ow; ++ox) {
        float largest = -FLT_MAX, sum = 0;
        size_t at = 0, count = 0;
        const size_t o = (plane * s.oh + oy) * s.ow + ox;
        if (mode == Pool::max) {
          taps(s, oy, ox, [&](size_t, size_t, size_t iy, size_t ix) {
            if (from[iy * s.w + ix] > largest) largest = from[iy * s.w + ix], at = iy * s.w + ix;
          });
          y[o] = largest;
          if (index) index[o] = at;
        } else if (mode == Pool::l2) {
          taps(s, oy, ox,
               [&](size_t, size_t, size_t iy, size_t ix) { sum += from[iy * s.w + ix] * from[iy * s.w + ix]; });
          y[o] = std::sqrt(sum);
        } else {
          taps(s, oy, ox, [&](size_t, size_t, size_t iy, size_t ix) { sum += from[iy * s.w + ix], ++count; });
          y[o] = sum / float(mode == Pool::average ? count : s.kh * s.kw);
        }
      }
    }
  }
}

void pooling_gradient(const Window& s, Pool mode, const float* x, const float* y, const float* dy,
                      const uint64_t* index, float* dx) {
  std::memset(dx, 0, s.n * s.i * s.h * s.w * sizeof *dx);
  for (size_t plane = 0; plane < s.n * s.i; ++plane) {
    const float* from = x + plane * s.h * s.w;
    float* to = dx + plane * s.h * s.w;
    for (size_t oy = 0; oy < s.oh; ++oy) {
      for (size_t ox = 0; ox < s.ow; ++ox) {
        const size_t o = (plane * s.oh + oy) * s.ow + ox;
        if (index) {
          to[index[o]] += dy[o];
        } else if (mode == Pool::max) {
          float largest = -FLT_MAX;
          size_t at = 0;
          taps(s, oy, ox, [&](size_t, size_t, size_t iy, size_t ix) {
            if (from[iy * s.w + ix] > largest) largest = from[iy * s.w + ix], at = iy * s.w + ix;
          });
          to[at] += dy[o];
        } else if (mode == Pool::l2) {
          const float g = y[o] > 0 ? dy[o] / y[o] : 0;
          taps(s, oy, ox, [&](size_t, size_t, size_t iy, size_t ix) { to[iy * s.w + ix] += g * from[iy * s.w + ix]; });
        } else {
          size_t count = 0;
          taps(s, oy, ox, [&](size_t, size_t, size_t, size_t) { ++count; });
          const float g = dy[o] / float(mode == Pool::average ? count : s.kh * s.kw);
          taps(s, oy, ox, [&](size_t, size_t, size_t iy, size_t ix) { to[iy * s.w + ix] += g; });
        }
      }
    }
  }
}

void product(size_t m, size_t n, size_t k, bool ta, bool tb, const float* a, const float* b, float* c) {
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) c[i * n + j] = 0;
    if (tb) {
      for (size_t j = 0; j < n; ++j) {
        float sum = 0;
        for (size_t l = 0; l < k; ++l) sum += (ta ? a[l * m + i] : a[i * k + l]) * b[j * k + l];
        c[i * n + j] = sum;
      }
    } else {
      for (size_t l = 0; l < k; ++l) {
        const float factor = ta ? a[l * m + i] : a[i * k + l];
        for (size_t j = 0; j < n; ++j) c[i * n + j] += factor * b[l * n + j];
      }
    }
  }
}

void product_int8(size_t m, size_t n, size_t k, const float* a, const int8_t* b, float scale, float* c) {
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (size_t l = 0; l < k; ++l) sum += a[i * k + l] * float(b[j * k + l]);
      c[i * n + j] = scale * sum;
    }
  }
}

namespace {

// Calls each(first element, elements together, parts, elements from part to part, first channel) for every set.
template <class Each>
void sets(const Sets& s, Each each) {
  if (s.batch) {
    for (size_t c = 0; c < s.c; ++c) each(c * s.pixels, s.pixels, s.n, s.c * s.pixels, c);
    return;
  }
  for (size_t n = 0; n < s.n; ++n) {
    for (size_t c = 0; c < s.c; c += s.channels) {
      each((n * s.c + c) * s.pixels, s.pixels, s.channels, s.pixels, c);
    }
  }
}

struct Statistics {
  float mean, inverse;
};
Statistics statistics(const float* x, size_t together, size_t parts, size_t step) {
  double sum = 0, squares = 0;
  const double count = double(together * parts);
  for (size_t p = 0; p < parts; ++p) {
    for (size_t k = 0; k < together; ++k) sum += x[p * step + k];
  }
  const double mean = sum / count;
  for (size_t p = 0; p < parts; ++p) {
    for (size_t k = 0; k < together; ++k) squares += (x[p * step + k] - mean) * (x[p * step + k] - mean);
  }
  return {float(mean), float(1 / std::sqrt(squares / count + 1e-5))};
}
// The parameter of element k of part p.
size_t parameter(const Sets& s, size_t c, size_t p, size_t k) {
  return s.rows ? (c + p) * s.pixels + k : s.batch ? c : c + p;
}

}  // namespace

void normalize(const Sets& s, const float* x, const float* gamma, const float* beta, float* y) {
  sets(s, [&](size_t first, size_t together, size_t parts, size_t step, size_t c) {
    const auto [mean, inverse] = statistics(x + first, together, parts, step);
    for (size_t p = 0; p < parts; ++p) {
      for (size_t k = 0; k < together; ++k) {
        const size_t at = first + p * step + k, q = parameter(s, c, p, k);
        y[at] = (x[at] - mean) * inverse * gamma[q] + beta[q];
      }
    }
  });
}

void normalize_gradient(const Sets& s, const float* x, const float* gamma, const float* dy, float* dx) {
  sets(s, [&](size_t first, size_t together, size_t parts, size_t step, size_t c) {
    const auto [mean, inverse] = statistics(x + first, together, parts, step);
    double sum = 0, product = 0;
    for (size_t p = 0; p < parts; ++p) {
      for (size_t k = 0; k < together; ++k) {
        const size_t at = first + p * step + k;
        const float g = dy[at] * gamma[parameter(s, c, p, k)];
        sum += g, product += double(g) * double((x[at] - mean) * inverse);
      }
    }
    const double count = double(together * parts);
    for (size_t p = 0; p < parts; ++p) {
      for (size_t k = 0; k < together; ++k) {
        const size_t at = first + p * step + k;
        const float g = dy[at] * gamma[parameter(s, c, p, k)], centered = (x[at] - mean) * inverse;
        dx[at] = inverse * (g - float(sum / count) - centered * float(product / count));
      }
    }
  });
}

}  // namespace bnns::bench::loops

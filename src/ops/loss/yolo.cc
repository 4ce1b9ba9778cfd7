// Yolo: the loss of a grid of predicted boxes, one grid row at a time, in double.
//
// A sample is [rows][columns][anchors][x, y, w, h, confidence, classes...] of raw outputs t; labels have the same
// shape, their x, y relative to the cell and w, h in the unit of the anchor sizes A.
//   box      centre (sigmoid(tx), sigmoid(ty)), size (Aw e^tw, Ah e^th);  IOU = overlap with the label's box
//   object   label confidence != 0, and the anchor has the cell's largest IOU (the first of equals) or IOU >=
//   object_min empty    label confidence 0, or not object and IOU <= no_object_max;  other boxes do not count object
//   scale_xy ((sigmoid(tx) - x)^2 + (sigmoid(ty) - y)^2) + scale_wh (H(tw - log(w / Aw)) + H(th - log(h / Ah)))
//            + scale_object sigmoid_ce(tc, rescore ? IOU : 1) + scale_class softmax_ce(classes)
//   empty    scale_no_object sigmoid_ce(tc, 0)
// The gradient takes IOU and the choice of boxes as constants. A NaN overlap counts as an object, so that NaN shows.

#include <algorithm>
#include <cmath>

#include "src/ops/loss/loss.h"

namespace bnns {
namespace {

struct TermAndSlope {
  double term, slope;
};

double sigmoid(double x) {
  const double z = std::exp(-std::fabs(x));
  return (x < 0 ? z : 1) / (1 + z);
}

TermAndSlope sigmoid_cross_entropy(double x, double target) {
  return {std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::fabs(x))), sigmoid(x) - target};
}

TermAndSlope huber(double e, double delta) {
  const double a = std::fabs(e);
  if (a > delta) return {delta * (a - delta / 2), std::copysign(delta, e)};
  return {e * e / 2, e};
}

// The five numbers of a box before its classes.
struct BoxHead {
  float x, y, w, h, confidence;
};

BoxHead read_head(const Samples& tensor, size_t sample, size_t first) {
  float buffer[5];
  const float* v = tensor.read(sample, first, 5, buffer);
  return {v[0], v[1], v[2], v[3], v[4]};
}

double overlap_1d(double centre_a, double size_a, double centre_b, double size_b) {
  const double low = std::max(centre_a - size_a / 2, centre_b - size_b / 2);
  const double high = std::min(centre_a + size_a / 2, centre_b + size_b / 2);
  return std::max(high - low, 0.0);
}

double intersection_over_union(const BoxHead& t, const BoxHead& truth, const float* anchor) {
  const double w = anchor[0] * std::exp(double(t.w)), h = anchor[1] * std::exp(double(t.h));
  const double x = sigmoid(t.x), y = sigmoid(t.y);
  if (std::isnan(w + h + x + y)) return NAN;
  const double shared = overlap_1d(x, w, truth.x, truth.w) * overlap_1d(y, h, truth.y, truth.h);
  const double all = w * h + double(truth.w) * truth.h - shared;
  return all > 0 ? shared / all : 0;  // 0 too where an endless width meets no height
}

class YoloRows {
 public:
  explicit YoloRows(const LossRun& run) : run_(run), p_(*run.problem), grid_(run.problem->yolo) {}

  double row(size_t sample, size_t row) {
    double sum = 0;
    for (size_t column = 0; column < grid_.columns; ++column) {
      const size_t cell = (row * grid_.columns + column) * grid_.anchors * grid_.box;
      const size_t best = best_anchor(sample, cell);
      for (size_t a = 0; a < grid_.anchors; ++a) sum += anchor(sample, cell + a * grid_.box, a, a == best);
    }
    return sum;
  }

 private:
  // The anchor with the largest overlap among those with an object; SIZE_MAX when there is none.
  size_t best_anchor(size_t sample, size_t cell) const {
    size_t best = SIZE_MAX;
    double best_overlap = 0;
    for (size_t a = 0; a < grid_.anchors; ++a) {
      const size_t first = cell + a * grid_.box;
      const BoxHead truth = read_head(run_.labels, sample, first);
      if (truth.confidence == 0) continue;
      const double iou = intersection_over_union(read_head(run_.x, sample, first), truth, grid_.anchor_sizes + 2 * a);
      if (best != SIZE_MAX && !(iou > best_overlap)) continue;
      best = a;
      best_overlap = iou;
    }
    return best;
  }

  double anchor(size_t sample, size_t first, size_t a, bool best) {
    const BoxHead t = read_head(run_.x, sample, first), truth = read_head(run_.labels, sample, first);
    const float* size = grid_.anchor_sizes + 2 * a;
    float g[5] = {};
    double sum = 0;
    bool object = false;
    double iou = 0;
    if (truth.confidence != 0) {
      iou = intersection_over_union(t, truth, size);
      object = best || !(iou < grid_.object_min_iou);
    }
    if (object) {
      const double x = sigmoid(t.x), y = sigmoid(t.y), ex = x - truth.x, ey = y - truth.y;
      const TermAndSlope w = huber(t.w - std::log(double(truth.w) / size[0]), p_.huber_delta);
      const TermAndSlope h = huber(t.h - std::log(double(truth.h) / size[1]), p_.huber_delta);
      const TermAndSlope c = sigmoid_cross_entropy(t.confidence, grid_.rescore ? iou : 1);
      sum = grid_.scale_xy * (ex * ex + ey * ey) + grid_.scale_wh * (w.term + h.term) + grid_.scale_object * c.term;
      g[0] = scaled(grid_.scale_xy * 2 * ex * x * (1 - x));
      g[1] = scaled(grid_.scale_xy * 2 * ey * y * (1 - y));
      g[2] = scaled(grid_.scale_wh * w.slope);
      g[3] = scaled(grid_.scale_wh * h.slope);
      g[4] = scaled(grid_.scale_object * c.slope);
    } else if (truth.confidence == 0 || iou <= grid_.no_object_max_iou) {
      const TermAndSlope c = sigmoid_cross_entropy(t.confidence, 0);
      sum = grid_.scale_no_object * c.term;
      g[4] = scaled(grid_.scale_no_object * c.slope);
    }
    put(sample, first, 5, g);
    return sum + classes(sample, first + 5, grid_.box - 5, object);
  }

  // Softmax cross entropy of the classes, block by block; without an object only the zeros of the gradient.
  double classes(size_t sample, size_t first, size_t count, bool object) {
    double maximum = -INFINITY, exponentials = 0, labels = 0, dot = 0;
    if (object) {
      for_blocks(first, count, [&](size_t at, size_t m) {
        const float* x = run_.x.read(sample, at, m, x_buffer_);
        for (size_t i = 0; i < m; ++i) maximum = x[i] > maximum ? x[i] : maximum;
      });
      for_blocks(first, count, [&](size_t at, size_t m) {
        const float* x = run_.x.read(sample, at, m, x_buffer_);
        const float* l = run_.labels.read(sample, at, m, l_buffer_);
        for (size_t i = 0; i < m; ++i) {
          exponentials += std::exp(x[i] - maximum);
          labels += l[i];
          if (l[i] != 0) dot += l[i] * (x[i] - maximum);
        }
      });
    }
    if (run_.dx.base) {
      for_blocks(first, count, [&](size_t at, size_t m) {
        std::fill_n(g_buffer_, m, 0.0f);
        if (object) {
          const float* x = run_.x.read(sample, at, m, x_buffer_);
          const float* l = run_.labels.read(sample, at, m, l_buffer_);
          for (size_t i = 0; i < m; ++i) {
            g_buffer_[i] = scaled(grid_.scale_class * (std::exp(x[i] - maximum) / exponentials * labels - l[i]));
          }
        }
        put(sample, at, m, g_buffer_);
      });
    }
    return object && count != 0 ? grid_.scale_class * (std::log(exponentials) * labels - dot) : 0;
  }

  template <class Body>
  static void for_blocks(size_t first, size_t count, Body&& body) {
    for (size_t done = 0; done < count; done += kBlock) body(first + done, std::min(kBlock, count - done));
  }

  float scaled(double slope) const { return static_cast<float>(slope * run_.scale); }

  void put(size_t sample, size_t first, size_t m, const float* g) const {
    if (!run_.dx.base) return;
    const Elements& dx = *run_.dx.lens;
    if (run_.accumulate) {
      dx.accumulate(run_.dx.at(sample), first, m, g);
    } else if (dx.direct()) {
      std::copy_n(g, m, dx.target(run_.dx.at(sample), first, nullptr));
    } else {
      dx.write(run_.dx.at(sample), first, m, g);
    }
  }

  const LossRun& run_;
  const LossProblem& p_;
  const YoloGrid& grid_;
  float x_buffer_[kBlock], l_buffer_[kBlock], g_buffer_[kBlock];
};

}  // namespace

double yolo_loss(const LossRun& run, Range units) noexcept {
  YoloRows rows(run);
  const size_t per_sample = run.problem->yolo.rows;
  double sum = 0;
  for (size_t unit = units.begin; unit < units.end; ++unit) sum += rows.row(unit / per_sample, unit % per_sample);
  return sum;
}

}  // namespace bnns

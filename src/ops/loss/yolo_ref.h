// The Yolo loss in plain loops of double, for tests: README.md's formula, one sample, dense
// [rows][columns][anchors][box].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bnns::ref {

struct YoloCase {
  size_t rows = 1, columns = 1, anchors = 1, box = 5;
  double huber_delta = 1, xy = 1, wh = 1, object = 1, no_object = 1, classification = 1;
  double object_min_iou = 0.7, no_object_max_iou = 0.3;
  bool rescore = false;
  std::vector<double> sizes;      // width, height of each anchor
  std::vector<double> x, labels;  // one sample
};

inline double yolo_sigmoid(double t) {
  return 1 / (1 + std::exp(-t));
}

// Overlap of the predicted box at index k with its label's box.
inline double yolo_iou(const YoloCase& c, const std::vector<double>& x, size_t k, size_t anchor) {
  const double w = c.sizes[2 * anchor] * std::exp(x[k + 2]), h = c.sizes[2 * anchor + 1] * std::exp(x[k + 3]);
  const double cx = yolo_sigmoid(x[k]), cy = yolo_sigmoid(x[k + 1]);
  const double lx = c.labels[k], ly = c.labels[k + 1], lw = c.labels[k + 2], lh = c.labels[k + 3];
  const double left = std::max(cx - w / 2, lx - lw / 2), right = std::min(cx + w / 2, lx + lw / 2);
  const double up = std::max(cy - h / 2, ly - lh / 2), down = std::min(cy + h / 2, ly + lh / 2);
  const double shared = std::max(right - left, 0.0) * std::max(down - up, 0.0);
  return shared / (w * h + lw * lh - shared);
}

// The loss at x, with overlaps (and so the choice of boxes) as they are at `frozen`; gradient, if wanted, is by x.
inline double yolo_loss(const YoloCase& c, const std::vector<double>& x, const std::vector<double>& frozen,
                        std::vector<double>* gradient = nullptr) {
  const auto huber = [&](double e) {
    return std::fabs(e) <= c.huber_delta ? e * e / 2 : c.huber_delta * (std::fabs(e) - c.huber_delta / 2);
  };
  const auto sigmoid_ce = [](double t, double target) {
    return std::max(t, 0.0) - t * target + std::log1p(std::exp(-std::fabs(t)));
  };
  if (gradient) gradient->assign(x.size(), 0.0);
  double loss = 0;
  for (size_t cell = 0; cell < c.rows * c.columns; ++cell) {
    size_t best = SIZE_MAX;
    for (size_t a = 0; a < c.anchors; ++a) {
      const size_t k = (cell * c.anchors + a) * c.box;
      if (c.labels[k + 4] == 0) continue;
      if (best == SIZE_MAX ||
          yolo_iou(c, frozen, k, a) > yolo_iou(c, frozen, (cell * c.anchors + best) * c.box, best)) {
        best = a;
      }
    }
    for (size_t a = 0; a < c.anchors; ++a) {
      const size_t k = (cell * c.anchors + a) * c.box;
      const bool present = c.labels[k + 4] != 0;
      const double iou = present ? yolo_iou(c, frozen, k, a) : 0;
      if (present && (a == best || iou >= c.object_min_iou)) {
        const double tw = std::log(c.labels[k + 2] / c.sizes[2 * a]),
                     th = std::log(c.labels[k + 3] / c.sizes[2 * a + 1]);
        const double target = c.rescore ? iou : 1;
        for (size_t j = 0; j < 2; ++j) {
          const double s = yolo_sigmoid(x[k + j]), e = s - c.labels[k + j];
          loss += c.xy * e * e;
          if (gradient) (*gradient)[k + j] = c.xy * 2 * e * s * (1 - s);
        }
        loss += c.wh * (huber(x[k + 2] - tw) + huber(x[k + 3] - th)) + c.object * sigmoid_ce(x[k + 4], target);
        double sum = 0, labels = 0;
        for (size_t j = 5; j < c.box; ++j) sum += std::exp(x[k + j]), labels += c.labels[k + j];
        for (size_t j = 5; j < c.box; ++j) loss -= c.classification * c.labels[k + j] * (x[k + j] - std::log(sum));
        if (!gradient) continue;
        (*gradient)[k + 2] = c.wh * std::clamp(x[k + 2] - tw, -c.huber_delta, c.huber_delta);
        (*gradient)[k + 3] = c.wh * std::clamp(x[k + 3] - th, -c.huber_delta, c.huber_delta);
        (*gradient)[k + 4] = c.object * (yolo_sigmoid(x[k + 4]) - target);
        for (size_t j = 5; j < c.box; ++j) {
          (*gradient)[k + j] = c.classification * (std::exp(x[k + j]) / sum * labels - c.labels[k + j]);
        }
      } else if (!present || iou <= c.no_object_max_iou) {
        loss += c.no_object * sigmoid_ce(x[k + 4], 0);
        if (gradient) (*gradient)[k + 4] = c.no_object * yolo_sigmoid(x[k + 4]);
      }
    }
  }
  return loss;
}

}  // namespace bnns::ref

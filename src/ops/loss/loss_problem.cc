// make_loss_problem: every check that does not need data, by the common beginning of the parameter structures.

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/ops/loss/loss.h"

namespace bnns {
namespace {

constexpr const char* kOp = "loss";

// NULL for a value that is none of the ten.
const char* function_name(BNNSLossFunction function) {
  switch (function) {
    case BNNSLossFunctionSoftmaxCrossEntropy:
      return "softmax_ce";
    case BNNSLossFunctionSigmoidCrossEntropy:
      return "sigmoid_ce";
    case BNNSLossFunctionMeanSquareError:
      return "mse";
    case BNNSLossFunctionHuber:
      return "huber";
    case BNNSLossFunctionYolo:
      return "yolo";
    case BNNSLossFunctionLog:
      return "log";
    case BNNSLossFunctionCosineDistance:
      return "cosine";
    case BNNSLossFunctionHinge:
      return "hinge";
    case BNNSLossFunctionMeanAbsoluteError:
      return "mae";
    case BNNSLossFunctionCategoricalCrossEntropy:
      return "categorical_ce";
  }
  return nullptr;
}

const char* reduction_name(BNNSLossReductionFunction reduction) {
  switch (reduction) {
    case BNNSLossReductionNone:
      return "none";
    case BNNSLossReductionSum:
      return "sum";
    case BNNSLossReductionWeightedMean:
      return "weighted_mean";
    case BNNSLossReductionMean:
      return "mean";
    case BNNSLossReductionNonZeroWeightMean:
      return "nonzero_weight_mean";
  }
  return nullptr;
}

// out is contiguous whatever o_desc says, so little of it matters: the type, and with reduction None the promise that
// a sample has space for its terms. An o_desc without layout and extents takes the input's type.
void read_output(const BNNSNDArrayDescriptor& d, LossProblem* p) {
  bool described = d.layout != 0;
  for (size_t extent : d.size) described |= extent != 0;
  if (!described) {
    p->out_type = d.data_type == 0 ? p->x.type : d.data_type;
    p->out_count = p->reduced() ? 1 : p->terms();
  } else {
    const Tensor out = resolve(d, kOp, "o_desc");
    if (!out.dense) fail_invalid("%s: o_desc has gaps, expected contiguous values", kOp);
    p->out_type = out.type;
    p->out_count = out.count;
    if (!p->reduced() && out.count % p->terms() != 0) {
      fail_invalid("%s: o_desc has %zu elements, expected %zu = the losses of one sample of %s with reduction none",
                   kOp, out.count, p->terms(), function_name(p->function));
    }
  }
  if (!is_float(p->out_type)) {
    fail_unsupported("%s: o_desc has type %s; losses are f32, f16 or bf16", kOp, type_name(p->out_type));
  }
}

void check_finite(float value, const char* field) {
  if (!std::isfinite(value)) fail_invalid("%s: %s is %g, expected a finite number", kOp, field, value);
}

void read_yolo(const BNNSLayerParametersLossYolo& layer, LossProblem* p) {
  if (p->reduction != BNNSLossReductionSum) {
    fail_invalid("%s: reduction is %s, expected sum: yolo has no other", kOp, reduction_name(p->reduction));
  }
  YoloGrid& grid = p->yolo;
  grid.rows = layer.number_of_grid_rows;
  grid.columns = layer.number_of_grid_columns;
  grid.anchors = layer.number_of_anchor_boxes;
  grid.box = layer.anchor_box_size;
  if (grid.box < 5) {
    fail_invalid("%s: anchor_box_size is %zu, expected at least 5 = x, y, w, h and confidence", kOp, grid.box);
  }
  size_t count = checked_mul(grid.rows, grid.columns, "loss: number_of_grid_rows and number_of_grid_columns");
  count = checked_mul(count, grid.anchors, "loss: number_of_anchor_boxes and the grid");
  count = checked_mul(count, grid.box, "loss: anchor_box_size and the boxes of the grid");
  if (count != p->x.count) {
    fail_invalid("%s: i_desc has %zu elements, expected %zu = %zu rows * %zu columns * %zu anchors * %zu values", kOp,
                 p->x.count, count, grid.rows, grid.columns, grid.anchors, grid.box);
  }
  p->huber_delta = layer.huber_delta == 0 ? 1 : layer.huber_delta;
  grid.rescore = layer.rescore;
  const struct {
    const char* name;
    float value;
    float* to;
  } numbers[] = {{"scale_xy", layer.scale_xy, &grid.scale_xy},
                 {"scale_wh", layer.scale_wh, &grid.scale_wh},
                 {"scale_object", layer.scale_object, &grid.scale_object},
                 {"scale_no_object", layer.scale_no_object, &grid.scale_no_object},
                 {"scale_classification", layer.scale_classification, &grid.scale_class},
                 {"object_minimum_iou", layer.object_minimum_iou, &grid.object_min_iou},
                 {"no_object_maximum_iou", layer.no_object_maximum_iou, &grid.no_object_max_iou}};
  for (const auto& number : numbers) {
    check_finite(number.value, number.name);
    *number.to = number.value;
  }
  check_data(layer.anchors_data, BNNSDataTypeFloat32, kOp, "anchors_data");
  for (size_t k = 0; k < 2 * grid.anchors; ++k) {
    const float size = layer.anchors_data[k];
    if (!(size > 0) || !std::isfinite(size)) {
      fail_invalid("%s: anchors_data[%zu] is %g, expected a size above 0", kOp, k, size);
    }
  }
  grid.anchor_sizes = layer.anchors_data;
}

}  // namespace

LossProblem make_loss_problem(const void* layer_params) {
  if (!layer_params) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersLoss structure", kOp);
  if (reinterpret_cast<uintptr_t>(layer_params) % alignof(BNNSLayerParametersLossBase) != 0) {
    fail_invalid("%s: layer_params is %p, expected a multiple of %zu", kOp, layer_params,
                 alignof(BNNSLayerParametersLossBase));
  }
  const auto& base = *static_cast<const BNNSLayerParametersLossBase*>(layer_params);
  LossProblem p;
  p.function = base.function;
  p.reduction = base.reduction;
  if (!function_name(p.function)) {
    fail_invalid("%s: function is %s", kOp, enum_text(p.function).text);
  }
  if (!reduction_name(p.reduction)) {
    fail_invalid("%s: reduction is %s", kOp, enum_text(p.reduction).text);
  }
  p.x = resolve(base.i_desc, kOp, "i_desc");
  p.x.data = nullptr;
  if (!is_float(p.x.type)) {
    fail_unsupported("%s: i_desc has type %s; losses take f32, f16 or bf16", kOp, type_name(p.x.type));
  }
  if (p.x.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: i_desc has layout OIHW_Pack32, which is for weights alone", kOp);
  }
  switch (p.function) {
    case BNNSLossFunctionSoftmaxCrossEntropy:
      p.label_smooth = static_cast<const BNNSLayerParametersLossSoftmaxCrossEntropy*>(layer_params)->label_smooth;
      break;
    case BNNSLossFunctionSigmoidCrossEntropy:
      p.label_smooth = static_cast<const BNNSLayerParametersLossSigmoidCrossEntropy*>(layer_params)->label_smooth;
      break;
    case BNNSLossFunctionHuber:
      p.huber_delta = static_cast<const BNNSLayerParametersLossHuber*>(layer_params)->huber_delta;
      break;
    case BNNSLossFunctionYolo:
      read_yolo(*static_cast<const BNNSLayerParametersLossYolo*>(layer_params), &p);
      break;
    default:
      break;
  }
  if (!(p.label_smooth >= 0 && p.label_smooth <= 1)) {
    fail_invalid("%s: label_smooth is %g, expected a number from 0 to 1", kOp, p.label_smooth);
  }
  if (!(p.huber_delta > 0) || !std::isfinite(p.huber_delta)) {
    fail_invalid("%s: huber_delta is %g, expected a number above 0", kOp, p.huber_delta);
  }
  read_output(base.o_desc, &p);
  return p;
}

std::string LossProblem::text() const {
  std::string result = std::string("loss ") + function_name(function);
  result += ' ' + x.text() + ' ' + reduction_name(reduction);
  char number[48] = "";
  if (label_smooth != 0) std::snprintf(number, sizeof number, " ls%g", label_smooth);
  if (huber_delta != 1) std::snprintf(number, sizeof number, " delta%g", huber_delta);
  result += number;
  if (is_yolo()) {
    result += " grid" + std::to_string(yolo.rows) + 'x' + std::to_string(yolo.columns) + " anchors" +
              std::to_string(yolo.anchors) + " box" + std::to_string(yolo.box);
  }
  return result;
}

}  // namespace bnns

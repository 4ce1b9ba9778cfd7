// Losses, and the steps of optimizers.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "python/src/filters.h"

namespace openbnns {

namespace {

using Handle = nb::handle;
constexpr bool kRead = false, kWritten = true, kNeeded = false, kOptional = true;

struct Loss : Filter {
  std::size_t terms = 0;  // losses that each sample writes; 0: all are reduced to one number
  std::vector<float> anchors;
};

// Yolo's numbers, in the order of BNNSLayerParametersLossYolo.
struct Yolo {
  float huber_delta = 1;
  std::size_t columns = 1, rows = 1, anchor_boxes = 1, anchor_box_size = 5;
  bool rescore = false;
  float scale_xy = 1, scale_wh = 1, scale_object = 1, scale_no_object = 1, scale_classification = 1;
  float object_minimum_iou = 0, no_object_maximum_iou = 0;
  std::vector<float> anchors;
};

void make_loss(Loss& f, std::uint32_t function, Handle x, Handle y, std::uint32_t reduction, float number,
               const Yolo& yolo, const Options& o) {
  constexpr auto where = "LossLayer";
  BNNSLayerParametersLossYolo p{};
  p.function = static_cast<BNNSLossFunction>(function);
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  Array one;
  one.rank = 1, one.shape[0] = 1, one.stride[0] = 1, one.type = f.input[0].form.type;
  if (y.is_none()) {
    p.o_desc = describe(one, Role::vector, where, "output");
    f.output = Expected(p.o_desc, one);
  } else {
    p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  }
  p.reduction = static_cast<BNNSLossReductionFunction>(reduction);
  const BNNSFilterParameters options = o.c();
  const bool per_sample = function == BNNSLossFunctionSoftmaxCrossEntropy ||
                          function == BNNSLossFunctionCosineDistance ||
                          function == BNNSLossFunctionCategoricalCrossEntropy;
  f.terms = reduction != BNNSLossReductionNone ? 0 : per_sample ? 1 : f.input[0].form.count;
  if (f.terms > 0) {
    Array form = f.input[0].form;
    if (per_sample) form = one;
    form.type = f.output.form.type, form.packed = true;
    p.o_desc = describe(form, Role::generic, where, "output");
    for (std::size_t& s : p.o_desc.stride) s = 0;
    f.output = Expected(p.o_desc, form);
  }
  p.huber_delta = number;
  if (function == BNNSLossFunctionYolo) {
    f.anchors = yolo.anchors;
    if (f.anchors.size() != 2 * yolo.anchor_boxes) {
      refuse(where, "anchors has " + std::to_string(f.anchors.size()) + " numbers, expected " +
                        std::to_string(2 * yolo.anchor_boxes));
    }
    p.huber_delta = yolo.huber_delta, p.number_of_grid_columns = yolo.columns, p.number_of_grid_rows = yolo.rows;
    p.number_of_anchor_boxes = yolo.anchor_boxes, p.anchor_box_size = yolo.anchor_box_size, p.rescore = yolo.rescore;
    p.scale_xy = yolo.scale_xy, p.scale_wh = yolo.scale_wh, p.scale_object = yolo.scale_object;
    p.scale_no_object = yolo.scale_no_object, p.scale_classification = yolo.scale_classification;
    p.object_minimum_iou = yolo.object_minimum_iou, p.no_object_maximum_iou = yolo.no_object_maximum_iou;
    p.anchors_data = f.anchors.data();
  }
  // Every structure of a loss begins alike; label_smooth and huber_delta stand at the same place.
  f.own(BNNSFilterCreateLayerLoss(&p, &options), where);
}

struct Weights {
  Weights(const Loss& f, Handle object, const char* where) {
    if (object.is_none()) return;
    Array made;
    const Array& a = array_of(object, made, where, "weights");
    if (a.type != f.input[0].form.type || !a.packed || !a.data) {
      refuse(where, std::string("weights are of dtype ") + type_name(a.type) + (a.packed ? "" : " with gaps") +
                        ", expected packed " + type_name(f.input[0].form.type));
    }
    data = a.data, count = a.count, hold = std::move(made.hold);
  }
  const void* data = nullptr;
  std::size_t count = 0;
  nb::ndarray<> hold{};
};

void apply_loss(Loss& f, std::size_t n, Handle x, Handle labels, Handle y, Handle weights, Handle dx) {
  const BNNSFilter filter = f.live("apply");
  constexpr auto where = "LossLayer";
  const Bound in = bind(x, f.input[0], n, kRead, kNeeded, where, "input"),
              l = bind(labels, f.input[0], n, kRead, kNeeded, where, "labels"),
              out = bind(y, f.output, f.terms > 0 ? n : kWhole, kWritten, kNeeded, where, "output");
  const Weights w(f, weights, where);
  Gradient gx(dx, f.input[0], n, kWritten, kOptional, where, "generating_input_gradient");
  unlocked(where, [&] {
    return BNNSLossFilterApplyBatch(filter, n, in.data, in.stride, l.data, l.stride, w.data, w.count, out.data,
                                    gx.get(), gx.stride);
  });
}

void apply_loss_backward(Loss& f, std::size_t n, Handle x, Handle labels, Handle dy, Handle dx, Handle weights) {
  const BNNSFilter filter = f.live("apply_backward");
  constexpr auto where = "LossLayer";
  const Bound in = bind(x, f.input[0], n, kRead, kNeeded, where, "input"),
              l = bind(labels, f.input[0], n, kRead, kNeeded, where, "labels");
  const Weights w(f, weights, where);
  Gradient gx(dx, f.input[0], n, kWritten, kNeeded, where, "generating_input_gradient"),
      gy(dy, f.output, f.terms > 0 ? n : kWhole, kRead, kNeeded, where, "output_gradient");
  unlocked(where, [&] {
    return BNNSLossFilterApplyBackwardBatch(filter, n, in.data, in.stride, gx.get(), gx.stride, l.data, l.stride,
                                            w.data, w.count, gy.get(), gy.stride);
  });
}

// One step over lists of arrays. The descriptors are made once, when the optimizer first sees the arrays.
class Stepper {
 public:
  Stepper(const std::vector<nb::object>& parameters, const std::vector<nb::object>& gradients,
          const std::vector<nb::object>& accumulators) {
    if (gradients.size() != parameters.size()) {
      refuse("optimizer",
             std::to_string(parameters.size()) + " parameters, but " + std::to_string(gradients.size()) + " gradients");
    }
    fill(w_, parameters, "parameters", true), fill(g_, gradients, "gradients", false);
    fill(a_, accumulators, "accumulators", true);
    for (Desc& d : w_) wp_.push_back(&d);
    for (Desc& d : g_) gp_.push_back(&d);
    for (Desc& d : a_) ap_.push_back(&d);
  }

  template <class Fields>
  void step(std::uint32_t function, Fields& f, std::size_t multiplier, std::uint32_t clipping, float low, float high,
            float norm, float use, const char* where) {
    if (a_.size() != multiplier * w_.size()) {
      refuse(where,
             "expected " + std::to_string(multiplier * w_.size()) + " accumulators, got " + std::to_string(a_.size()));
    }
    f.clipping_func = static_cast<BNNSOptimizerClippingFunction>(clipping);
    f.clip_gradients_min = low, f.clip_gradients_max = high, f.clip_gradients_max_norm = norm;
    f.clip_gradients_use_norm = use;
    unlocked(where, [&] {
      return BNNSOptimizerStep(static_cast<BNNSOptimizerFunction>(function), &f, w_.size(), wp_.data(), gp_.data(),
                               a_.empty() ? nullptr : ap_.data(), nullptr);
    });
  }

  void adam(bool decoupled, bool amsgrad, float lr, float beta1, float beta2, float t, float epsilon, float scale,
            float decay, std::uint32_t regularization, std::uint32_t clipping, float low, float high, float norm,
            float use) {
    BNNSOptimizerAdamWithClippingFields f{};
    f.learning_rate = lr, f.beta1 = beta1, f.beta2 = beta2, f.time_step = t, f.epsilon = epsilon;
    f.gradient_scale = scale, f.regularization_scale = decay;
    f.regularization_func = static_cast<BNNSOptimizerRegularizationFunction>(regularization);
    const std::uint32_t function =
        decoupled ? (amsgrad ? BNNSOptimizerFunctionAdamWAMSGradWithClipping : BNNSOptimizerFunctionAdamWWithClipping)
                  : (amsgrad ? BNNSOptimizerFunctionAdamAMSGradWithClipping : BNNSOptimizerFunctionAdamWithClipping);
    step(function, f, amsgrad ? 3 : 2, clipping, low, high, norm, use, decoupled ? "AdamWOptimizer" : "AdamOptimizer");
  }
  void rmsprop(float lr, float alpha, float epsilon, bool centered, float momentum, float scale, float decay,
               std::uint32_t regularization, std::uint32_t clipping, float low, float high, float norm, float use) {
    BNNSOptimizerRMSPropWithClippingFields f{};
    f.learning_rate = lr, f.alpha = alpha, f.epsilon = epsilon, f.centered = centered, f.momentum = momentum;
    f.gradient_scale = scale, f.regularization_scale = decay;
    f.regularization_func = static_cast<BNNSOptimizerRegularizationFunction>(regularization);
    step(BNNSOptimizerFunctionRMSPropWithClipping, f, 1 + std::size_t{centered} + std::size_t{momentum != 0}, clipping,
         low, high, norm, use, "RMSPropOptimizer");
  }
  void sgd(float lr, float momentum, bool nesterov, std::uint32_t variant, float scale, float decay,
           std::uint32_t regularization, std::uint32_t clipping, float low, float high, float norm, float use) {
    BNNSOptimizerSGDMomentumWithClippingFields f{};
    f.learning_rate = lr, f.momentum = momentum, f.nesterov = nesterov;
    f.sgd_momentum_variant = static_cast<BNNSOptimizerSGDMomentumVariant>(variant);
    f.gradient_scale = scale, f.regularization_scale = decay;
    f.regularization_func = static_cast<BNNSOptimizerRegularizationFunction>(regularization);
    step(BNNSOptimizerFunctionSGDMomentumWithClipping, f, momentum != 0 ? 1 : 0, clipping, low, high, norm, use,
         "SGDMomentumOptimizer");
  }

 private:
  void fill(std::vector<Desc>& list, const std::vector<nb::object>& objects, const char* label, bool written) {
    for (const nb::object& o : objects) {
      Array made;
      made = written ? output_of(o, made, "optimizer", label) : array_of(o, made, "optimizer", label);
      list.push_back(describe(made, Role::vector, "optimizer", label));
      kept_.push_back(std::move(made));
    }
  }
  std::vector<Array> kept_;
  std::vector<Desc> w_, g_, a_;
  std::vector<Desc*> wp_, ap_;
  std::vector<const Desc*> gp_;
};

}  // namespace

void bind_losses(nb::module_& m) {
  const auto none = [](const char* name) { return nb::arg(name).none() = nb::none(); };
  nb::class_<Yolo>(m, "YoloParameters")
      .def(nb::init<>())
      .def_rw("huber_delta", &Yolo::huber_delta)
      .def_rw("grid_columns", &Yolo::columns)
      .def_rw("grid_rows", &Yolo::rows)
      .def_rw("anchor_boxes", &Yolo::anchor_boxes)
      .def_rw("anchor_box_size", &Yolo::anchor_box_size)
      .def_rw("rescore", &Yolo::rescore)
      .def_rw("scale_xy", &Yolo::scale_xy)
      .def_rw("scale_wh", &Yolo::scale_wh)
      .def_rw("scale_object", &Yolo::scale_object)
      .def_rw("scale_no_object", &Yolo::scale_no_object)
      .def_rw("scale_classification", &Yolo::scale_classification)
      .def_rw("object_minimum_iou", &Yolo::object_minimum_iou)
      .def_rw("no_object_maximum_iou", &Yolo::no_object_maximum_iou)
      .def_rw("anchors", &Yolo::anchors);
  nb::class_<Loss, Filter>(m, "LossFilter")
      .def(nb::init<>())
      .def("apply", &apply_loss, nb::arg("batch_size"), nb::arg("input"), nb::arg("labels"), nb::arg("output"),
           none("weights"), none("generating_input_gradient"))
      .def("apply_backward", &apply_loss_backward, nb::arg("batch_size"), nb::arg("input"), nb::arg("labels"),
           nb::arg("output_gradient"), nb::arg("generating_input_gradient"), none("weights"));
  m.def("make_loss", &make_loss, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg());
  nb::class_<Stepper>(m, "Stepper", "The arrays of an optimizer, described once.")
      .def(nb::init<const std::vector<nb::object>&, const std::vector<nb::object>&, const std::vector<nb::object>&>(),
           nb::arg("parameters"), nb::arg("gradients"), nb::arg("accumulators"))
      .def("adam", &Stepper::adam)
      .def("rmsprop", &Stepper::rmsprop)
      .def("sgd", &Stepper::sgd);
}

}  // namespace openbnns

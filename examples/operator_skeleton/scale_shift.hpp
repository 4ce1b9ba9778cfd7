// The overlay class of the skeleton's operator, as include/bnns/overlay/unary_layers.hpp has those of the library.
#pragma once

#include <bnns/bnns.hpp>

#include "examples/operator_skeleton/scale_shift_ext.h"

namespace bnns {

/// Each channel of the input times a number, plus a number.
class ScaleShiftLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc input, output;
    Desc scale;
    OptDesc shift{};
    std::size_t axis;  ///< of the channels, an index of the input's sizes
    OptFilterParams filterParameters{};
  };
  explicit ScaleShiftLayer(const Parameters& p)
      : UnaryLayer(create(p), "ScaleShiftLayer", "BNNSExtFilterCreateLayerScaleShift",
                   {p.input, p.output, p.scale, p.shift}) {}

  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    OptOutput generatingInputGradient{}, generatingScaleGradient{}, generatingShiftGradient{};
  };
  /// The output is not read.
  void applyBackward(const Backward& a) {
    backward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient, a.generatingScaleGradient,
             a.generatingShiftGradient, "generatingScaleGradient");
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSExtLayerParametersScaleShift layer{};
    layer.i_desc = p.input, layer.o_desc = p.output;
    layer.scale = p.scale, layer.shift = detail::orAbsent(p.shift), layer.axis = p.axis;
    return ::BNNSExtFilterCreateLayerScaleShift(&layer, detail::pointer(p.filterParameters));
  }
};

}  // namespace bnns

// The stand-alone activation layer's problem; its filter is in activation_filter.h, its arithmetic in
// src/engine/activation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/engine/activation/activation.h"
#include "src/tensor/tensor.h"

namespace bnns {

// Everything a stand-alone layer needs, checked. i and o have equally many elements, paired in memory order
// (GumbelMax: o has one element per row of i).
struct ActivationProblem {
  Activation activation;
  Tensor i, o;
  uint32_t row_axes = 0;  // Softmax, LogSoftmax, GumbelMax: bit k is the axis of i.size[k], bit i.rank the batch
  size_t channels = 0;    // PReLUPerChannel, IntegerLinearSaturatePerChannel
  bool integer = false;   // computed on integers as they are stored: (iscale x + ioffset) >> ishift, saturated
  int32_t iscale = 1, ioffset = 0, ishift = 0;
  const int32_t* iscale_per_channel = nullptr;  // the client's; the filter copies them
  const int32_t* ioffset_per_channel = nullptr;
  const int32_t* ishift_per_channel = nullptr;

  std::string text() const;  // "activation softmax f32 10 -> f32 10"
};

// Every check that does not depend on data pointers.
ActivationProblem make_activation_problem(const BNNSLayerParametersActivation* layer);

}  // namespace bnns

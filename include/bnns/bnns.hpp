// OpenBNNS: the C++20 overlay. Header-only, on the BNNS C headers alone; the names are those of Apple's Swift classes.
//
//   using namespace bnns;
//   auto x = NDArray::from({1.0f, 2.0f}, {2}), w = NDArray::repeating(0.5f, Shape::matrixRowMajor(2, 1)),
//        y = NDArray::uninitialized<float>({1});
//   FullyConnectedLayer layer({.input = x, .output = y, .weights = w});
//   layer.apply(1, x, y);
//
// Layers and arrays own what they hold and can be moved. Every call compares its arrays with the layer: type, elements
// and batch. A refused call throws bnns::Error, which names the layer, the call and the reason;
// bnns::make<Layer>({...}) gives an empty optional instead of a layer that was refused. docs/overlay.md lists every
// Swift name with its C++ name.
#pragma once

// One line instead of hundreds. (-std=c++2a of older compilers has another number and is not enough.)
#if __cplusplus < 202002L
#error "<bnns/bnns.hpp> needs C++20: compile with -std=c++20 (the C headers, <bnns/bnns.h>, need C99 or C++11)"
#else

#include "overlay/activation.hpp"
#include "overlay/arguments.hpp"
#include "overlay/arithmetic.hpp"
#include "overlay/array.hpp"
#include "overlay/attention.hpp"
#include "overlay/checks.hpp"
#include "overlay/convolution.hpp"
#include "overlay/error.hpp"
#include "overlay/functions.hpp"
#include "overlay/fused.hpp"
#include "overlay/io.hpp"
#include "overlay/layer.hpp"
#include "overlay/loss.hpp"
#include "overlay/lstm.hpp"
#include "overlay/nearest_neighbors.hpp"
#include "overlay/normalization.hpp"
#include "overlay/optimizer.hpp"
#include "overlay/pooling.hpp"
#include "overlay/product.hpp"
#include "overlay/random.hpp"
#include "overlay/reduction.hpp"
#include "overlay/shape.hpp"
#include "overlay/types.hpp"
#include "overlay/unary_layers.hpp"

#endif

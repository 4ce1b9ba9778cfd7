// Metal Performance Shaders' CNN pooling kernels and their gradients, in metal-cpp manners, for C++17 on Linux: on the
// CPU and, where the library was built with CUDA, on NVIDIA GPUs. Link with libbnns_mps.so (OpenBNNS::mps).
#pragma once

#include "MPSCNNBinaryKernel.hpp"
#include "MPSCNNKernel.hpp"
#include "MPSCNNPooling.hpp"
#include "MPSCNNPoolingGradient.hpp"
#include "MPSImage.hpp"
#include "MPSKernel.hpp"
#include "MPSNNPadding.hpp"
#include "MPSState.hpp"
#include "MPSTypes.hpp"

// The part of Metal that the MPS pooling kernels need, in metal-cpp manners, for C++17 and later on Linux.
#pragma once

#include "../Foundation/Foundation.hpp"
#include "MTLCommandBuffer.hpp"
#include "MTLCommandQueue.hpp"
#include "MTLDevice.hpp"
#include "MTLTexture.hpp"
#include "MTLTypes.hpp"

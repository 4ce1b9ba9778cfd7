// metal-cpp has a header of this name; queue and buffer know each other and share one file.
#pragma once

#include "MTLCommandBuffer.hpp"

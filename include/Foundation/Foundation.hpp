// The part of Foundation that Metal and Metal Performance Shaders need, for C++17 and later on Linux.
#pragma once

#include "NSArray.hpp"
#include "NSAutoreleasePool.hpp"
#include "NSCoder.hpp"
#include "NSData.hpp"
#include "NSDefines.hpp"
#include "NSError.hpp"
#include "NSObject.hpp"
#include "NSSharedPtr.hpp"
#include "NSString.hpp"

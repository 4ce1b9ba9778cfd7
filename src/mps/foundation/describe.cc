// description() and debugDescription() of kernels.
#include "src/mps/foundation/describe.h"

#include <cstring>

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "src/mps/foundation/guard.h"
#include "src/mps/foundation/names.h"

namespace MPS {

using bnns::mps::name_of;
using bnns::mps::text_of;

namespace {

std::string window(NS::UInteger width, NS::UInteger height, NS::UInteger stride_x, NS::UInteger stride_y,
                   NS::UInteger dilation_x, NS::UInteger dilation_y) {
  std::string text = "kernel " + text_of(width, height) + ", stride " + text_of(stride_x, stride_y);
  if (dilation_x != 1 || dilation_y != 1) text += ", dilation " + text_of(dilation_x, dilation_y);
  return text;
}

std::string objects(const NNPadding& padding, const ImageAllocator& allocator) {
  const NS::String* label = padding.label();
  return "\n  padding = " + std::string(label ? label->utf8String() : padding.className()) +
         "\n  destinationImageAllocator = " + allocator.className();
}

// Sizes and counts whose largest number stands for everything; as an archive has them, that is -1.
bool is_count(const char* key) {
  const auto ends = [&](const char* end) {
    const size_t length = std::strlen(key), tail = std::strlen(end);
    return length >= tail && std::strcmp(key + length - tail, end) == 0;
  };
  return ends("MaxCount") || std::strstr(key, "ize.") != nullptr;
}

}  // namespace

NS::String* Kernel::description() const {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<NS::String*>(nullptr), [&] {
    std::string text = className();
    if (label_) text += " \"" + std::string(label_->utf8String()) + "\"";
    text += ": ";
    describe(text);
    return NS::String::string(text.c_str());
  });
}

NS::String* Kernel::debugDescription() const {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<NS::String*>(nullptr), [&] {
    std::string text = description()->utf8String();
    text += "\n  device = " + std::string(device_ ? device_->name()->utf8String() : "none: not initialised");
    describeObjects(text);
    visitNumbers([&](const char* key, NS::Integer value) {
      text += "\n  " + std::string(key) + " = " + (value == -1 && is_count(key) ? "all" : std::to_string(value));
    });
    return NS::String::string(text.c_str());
  });
}

void Kernel::describe(std::string&) const {}

void Kernel::describeObjects(std::string&) const {}

void CNNKernel::describe(std::string& text) const {
  text += window(p_.kernelWidth, p_.kernelHeight, p_.strideX, p_.strideY, p_.dilationX, p_.dilationY) + ", offset " +
          text_of(p_.offset) + ", edge mode " + name_of(p_.edgeMode);
}

void CNNKernel::describeObjects(std::string& text) const {
  text += objects(*padding_, *allocator_);
}

void CNNBinaryKernel::describe(std::string& text) const {
  const Source &p = p_.primary, &s = p_.secondary;
  // The window that counts: kernel and dilation of the secondary image, stride of the primary.
  text += window(s.kernelWidth, s.kernelHeight, p.strideX, p.strideY, s.dilationX, s.dilationY) + ", primary offset " +
          text_of(p.offset) + ", secondary offset " + text_of(s.offset) + ", edge mode " + name_of(s.edgeMode);
}

void CNNBinaryKernel::describeObjects(std::string& text) const {
  text += objects(*padding_, *allocator_);
}

void CNNGradientKernel::describe(std::string& text) const {
  CNNBinaryKernel::describe(text);
  if (kernelOffsetX_ != 0 || kernelOffsetY_ != 0) {
    text += ", kernel offset (" + std::to_string(kernelOffsetX_) + ", " + std::to_string(kernelOffsetY_) + ")";
  }
}

}  // namespace MPS

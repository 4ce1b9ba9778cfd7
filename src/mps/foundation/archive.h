// How kernels archive the padding and allocator objects they hold: by name, through a table of makers.
#pragma once

#include <map>
#include <string>

#include "MetalPerformanceShaders/MPSNNPadding.hpp"
#include "src/core/error.h"
#include "src/core/process/fork.h"

namespace bnns::mps {

template <class Class>
class ArchiveTable {
 public:
  using Make = Class* (*)(NS::Coder*);  // +1 reference, or null

  void add(const char* name, Make make) {
    if (!name || !make) fail_invalid("name or function is null");
    const ForkLock lock(mutex_);
    makers_[name] = make;
  }

  // Fails the coder where the object has no name or the name has no maker: a kernel without it would be another kernel.
  void encode(const Class* object, NS::Coder* coder, const char* key) {
    const char* name = object->archiveName();
    if (!name || !find(name)) {
      coder->fail((std::string(key) + " cannot be archived: its class has no registered archive name").c_str());
      return;
    }
    NS::Coder* inner = NS::Coder::coder();
    inner->encodeString(NS::String::string(name), "name");
    object->encode(inner);
    coder->encodeCoder(inner, key);
  }

  // Empty where the key is missing; throws where the object cannot be made.
  NS::SharedPtr<Class> decode(NS::Coder* coder, const char* key) {
    if (!coder->containsValue(key)) return {};
    NS::Coder* inner = coder->decodeCoder(key);
    NS::String* name = inner ? inner->decodeString("name") : nullptr;
    const Make make = name ? find(name->utf8String()) : nullptr;
    NS::SharedPtr<Class> object = NS::TransferPtr(make ? make(inner) : nullptr);
    if (!object) fail_invalid("%s: no such class as %s", key, name ? name->utf8String() : "(none)");
    return object;
  }

 private:
  Make find(const char* name) {
    const ForkLock lock(mutex_);
    const auto found = makers_.find(name);
    return found == makers_.end() ? nullptr : found->second;
  }

  ForkMutex mutex_;
  std::map<std::string, Make> makers_;
};

ArchiveTable<MPS::NNPadding>& padding_table();
ArchiveTable<MPS::ImageAllocator>& allocator_table();

}  // namespace bnns::mps

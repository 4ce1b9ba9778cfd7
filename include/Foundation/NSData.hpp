// Bytes.
#pragma once

#include <vector>

#include "NSObject.hpp"

namespace NS {

class BNNS_MPS_API Data : public Copying<Data> {
 public:
  // A copy of the bytes; null for a null pointer with a length.
  static Data* data(const void* bytes, UInteger length);

  void* mutableBytes() noexcept { return bytes_.data(); }
  const void* bytes() const noexcept { return bytes_.data(); }
  UInteger length() const noexcept { return bytes_.size(); }

  bool isEqual(const Object* other) const override;
  const char* className() const noexcept override;

 protected:
  Data() = default;
  ~Data() override = default;
  Object* copyObject() const override;

 private:
  std::vector<unsigned char> bytes_;
};

}  // namespace NS

// A keyed archive. The format is ours and is the same on every machine; Apple's keyed archives are not read.
#pragma once

#include "NSData.hpp"
#include "NSString.hpp"

namespace NS {

class BNNS_MPS_API Coder : public Referencing<Coder> {
 public:
  static Coder* coder();                  // empty, to encode into
  static Coder* coder(const Data* data);  // to decode from; null if the bytes are not such an archive

  void encodeInteger(Integer value, const char* key);
  void encodeString(const String* value, const char* key);  // a null string leaves the key out
  void encodeCoder(const Coder* value, const char* key);    // an archive inside this one
  // Says that the object cannot be archived; data() then is null.
  void fail(const char* reason);

  bool containsValue(const char* key) const;
  // The fallback where the key is missing or has another type.
  Integer decodeInteger(const char* key, Integer fallback = 0) const;
  String* decodeString(const char* key) const;  // null where missing
  Coder* decodeCoder(const char* key) const;    // null where missing or malformed

  bool failed() const noexcept;
  Data* data() const;  // the archive; null after fail()
  const char* className() const noexcept override;

 protected:
  // A subclass may also be an MPS::DeviceProvider.
  Coder();
  ~Coder() override;

 private:
  struct Values;
  Values* values_;
};

}  // namespace NS

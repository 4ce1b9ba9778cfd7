// Immutable UTF-8 text.
#pragma once

#include <string>

#include "NSObject.hpp"

namespace NS {

enum StringEncoding : UInteger { ASCIIStringEncoding = 1, UTF8StringEncoding = 4 };

class BNNS_MPS_API String : public Copying<String> {
 public:
  static String* string();
  static String* string(const String* other);
  // Null for a null pointer. The text is taken as it is.
  static String* string(const char* text, StringEncoding encoding = UTF8StringEncoding);
  static String* alloc();
  String* init();
  String* init(const char* text, StringEncoding encoding = UTF8StringEncoding);

  const char* utf8String() const noexcept { return text_.c_str(); }
  const char* cString(StringEncoding) const noexcept { return text_.c_str(); }
  UInteger length() const noexcept;  // characters of UTF-16, as Apple counts
  UInteger lengthOfBytes(StringEncoding) const noexcept { return text_.size(); }
  bool isEqualToString(const String* other) const noexcept;

  UInteger hash() const override;
  bool isEqual(const Object* other) const override;
  String* description() const override;
  const char* className() const noexcept override;

 protected:
  String() = default;
  ~String() override = default;
  Object* copyObject() const override;

 private:
  std::string text_;
};

}  // namespace NS

// metal-cpp's spelling of a literal.
#define MTLSTR(literal) NS::String::string("" literal "", NS::UTF8StringEncoding)

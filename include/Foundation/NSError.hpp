// What went wrong with a command buffer.
#pragma once

#include "NSSharedPtr.hpp"
#include "NSString.hpp"

namespace NS {

using ErrorDomain = String*;

class BNNS_MPS_API Error : public Copying<Error> {
 public:
  static Error* error(String* domain, Integer code, String* description);

  Integer code() const noexcept { return code_; }
  String* domain() const noexcept { return domain_.get(); }
  String* localizedDescription() const noexcept { return text_.get(); }
  String* description() const override;
  const char* className() const noexcept override;

 protected:
  Error() = default;
  ~Error() override = default;
  Object* copyObject() const override;

 private:
  Integer code_ = 0;
  SharedPtr<String> domain_, text_;
};

}  // namespace NS

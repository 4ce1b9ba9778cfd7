// NS::String, Array, Error, Data.
#include "Foundation/Foundation.hpp"

#include <cstring>
#include <functional>

namespace NS {

String* String::alloc() {
  return new String;
}

String* String::init() {
  return this;
}

String* String::init(const char* text, StringEncoding) {
  if (!text) {
    release();
    return nullptr;
  }
  text_ = text;
  return this;
}

String* String::string() {
  return alloc()->init()->autorelease();
}

String* String::string(const String* other) {
  return other ? string(other->utf8String()) : nullptr;
}

String* String::string(const char* text, StringEncoding encoding) {
  String* made = alloc()->init(text, encoding);
  return made ? made->autorelease() : nullptr;
}

UInteger String::length() const noexcept {
  UInteger units = 0;
  for (const char c : text_) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80) units += byte >= 0xF0 ? 2 : 1;  // four-byte characters are two units of UTF-16
  }
  return units;
}

bool String::isEqualToString(const String* other) const noexcept {
  return other && text_ == other->text_;
}

UInteger String::hash() const {
  return std::hash<std::string>()(text_);
}

bool String::isEqual(const Object* other) const {
  return isEqualToString(dynamic_cast<const String*>(other));
}

String* String::description() const {
  return string(this);
}

const char* String::className() const noexcept {
  return "NSString";
}

Object* String::copyObject() const {
  return alloc()->init(utf8String());
}

Array* Array::alloc() {
  return new Array;
}

Array* Array::init() {
  return this;
}

Array* Array::init(const Object* const* objects, UInteger count) {
  if (assign(objects, count)) return this;
  release();
  return nullptr;
}

Array* Array::array() {
  return alloc()->init()->autorelease();
}

Array* Array::array(const Object* object) {
  return array(&object, 1);
}

Array* Array::array(const Object* const* objects, UInteger count) {
  Array* made = alloc()->init(objects, count);
  return made ? made->autorelease() : nullptr;
}

bool Array::assign(const Object* const* objects, UInteger count) {
  if (count != 0 && !objects) return false;
  for (UInteger i = 0; i < count; ++i) {
    if (!objects[i]) return false;
  }
  objects_.reserve(count);
  // Counting references is not a change of the object, but retain is not const, as in metal-cpp.
  for (UInteger i = 0; i < count; ++i) objects_.push_back(const_cast<Object*>(objects[i])->retain());
  return true;
}

bool Array::isEqual(const Object* other) const {
  const auto* array = dynamic_cast<const Array*>(other);
  if (!array || array->count() != count()) return false;
  for (UInteger i = 0; i < count(); ++i) {
    if (!objects_[i]->isEqual(array->objects_[i])) return false;
  }
  return true;
}

Array::~Array() {
  for (Object* object : objects_) object->release();
}

const char* Array::className() const noexcept {
  return "NSArray";
}

Object* Array::copyObject() const {
  return alloc()->init(objects_.data(), count());
}

Error* Error::error(String* domain, Integer code, String* description) {
  auto* made = new Error;
  made->code_ = code;
  made->domain_ = RetainPtr(domain);
  made->text_ = RetainPtr(description);
  return made->autorelease();
}

String* Error::description() const {
  return text_ ? text_.get() : String::string("");
}

const char* Error::className() const noexcept {
  return "NSError";
}

Object* Error::copyObject() const {
  return error(domain_.get(), code_, text_.get())->retain();
}

Data* Data::data(const void* bytes, UInteger length) {
  if (!bytes && length != 0) return nullptr;
  auto* made = new Data;
  made->bytes_.resize(length);
  if (length != 0) std::memcpy(made->bytes_.data(), bytes, length);
  return made->autorelease();
}

bool Data::isEqual(const Object* other) const {
  const auto* data = dynamic_cast<const Data*>(other);
  return data && data->bytes_ == bytes_;
}

const char* Data::className() const noexcept {
  return "NSData";
}

Object* Data::copyObject() const {
  return data(bytes(), length())->retain();
}

}  // namespace NS

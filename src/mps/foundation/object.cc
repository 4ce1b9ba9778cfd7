// NS::Object and autorelease pools.
//
// A thread has a stack of pools. Below the ones that the program makes there is one of the thread's own, drained when
// the thread ends, so that autoreleased objects do not leak in programs that never make a pool.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "Foundation/Foundation.hpp"

namespace NS {
namespace {

struct Pool {
  const AutoreleasePool* owner;  // null: the thread's own
  std::vector<Object*> objects;
};

struct PoolStack {
  std::vector<Pool> pools;

  ~PoolStack();
  // Ends pools [first, end). Releasing an object may autorelease others; these join the pool that is being drained.
  void drain(size_t first) {
    while (pools.size() > first) {
      while (!pools.back().objects.empty()) {
        std::vector<Object*> objects;
        objects.swap(pools.back().objects);
        for (Object* object : objects) object->release();
      }
      pools.pop_back();
    }
  }
};

// What is autoreleased after the stack is gone, by an atexit handler or the destructor of a static variable, is never
// released: its caller still uses it, and there is no later moment.
thread_local bool stack_is_gone = false;

PoolStack::~PoolStack() {
  drain(0);
  stack_is_gone = true;
}

PoolStack& stack() {
  thread_local PoolStack pools;
  return pools;
}

}  // namespace

Object::Object() noexcept = default;
Object::~Object() = default;

Object* Object::retain() noexcept {
  references_.fetch_add(1, std::memory_order_relaxed);
  return this;
}

void Object::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Object* Object::autorelease() {
  AutoreleasePool::addObject(this);
  return this;
}

UInteger Object::retainCount() const noexcept {
  return references_.load(std::memory_order_relaxed);
}

UInteger Object::hash() const {
  return reinterpret_cast<UInteger>(this);
}

bool Object::isEqual(const Object* other) const {
  return this == other;
}

String* Object::description() const {
  return String::string(className());
}

String* Object::debugDescription() const {
  return description();
}

const char* Object::className() const noexcept {
  return "NSObject";
}

AutoreleasePool* AutoreleasePool::alloc() {
  return new AutoreleasePool;
}

AutoreleasePool* AutoreleasePool::init() {
  if (!stack_is_gone) stack().pools.push_back({this, {}});
  return this;
}

void AutoreleasePool::drain() {
  release();
}

void AutoreleasePool::addObject(Object* object) {
  if (!object || stack_is_gone) return;
  auto& pools = stack().pools;
  if (pools.empty()) pools.push_back({nullptr, {}});
  pools.back().objects.push_back(object);
}

AutoreleasePool::~AutoreleasePool() {
  if (stack_is_gone) return;
  auto& pools = stack().pools;
  const auto mine = std::find_if(pools.begin(), pools.end(), [&](const Pool& pool) { return pool.owner == this; });
  // A pool released on another thread, or ended by an outer one already, has nothing left here.
  if (mine != pools.end()) stack().drain(static_cast<size_t>(mine - pools.begin()));
}

const char* AutoreleasePool::className() const noexcept {
  return "NSAutoreleasePool";
}

}  // namespace NS

// Pools of objects to be released later. A thread without a pool has one that is drained when the thread ends.
#pragma once

#include "NSObject.hpp"

namespace NS {

class BNNS_MPS_API AutoreleasePool : public Referencing<AutoreleasePool> {
 public:
  static AutoreleasePool* alloc();
  AutoreleasePool* init();  // becomes the thread's innermost pool

  // Releases everything in this pool and in pools opened inside it, and ends the pool. release() does the same.
  void drain();
  // Adds to the thread's innermost pool.
  static void addObject(Object* object);
  const char* className() const noexcept override;

 protected:
  AutoreleasePool() noexcept = default;
  ~AutoreleasePool() override;
};

}  // namespace NS

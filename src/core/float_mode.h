// The mode of floating-point arithmetic inside a call: rounding to nearest, no traps, subnormal operands and results
// taken as zeros. Without it sums over subnormal numbers are up to 190 times slower (each takes a microcode assist),
// and the caller's rounding mode would reach the tasks that the caller runs, but not those of the workers.
//
// A caller's mode and exception flags are as before when the call returns, or throws.
#pragma once

namespace bnns {

#if defined(__x86_64__)

class FloatMode {
 public:
  FloatMode() noexcept : callers_(__builtin_ia32_stmxcsr()) {
    if ((callers_ & ~kFlags) != kInside) __builtin_ia32_ldmxcsr(kInside);
  }
  ~FloatMode() {
    if (__builtin_ia32_stmxcsr() != callers_) __builtin_ia32_ldmxcsr(callers_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  static constexpr unsigned kFlags = 0x003f;   // which exceptions have been raised
  static constexpr unsigned kInside = 0x9fc0;  // flush to zero, all exceptions masked, denormals are zeros, to nearest
  unsigned callers_;
};

#else

class FloatMode {
 public:
  FloatMode() noexcept {}
};

#endif

}  // namespace bnns

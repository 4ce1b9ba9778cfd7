// Whether layers may use algorithms that round more than plain sums: BNNS_PRECISION.
#pragma once

namespace bnns {

// BNNS_PRECISION=strict, or what was set last. A text that means nothing is named in a message and ignored.
bool strict_precision() noexcept;
void set_strict_precision(bool strict) noexcept;

}  // namespace bnns

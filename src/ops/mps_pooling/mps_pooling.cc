// The text form of an encode.
#include "src/ops/mps_pooling/mps_pooling.h"

#include <cstdio>

namespace bnns::mps {

std::string text_of(const PoolEncode& e) {
  static constexpr const char* kKinds[] = {"max_pool", "average_pool", "l2_pool"};
  static constexpr const char* kTypes[] = {"f32", "f16", "unorm8", "unorm16"};
  const auto number = [](int64_t n) { return static_cast<long long>(n); };
  const int64_t wx = e.backward ? e.gradient_width : e.width, wy = e.backward ? e.gradient_height : e.height;
  char text[240];
  std::snprintf(text, sizeof text, "%s%s %s n%lld c%lld h%lldx%lld w%lldx%lld k%lldx%lld s%lldx%lld d%lldx%lld %s",
                kKinds[static_cast<int>(e.kind)], e.backward ? " gradient" : "",
                kTypes[static_cast<int>(e.target.type)], number(e.images), number(e.channels), number(e.source.height),
                number(wy), number(e.source.width), number(wx), number(e.y.kernel), number(e.x.kernel),
                number(e.y.stride), number(e.x.stride), number(e.y.dilation), number(e.x.dilation),
                e.edge == PoolEdge::zero ? "zero" : "clamp");
  return text;
}

}  // namespace bnns::mps

// Plain structs and enumerators of Metal, with Metal's numbers.
#pragma once

#include "../Foundation/NSDefines.hpp"

namespace MTL {

struct Origin {
  NS::UInteger x = 0, y = 0, z = 0;
  constexpr Origin() = default;
  constexpr Origin(NS::UInteger ox, NS::UInteger oy, NS::UInteger oz) : x(ox), y(oy), z(oz) {}
  static constexpr Origin Make(NS::UInteger x, NS::UInteger y, NS::UInteger z) { return Origin(x, y, z); }
};

struct Size {
  NS::UInteger width = 0, height = 0, depth = 0;
  constexpr Size() = default;
  constexpr Size(NS::UInteger w, NS::UInteger h, NS::UInteger d) : width(w), height(h), depth(d) {}
  static constexpr Size Make(NS::UInteger w, NS::UInteger h, NS::UInteger d) { return Size(w, h, d); }
};

struct Region {
  Origin origin;
  Size size;
  constexpr Region() = default;
  constexpr Region(Origin o, Size s) : origin(o), size(s) {}
  constexpr Region(NS::UInteger x, NS::UInteger y, NS::UInteger width, NS::UInteger height)
      : origin(x, y, 0), size(width, height, 1) {}
  constexpr Region(NS::UInteger x, NS::UInteger y, NS::UInteger z, NS::UInteger width, NS::UInteger height,
                   NS::UInteger depth)
      : origin(x, y, z), size(width, height, depth) {}
  static constexpr Region Make2D(NS::UInteger x, NS::UInteger y, NS::UInteger width, NS::UInteger height) {
    return Region(x, y, width, height);
  }
  static constexpr Region Make3D(NS::UInteger x, NS::UInteger y, NS::UInteger z, NS::UInteger width,
                                 NS::UInteger height, NS::UInteger depth) {
    return Region(x, y, z, width, height, depth);
  }
};

inline constexpr bool operator==(const Origin& a, const Origin& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}
inline constexpr bool operator==(const Size& a, const Size& b) {
  return a.width == b.width && a.height == b.height && a.depth == b.depth;
}
inline constexpr bool operator==(const Region& a, const Region& b) {
  return a.origin == b.origin && a.size == b.size;
}

enum PixelFormat : NS::UInteger {
  PixelFormatInvalid = 0,
  PixelFormatR8Unorm = 10,
  PixelFormatR16Unorm = 20,
  PixelFormatR16Float = 25,
  PixelFormatRG8Unorm = 30,
  PixelFormatR32Float = 55,
  PixelFormatRG16Unorm = 60,
  PixelFormatRG16Float = 65,
  PixelFormatRGBA8Unorm = 70,
  PixelFormatRG32Float = 105,
  PixelFormatRGBA16Unorm = 110,
  PixelFormatRGBA16Float = 115,
  PixelFormatRGBA32Float = 125,
};

enum TextureType : NS::UInteger { TextureType2D = 2, TextureType2DArray = 3 };
enum StorageMode : NS::UInteger { StorageModeShared = 0, StorageModeManaged = 1, StorageModePrivate = 2 };
enum CPUCacheMode : NS::UInteger { CPUCacheModeDefaultCache = 0, CPUCacheModeWriteCombined = 1 };
enum TextureUsage : NS::UInteger { TextureUsageUnknown = 0, TextureUsageShaderRead = 1, TextureUsageShaderWrite = 2 };

inline constexpr TextureUsage operator|(TextureUsage a, TextureUsage b) {
  return static_cast<TextureUsage>(static_cast<NS::UInteger>(a) | static_cast<NS::UInteger>(b));
}

}  // namespace MTL

// swift-tools-version: 6.0
// The Swift overlay as a package. It wants the C library installed (`make install`) where pkg-config finds it.
//
//   product Accelerate   `import Accelerate`, as programs for Apple's systems write it
//   product OpenBNNS     `import OpenBNNS`, the same names
//
// OPENBNNS_SWIFT_MODE=5 builds in language mode 5 instead of 6; both are tested.
import PackageDescription

let package = Package(
  name: "OpenBNNS",
  products: [
    .library(name: "Accelerate", targets: ["Accelerate"]),
    .library(name: "OpenBNNS", targets: ["OpenBNNS"]),
  ],
  targets: [
    .systemLibrary(
      name: "COpenBNNS", path: "swift/COpenBNNS", pkgConfig: "openbnns-accelerate"),
    .target(name: "Accelerate", dependencies: ["COpenBNNS"], path: "swift/Accelerate", packageAccess: false),
    .target(name: "OpenBNNS", dependencies: ["Accelerate"], path: "swift/OpenBNNS", packageAccess: false),
    .testTarget(
      name: "AccelerateTests", dependencies: ["Accelerate", "OpenBNNS"], path: "swift/Tests", packageAccess: false),
  ],
  swiftLanguageModes: [Context.environment["OPENBNNS_SWIFT_MODE"] == "5" ? .v5 : .v6]
)

# Floating-point mode, instruction sets, compilers, binary interface.

fault("BC58", "loading the library makes subnormal numbers zeros in the program",
      "src/core/process/minimum_cpu.cc",
      "require_minimum(features);\n}\n#endif",
      "require_minimum(features);\n  __builtin_ia32_ldmxcsr(0x9fc0);\n}\n#endif",
      "load_unload_test", "*.BC58_*")
fault("BC59", "an accumulator that decays becomes subnormal",
      "src/ops/optimizer/optimizer_simd.cc",
      "return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), hn::Set(d, 0x1p-126f)), v);",
      "return hn::IfThenElse(hn::Lt(hn::Abs(v), hn::Set(d, 0x1p-126f)), hn::CopySign(hn::Set(d, 0x1p-126f), v), v);",
      "optimizer_test", "*.BC59_*")
fault("BC60", "a CPU without POPCNT is let in",
      "src/core/process/minimum_cpu.cc",
      "1u << 19 | 1u << 20 | 1u << 23, kExtended",
      "1u << 19 | 1u << 20, kExtended",
      "minimum_cpu_test", "MinimumCpu.EveryFeatureIsNeeded")
fault("BC60", "a file without kernels is compiled for AVX2",
      "src/CMakeLists.txt",
      "bnns_compile_for_any_cpu(${CMAKE_CURRENT_SOURCE_DIR}/core/process/minimum_cpu.cc)",
      "bnns_compile_for_any_cpu(${CMAKE_CURRENT_SOURCE_DIR}/core/process/minimum_cpu.cc)\n"
      "set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/tensor/distinct.cc PROPERTIES COMPILE_OPTIONS -mavx2)",
      "instructions", targets=["bnns_internal"])
fault("BC61", "a float that lies between two of bfloat16 is rounded up",
      "src/simd/convert-inl.h",
      "const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));",
      "const auto odd = hn::Set(du, 1u);",
      "convert_test", "Half.VectorForwardConversionsEqualScalar")
fault("BC61", "NaN becomes infinity on its way to half",
      "src/core/half.h",
      "if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));",
      "",
      "convert_test", "Half.*", targets=["convert_test"])
fault("BC62", "the compiler may contract a * b + c",
      "cmake/BnnsBuild.cmake",
      "-Wpedantic;-ffp-contract=off>",
      "-Wpedantic;-ffp-contract=fast>",
      "compile_flags", targets=["build.ninja"])
fault("BC63", "two fields of a struct change places",
      "include/bnns/bnns_structures.h",
      "  size_t x_stride;               ///< Horizontal step; 0 means 1\n  size_t y_stride;               ///",
      "  size_t y_stride;               ///< Horizontal step; 0 means 1\n  size_t x_stride;               ///",
      "api_layout", targets=["api_conformance"])
fault("BC63", "symbols that no header declares are exported",
      "src/c_api/exports.map.in",
      "  global: BNNS*;\n  local: *;",
      "  global: BNNS*;",
      "api_symbols", targets=["bnns"])

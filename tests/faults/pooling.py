# Pooling: what other libraries got wrong, small. fault(...) is explained in scripts/seeded-faults.
TEST = "pooling_bug_classes_test"

fault("BC01", "a row of windows over the edge is divided by all its taps, in the gradient alone",
      "src/ops/pooling/backward/gather_simd.cc",
      "const V rows = hn::Set(d, static_cast<float>(g_.y.count(wy)));",
      "const V rows = hn::Set(d, static_cast<float>(g_.y.kernel));",
      TEST, "*.BC01_*")
fault("BC02", "padding before the image counts where it should not",
      "src/ops/pooling/pooling.cc",
      "if (!count_padding) axis.counted = {0, axis.in};",
      "if (!count_padding) axis.counted = {-axis.pad, axis.in};",
      TEST, "*.BC02_*")
fault("BC03", "a window beside the image, but in its rows, is not taken for empty",
      "src/ops/pooling/common/window.cc",
      "if (taps.x.empty() || taps.y.empty()) {",
      "if (taps.x.empty() && taps.y.empty()) {",
      TEST, "*.BC03_*")
fault("BC04", "a NaN that is not the first pixel of its window is dropped",
      "src/ops/pooling/common/window.cc",
      "if (v > best || (std::isnan(v) && !std::isnan(best))) {",
      "if (v > best) {",
      TEST, "*.BC04_*")
fault("BC05", "maxima begin at the lowest finite number",
      "src/ops/pooling/common/window.cc",
      "float best = load<Pixels>(source, taps, taps.x.begin, taps.y.begin);",
      "float best = std::numeric_limits<float>::lowest();",
      TEST, "*.BC05_*")
fault("BC06", "the last of equal maxima wins",
      "src/ops/pooling/common/window.cc",
      "if (v > best || (std::isnan(v)",
      "if (v >= best || (std::isnan(v)",
      TEST, "*.BC06_*")
fault("BC07", "all threads add up overlapping windows in the same scratch",
      "src/ops/pooling/pooling_apply.cc",
      "own.scratch += worker;",
      "own.scratch += 0;",
      TEST, "*.BC07_*")
fault("BC08", "positions of maxima have 16 bits in between",
      "src/ops/pooling/common/window.cc",
      "if (offset) *offset = static_cast<int32_t>(at);",
      "if (offset) *offset = static_cast<int16_t>(at);",
      TEST, "*.BC08_*")
fault("BC09", "a window larger than the image counts as one that is the image",
      "src/ops/pooling/global/forward_simd.cc",
      "const float count = CountedTaps(problem.geometry);",
      "const float count = static_cast<float>(problem.geometry.x.in * problem.geometry.y.in);",
      TEST, "*.BC09_*")
fault("BC10", "an index that is one too large passes",
      "src/ops/pooling/index/check_simd.cc",
      "const auto above = hn::Gt(largest, hn::Set(d, static_cast<int32_t>(end - 1)));",
      "const auto above = hn::Gt(largest, hn::Set(d, static_cast<int32_t>(end)));",
      TEST, "*.BC10_*")
fault("BC10", "of equal indices the last one stays, in the gradient",
      "src/ops/pooling/backward/scatter.cc",
      "*pixel += scratch->down.amount[i];",
      "*pixel = scratch->down.amount[i];",
      TEST, "*.BC10_*")

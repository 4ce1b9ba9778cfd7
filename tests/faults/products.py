# Convolution, fully connected layers, products of matrices.
TEST = "convolution_bug_classes_test"

fault("BC11", "the gradient of the weights of every group reads dy of group 0",
      "src/ops/convolution/gemm/dw.cc",
      "pack_small(small, block, group * map_.small_channels + column, columns, stage, panels);",
      "pack_small(small, block, column, columns, stage, panels);",
      "convolution_test", "*.BC11_*")
fault("BC12", "rows that no window reads keep what they held",
      "src/ops/convolution/strided.cc",
      "choose(kMaps, first).run(first, scratch);\n      continue;",
      "continue;",
      TEST, "*.BC12_*")
fault("BC13", "the first step over the depth of a product adds to what was there",
      "src/ops/convolution/gemm/patches.cc",
      "g.depth = depth.size();",
      "g.depth = depth.size(), g.accumulate = true;",
      TEST, "*.BC13_*")
fault("BC14", "setting the gradient of the weights adds to them",
      "src/ops/convolution/convolution_backward.cc",
      "target.accumulate = direct && dw.accumulate;",
      "target.accumulate = direct;",
      TEST, "*.BC14_*")
fault("BC15", "rows of dy are taken for contiguous",
      "src/ops/convolution/gemm/dw.cc",
      "small.plain() && (block.rows() == 1 || small.tensor->stride[1] == block.width());",
      "small.plain();",
      TEST, "*.BC15_*")
fault("BC16", "Winograd's algorithm takes images of which most taps in a corner are padding",
      "src/ops/convolution/winograd/accepts.cc",
      "return taps == 3 ? 5 * seen >= 2 * all : 4 * seen >= all;",
      "return taps == 3 ? 9 * seen >= all : 16 * seen >= all;",
      TEST, "*.BC16_*")
fault("BC17", "products of bytes are summed in 16 bits",
      "src/ops/convolution/integer.cc",
      "WideInteger sum = p.has_bias()",
      "int16_t sum = p.has_bias()",
      TEST, "*.BC17_*")
fault("BC18", "the last rows of a product are taken for a whole tile",
      "src/ops/convolution/gemm/patches.cc",
      "std::min(rows_ - first, tiles_per_task_ * tile_rows_)};",
      "tiles_per_task_ * tile_rows_};",
      TEST, "*.BC18_*")

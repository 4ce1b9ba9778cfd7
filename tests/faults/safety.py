# Memory and the checks of arguments.

fault("BC33", "the last vector of a gradient is loaded whole",
      "src/ops/optimizer/optimizer_simd.cc",
      "PrepareGradient(d, p, scale, LoadPartial(d, g + i, left), vw)",
      "PrepareGradient(d, p, scale, hn::LoadU(d, g + i), vw)",
      "optimizer_test", "*.BC33_*")
fault("BC34", "the way from the first element to the last may wrap",
      "src/tensor/tensor.cc",
      "too_large |= __builtin_add_overflow(last, reach, &last);",
      "last += reach;",
      "tensor_test", "*.BC34_*")
fault("BC34", "the number of elements may wrap",
      "src/tensor/tensor.cc",
      "too_large |= __builtin_mul_overflow(t.count, d.size[k], &t.count);",
      "t.count *= d.size[k];",
      "tensor_test", "*.BC34_*")
fault("BC35", "a number of groups of 0 is divided by",
      "src/ops/normalization/normalization.cc",
      "if (p.groups == 0 || p.channels % p.groups != 0) {",
      "if (p.channels % p.groups != 0) {",
      "normalization_misuse_test", "*.BC34_BC35_*")
fault("BC36", "a column outside of the weights is refused by assert alone",
      "src/ops/fully_connected/fully_connected_sparse.cc",
      "if (packed.column(k) >= h.inputs) {",
      "#ifdef NDEBUG\n    if (false)\n#else\n    if (packed.column(k) >= h.inputs)\n#endif\n    {",
      "sparse_test", "*.BC36_*")
fault("BC37", "a backward call takes a gradient that there is none for",
      "src/ops/pooling/pooling_apply.cc",
      'if (call.weights_delta) fail_invalid("%s: weights_delta is given, expected NULL: pooling has no weights", kOp);',
      "",
      "pooling_misuse_test", "*.BC37_*")
fault("BC38", "an empty batch is a gradient without a forward pass",
      "src/ops/dropout/dropout.cc",
      "if (batch == 0) return;\n  DropoutPass pass;",
      "DropoutPass pass;",
      "dropout_misuse_test", "*.BC38_*")
fault("BC38", "an empty batch leaves gradients of weights as they were",
      "src/ops/convolution/convolution_backward.cc",
      "if (empty && dw.accumulate) return;",
      "if (empty) return;",
      "convolution_forms_test", "ConvolutionForms.BatchZero")
fault("BC39", "the first terms of a product are added to what scratch held",
      "src/engine/product/product_multiply.cc",
      "step.accumulate && direct ? GemmInit::accumulate : GemmInit::overwrite};",
      "direct ? GemmInit::overwrite : GemmInit::accumulate};",
      "product_test", "*BC39_*")
fault("BC40", "gradients are loaded as if they were aligned",
      "src/ops/optimizer/optimizer_simd.cc",
      "PrepareGradient(d, p, scale, hn::LoadU(d, g + i), vw)",
      "PrepareGradient(d, p, scale, hn::Load(d, g + i), vw)",
      "optimizer_test", "*BC40_*")
fault("BC41", "log softmax writes its exponentials over what it reads again",
      "src/engine/activation/softmax_rows_simd.cc",
      "float* e = kLog ? buffer : y + i;",
      "float* e = kLog && n > kBlockSize ? buffer : y + i;",
      "activation_softmax_test", "*.BC41_*")
fault("BC42", "nobody looks whether the client's memory came",
      "src/core/memory.cc",
      "if (status != 0 || !memory) fail_out_of_memory(what, bytes);",
      "static_cast<void>(status);",
      "normalization_state_test", "*.BC42_*")
fault("BC43", "the state of a training pass is allocated anew in each",
      "src/ops/normalization/normalization.cc",
      "if (values_.bytes() < buffer) new_values",
      "new_values",
      "normalization_state_test", "*.BC43_*")
fault("BC44", "a refusal for lack of memory is no Error",
      "src/core/error.cc",
      '"out of memory: %zu bytes for %s", bytes, what);\n  throw error;',
      '"out of memory: %zu bytes for %s", bytes, what);\n  throw error.kind();',
      "pooling_misuse_test", "*BC44_*")
fault("BC45", "what could not be made stays in memory",
      "src/ops/nearest_neighbors/nearest_neighbors_bnns.cc",
      "bnns::release(options, memory);\n      throw;",
      "throw;",
      "nearest_neighbors_test", "*BC45_*")

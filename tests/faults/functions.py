# Activation functions, softmax, losses, dropout, optimizers.

fault("BC24", "the derivative of x sigmoid(x) multiplies infinity by 0",
      "src/engine/activation/activation_backward_simd.cc",
      "return hn::Add(s.value, MulOrZero(d, cx, s.slope));",
      "return hn::Add(s.value, hn::Mul(cx, s.slope));",
      "activation_test", "*.BC24_*")
fault("BC25", "derivatives that are made of comparisons swallow NaN",
      "src/engine/activation/activation_backward_simd.cc",
      "return hn::Mul(vdy, KeepNaN(vs, slope(d, vs)));",
      "return hn::Mul(vdy, slope(d, vs));",
      "activation_test", "*.BC25_*")
fault("BC26", "softmax of a long row does not take the largest value off",
      "src/engine/activation/softmax_rows_simd.cc",
      "return Exp(d, hn::Sub(v, hn::Set(d, max))); });",
      "return Exp(d, hn::Sub(v, hn::Set(d, 0 * max))); });",
      "activation_softmax_test", "*.BC26_*")
fault("BC27", "a loss divides by weights that are all 0",
      "src/ops/loss/loss.cc",
      "if (by == 0) {",
      "if (by < 0) {",
      "loss_special_test", "*.BC27_*")
fault("BC28", "the gradient of a dropout makes decisions of its own",
      "src/ops/dropout/dropout.cc",
      'const Tensor dy = resolve_delta(call.out_delta, p.y, kOp, "out_delta");',
      'const Tensor dy = resolve_delta(call.out_delta, p.y, kOp, "out_delta");\n  ++pass.number;',
      "dropout_test", "*.BC28_*")
fault("BC29", "Adam takes the root of v + epsilon",
      "src/ops/optimizer/optimizer_simd.cc",
      "DivideOrZero(d, first, hn::Add(hn::Sqrt(root), hn::Set(d, p.epsilon)));",
      "DivideOrZero(d, first, hn::Sqrt(hn::Add(root, hn::Set(d, p.epsilon))));",
      "optimizer_test", "*.BC29_*")
fault("BC30", "the norm that a gradient is clipped by overflows in f32",
      "src/ops/optimizer/optimizer.cc",
      "problem.use_norm : std::sqrt(sum);",
      "problem.use_norm : static_cast<double>(std::sqrt(static_cast<float>(sum)));",
      "optimizer_test", "*.BC30_*")

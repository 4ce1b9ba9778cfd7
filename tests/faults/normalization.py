# Normalization and long sums.
STATISTICS = "normalization_statistics_test"

fault("BC19", "the variance is E[x^2] - E[x]^2",
      "src/ops/normalization/forward/moments_simd.cc",
      "shift = load(0);\n  for (int pass = 0;; ++pass) {",
      "shift = hn::Zero(d);\n  for (int pass = 1;; ++pass) {",
      STATISTICS, "*.BC19_*")
fault("BC20", "many rows are summed in f32 from the first to the last",
      "src/ops/embedding/embedding_backward.cc",
      "const bool is_long = n > kSumRows;",
      "const bool is_long = false;",
      "long_sums_test", "LongSums.EmbeddingOfFewItems")
fault("BC21", "inference takes the mean of the batch instead of the moving one",
      "src/ops/normalization/forward/sets.cc",
      "moving_mean_wanted_(!call.state && problem.has_moving_mean()),",
      "moving_mean_wanted_(false),",
      STATISTICS, "*.BC21_*")
fault("BC22", "momentum weighs the new value instead of the old one",
      "src/ops/normalization/normalization.cc",
      "static_cast<float>(keep * old + (1 - keep) * current[c])",
      "static_cast<float>((1 - keep) * old + keep * current[c])",
      STATISTICS, "*.BC22_*")
fault("BC23", "every group takes gamma of the first one, in the gradient",
      "src/ops/normalization/backward/groups.cc",
      "numbers[i].scale *= affine_.gamma[plan_.channel(set, r.row + i)];",
      "numbers[i].scale *= affine_.gamma[r.row % plan_.set_rows + i];",
      "normalization_test", "*.BC23_*")

# LSTM and embedding.

fault("BC31", "the gradient of the last cell state is left out",
      "src/ops/lstm/lstm_backward_pass.cc",
      "std::memcpy(dc, s_.dc_last + states, block.size() * H * sizeof(float));",
      "std::memset(dc, 0, block.size() * H * sizeof(float));",
      "lstm_test", "*.BC31_*")
fault("BC31", "the second direction's gradient of x replaces the first one's",
      "src/ops/lstm/lstm_backward_pass.cc",
      "d == 0 ? GemmInit::overwrite : GemmInit::accumulate}",
      "GemmInit::overwrite}",
      "lstm_test", "*.BC31_*")
fault("BC32", "repeated indices: the first position counts twice",
      "src/ops/embedding/embedding_backward.cc",
      "for (size_t s = 1; s < n; ++s) add_row(",
      "for (size_t s = 0; s < n; ++s) add_row(",
      "embedding_test", "Embedding.*BC32_*")
fault("BC32", "a bad index is noticed only where it is the last one of its sample",
      "src/ops/embedding/embedding.cc",
      "bad |= sample[i] >= p.items;",
      "bad = sample[i] >= p.items;",
      "embedding_test", "EmbeddingMisuse.BC32_*")

// The list of rows, and the data of one: what the table (rows.cc) and `bnns bench` share.

#include "bench/row.h"

#include <algorithm>

#include "bench/description.h"

namespace bnns::bench {

std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

std::map<std::string, MakeRow>& makers() {
  static std::map<std::string, MakeRow> all;
  return all;
}

void add_operator_rows() {
  add_pooling_rows();
  add_convolution_rows();
  add_fully_connected_rows();
  add_normalization_rows();
  add_loss_rows();
  add_optimizer_rows();
  add_activation_rows();
  add_arithmetic_rows();
  add_attention_rows();
  add_embedding_rows();
  add_gather_rows();
  add_gram_rows();
  add_lstm_rows();
  add_matmul_rows();
  add_padding_rows();
  add_permute_rows();
  add_reduction_rows();
  add_resize_rows();
  add_tile_rows();
  add_topk_rows();
}

// Small problems stay in cache, as they do in a training loop; large ones pass 256 MB before a set comes again.
static size_t sets_for(size_t bytes) {
  return bytes < (4u << 20) ? 1 : std::clamp<size_t>((256u << 20) / bytes, 2, 32);
}

std::vector<Data> fill_sets(const Row& r) {
  std::vector<Data> all;
  Data first;
  r.fill(first);
  const size_t sets = sets_for(first.bytes());
  all.reserve(sets);
  all.push_back(std::move(first));
  for (size_t i = 1; i < sets; ++i) {
    Data& set = all.emplace_back();
    for (const auto& [name, array] : all[0].arrays()) {
      std::memcpy(set.add(name, array.shape(), array.type()).data(), array.data(), array.bytes());
    }
  }
  return all;
}

}  // namespace bnns::bench

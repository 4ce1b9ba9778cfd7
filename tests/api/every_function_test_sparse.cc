// The walk: nearest neighbours and sparse weights.

#include <memory>

#include "tests/api/every_function_testing.h"

namespace bnns::testing {
namespace {

// ---- nearest neighbours ---------------------------------------------------------------------------------------------

// Five points on a line, three neighbours each.
struct Neighbors {
  BNNSNearestNeighbors store = BNNSCreateNearestNeighbors(5, 1, 3, BNNSDataTypeFloat32, nullptr);
  Floats points = {0, 1, 2, 10, 11};
  Neighbors() { EXPECT_NE(store, nullptr); }
  ~Neighbors() { BNNSDestroyNearestNeighbors(store); }
  Neighbors(const Neighbors&) = delete;
};

// Sample 3: itself, then 11 and 2.
void expect_neighbors_of_sample_3(BNNSNearestNeighbors store) {
  std::vector<int> indices(3);
  Floats distances(3);
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(store, 3, indices.data(), distances.data()), 0);
  EXPECT_EQ(indices, (std::vector<int>{3, 4, 2}));
  EXPECT_EQ(distances, (Floats{0, 1, 8}));
}

void neighbors_create_good() {
  const Neighbors n;
  std::vector<int> indices(3);
  Floats distances(3);
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 1, n.points.data()), 0);
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(n.store, 0, indices.data(), distances.data()), 0);
  EXPECT_EQ(indices, (std::vector<int>{0, -1, -1}));  // one sample has one neighbour
  EXPECT_EQ(distances, (Floats{0, INFINITY, INFINITY}));
}
void neighbors_create_bad() {
  EXPECT_EQ(BNNSCreateNearestNeighbors(5, 1, 3, BNNSDataTypeInt8, nullptr), nullptr);
}

void neighbors_destroy_good() {
  const BNNSFilterParameters options = Accountant::options();
  BNNSNearestNeighbors store = BNNSCreateNearestNeighbors(5, 1, 3, BNNSDataTypeFloat32, &options);
  EXPECT_GT(Accountant::live, 0);
  BNNSDestroyNearestNeighbors(store);
  EXPECT_EQ(Accountant::live, 0);
}
void neighbors_destroy_bad() {
  BNNSDestroyNearestNeighbors(nullptr);
}

void neighbors_load_good() {
  const Neighbors n;
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 3, n.points.data()), 0);
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 2, n.points.data() + 3), 0);  // appended
  expect_neighbors_of_sample_3(n.store);
}
void neighbors_load_bad() {
  const Neighbors n;
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 5, n.points.data()), 0);
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 1, n.points.data()), -1);  // full
  expect_neighbors_of_sample_3(n.store);
}

void neighbors_info_good() {
  const Neighbors n;
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 5, n.points.data()), 0);
  expect_neighbors_of_sample_3(n.store);
  std::vector<int> all(15);
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(n.store, -1, all.data(), nullptr), 0);  // every sample; indices alone
  EXPECT_EQ(all, (std::vector<int>{0, 1, 2, 1, 0, 2, 2, 1, 0, 3, 4, 2, 4, 3, 2}));
}
void neighbors_info_bad() {
  const Neighbors n;
  EXPECT_EQ(BNNSNearestNeighborsLoad(n.store, 2, n.points.data()), 0);
  std::vector<int> indices(3, -77);
  Floats distances = untouched(3);
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(n.store, 2, indices.data(), distances.data()), -1);  // 0 and 1 were loaded
  EXPECT_EQ(indices, std::vector<int>(3, -77));
  EXPECT_TRUE(is_untouched(distances));
}

// ---- sparse weights -------------------------------------------------------------------------------------------------

// Twice the identity of 8, and 7 in row 3, column 0.
struct SparseWeights {
  Array shape = row_major(8, 8);
  Floats values = {2, 2, 2, 7, 2, 2, 2, 2, 2};
  std::vector<uint32_t> coordinates = {0, 0, 1, 1, 2, 2, 0, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};  // (column, row)
  std::vector<uint32_t> columns = {0, 1, 2, 0, 3, 4, 5, 6, 7}, row_starts = {0, 1, 2, 3, 5, 6, 7, 8, 9};
  Array values_desc = vec(values);
  Array coordinates_desc = row_major(2, 9), columns_desc, row_starts_desc;
  Array out = {};
  SparseWeights() {
    coordinates_desc.data = coordinates.data();
    coordinates_desc.data_type = BNNSDataTypeUInt32;
    columns_desc = vector_descriptor(9, columns.data(), BNNSDataTypeUInt32);
    row_starts_desc = vector_descriptor(9, row_starts.data(), BNNSDataTypeUInt32);
    out.data_type = BNNSDataTypeFloat32;
  }
  ~SparseWeights() { free(out.data); }  // the library allocated it
  SparseWeights(const SparseWeights&) = delete;

  int pack_coordinates() {
    return BNNSNDArrayFullyConnectedSparsifySparseCOO(&shape, &coordinates_desc, &values_desc, &out, nullptr, 1,
                                                      nullptr, 0, nullptr);
  }
  int pack_rows() {
    return BNNSNDArrayFullyConnectedSparsifySparseCSR(&shape, &columns_desc, &row_starts_desc, &values_desc, &out,
                                                      nullptr, 1, nullptr, 0, nullptr);
  }
  void expect_product() {
    EXPECT_EQ(out.layout, BNNSDataLayoutFullyConnectedSparse);
    EXPECT_GT(BNNSNDArrayGetDataSize(&out), 0u);
    BNNSLayerParametersFullyConnected layer = {};
    layer.i_desc = layer.o_desc = vec_of(8);
    layer.w_desc = out;
    const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
    const Floats x = {1, 2, 3, 4, 5, 6, 7, 8};
    Floats y(8);
    EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
    EXPECT_EQ(y, (Floats{2, 4, 6, 15, 10, 12, 14, 16}));
  }
  void expect_nothing_written() {
    EXPECT_EQ(out.data, nullptr);
    EXPECT_NE(out.layout, BNNSDataLayoutFullyConnectedSparse);
  }
};

void coordinates_good() {
  SparseWeights w;
  EXPECT_EQ(w.pack_coordinates(), 0);
  w.expect_product();
}
void coordinates_bad() {
  SparseWeights w;
  w.coordinates[1] = 8;  // 8 rows
  EXPECT_NE(w.pack_coordinates(), 0);
  w.expect_nothing_written();
}

void rows_good() {
  SparseWeights w;
  EXPECT_EQ(w.pack_rows(), 0);
  w.expect_product();
}
void rows_bad() {
  SparseWeights w;
  w.row_starts[4] = 2;  // goes back
  EXPECT_NE(w.pack_rows(), 0);
  w.expect_nothing_written();
}

}  // namespace

std::vector<Entry> sparse_entries() {
  return {
      {"BNNSCreateNearestNeighbors", neighbors_create_good, neighbors_create_bad},
      {"BNNSDestroyNearestNeighbors", neighbors_destroy_good, neighbors_destroy_bad,
       "releasing NULL is allowed, as with free"},
      {"BNNSNearestNeighborsLoad", neighbors_load_good, neighbors_load_bad},
      {"BNNSNearestNeighborsGetInfo", neighbors_info_good, neighbors_info_bad},
      {"BNNSNDArrayFullyConnectedSparsifySparseCOO", coordinates_good, coordinates_bad},
      {"BNNSNDArrayFullyConnectedSparsifySparseCSR", rows_good, rows_bad},
  };
}

}  // namespace bnns::testing

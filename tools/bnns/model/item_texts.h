// What a file of weights says about the items that its network takes, and about their classes.
#pragma once

#include <string>
#include <vector>

#include "tools/bnns/data/dataset.h"
#include "tools/bnns/model/weights_file.h"

namespace bnns::tool {

struct ItemKind {
  Dataset like;         // no items, but their size
  bool sized = false;   // the file says how large the pictures are
  bool scaled = false;  // they are scaled to that size
  std::vector<std::string> classes;
  Columns columns;  // where the items are rows of a table

  bool is_table() const { return columns.count() != 0; }
};

// As metadata; `size` is --size.
Texts item_texts(const DataSplit& data, std::size_t size);

// A file of another program has no such texts: its classes have numbers for names. Throws DataError.
ItemKind read_item_kind(const WeightsFile& file);

}  // namespace bnns::tool

// The page `bnns train` leaves behind: one HTML file that needs nothing else, not even a network.
#pragma once

#include <string>

#include "tools/bnns/data/dataset.h"
#include "tools/bnns/model/train.h"

namespace bnns::tool {

// The whole page: figures, loss and accuracy curves, confusion matrix, worst mistakes, facts of the run.
std::string report_html(const TrainOptions& options, const DataSplit& data, const TrainResult& result);

}  // namespace bnns::tool

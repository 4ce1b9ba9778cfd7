// The options of a run in its file: what --save writes beside the weights, and what --resume and --load take from
// there.
#pragma once

#include "tools/bnns/model/weights_file.h"
#include "tools/bnns/train_command.h"

namespace bnns::tool {

// Options and digits of a run, as texts.
Texts run_texts(const TrainCommand& command, const DataSplit& data);

// Options of the run in command.save for --resume; of the network in command.load for --load. An option that the user
// gave must agree with them. Throws DataError.
void adopt_options(TrainCommand& command);

// Refuses digits that are not those of the run in command.save.
void check_same_digits(const TrainCommand& command, const DataSplit& data);

// Refuses classes that are not those of the network in command.load.
void check_same_classes(const TrainCommand& command, const DataSplit& data);

}  // namespace bnns::tool

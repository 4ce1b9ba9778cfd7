// MPS::CNNKernel: result states.
#include <vector>

#include "MetalPerformanceShaders/MPSCNNKernel.hpp"
#include "src/mps/foundation/guard.h"
#include "src/mps/kernel/kernel.h"

namespace MPS {

State* CNNKernel::makeState(Image*, Image*, bool) const {
  return nullptr;
}

State* CNNKernel::resultState(Image* source, NS::Array*, Image* destination) {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<State*>(nullptr), [&]() -> State* {
    if (!source || !destination) bnns::fail_invalid("source or destination is null");
    State* state = makeState(source, destination, false);
    return state ? state->autorelease() : nullptr;
  });
}

StateBatch* CNNKernel::resultStateBatch(ImageBatch* sources, NS::Array* sourceStates, ImageBatch* destinations) {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<StateBatch*>(nullptr), [&]() -> StateBatch* {
    if (!sources) bnns::fail_invalid("sourceImages is null");
    bnns::mps::check_batch_length("destinationImages", destinations, sources->count());
    std::vector<State*> states;
    for (NS::UInteger i = 0; i < sources->count(); ++i) {
      states.push_back(resultState(sources->image(i), sourceStates, destinations->image(i)));
      if (!states.back()) return nullptr;
    }
    return StateBatch::batch(states.data(), states.size());
  });
}

// States without resources are never temporary.
State* CNNKernel::temporaryResultState(MTL::CommandBuffer*, Image* source, NS::Array* sourceStates,
                                       Image* destination) {
  return resultState(source, sourceStates, destination);
}

StateBatch* CNNKernel::temporaryResultStateBatch(MTL::CommandBuffer*, ImageBatch* sources, NS::Array* sourceStates,
                                                 ImageBatch* destinations) {
  return resultStateBatch(sources, sourceStates, destinations);
}

}  // namespace MPS

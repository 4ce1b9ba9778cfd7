// Batches of images and of states, and the functions on them.
#include <set>
#include <vector>

#include "MetalPerformanceShaders/MPSState.hpp"
#include "src/mps/foundation/guard.h"
#include "src/mps/image/image.h"

namespace MPS {

using bnns::mps::ImageAccess;

ImageBatch* ImageBatch::batch(Image* const* images, NS::UInteger count) {
  return bnns::mps::protect("MPSImageBatch", static_cast<ImageBatch*>(nullptr), [&] {
    const std::vector<const NS::Object*> objects(images, images + (images ? count : 0));
    auto made = NS::TransferPtr(new ImageBatch);
    if (objects.size() != count || !made->assign(objects.data(), count)) bnns::fail_invalid("an image is null");
    return made.detach()->autorelease();
  });
}

const char* ImageBatch::className() const noexcept {
  return "MPSImageBatch";
}

ImageBatch* Image::batchRepresentation() {
  return batchRepresentation(NS::Range::Make(0, images_));
}

ImageBatch* Image::batchRepresentation(NS::Range subRange) {
  return bnns::mps::protect("MPSImage batchRepresentation", static_cast<ImageBatch*>(nullptr), [&] {
    if (isTemporary()) bnns::fail_unsupported("views of temporary images");
    if (subRange.location > images_ || subRange.length > images_ - subRange.location) {
      bnns::fail_invalid("range %zu + %zu is not inside %zu images", subRange.location, subRange.length, images_);
    }
    std::vector<NS::SharedPtr<Image>> views;
    std::vector<Image*> pointers;
    for (NS::UInteger i = 0; i < subRange.length; ++i) {
      views.push_back(NS::TransferPtr(ImageAccess::view_of(*this, subRange.location + i)));
      pointers.push_back(views.back().get());
    }
    return ImageBatch::batch(pointers.data(), pointers.size());
  });
}

NS::UInteger ImageBatchIncrementReadCount(ImageBatch* batch, NS::Integer amount) {
  std::set<Image*> distinct;
  for (NS::UInteger i = 0; batch && i < batch->count(); ++i) distinct.insert(batch->image(i));
  for (Image* image : distinct) {
    if (!image->isTemporary()) continue;
    auto* temporary = static_cast<TemporaryImage*>(image);
    if (temporary->readCount() == 0) continue;
    const NS::UInteger now = temporary->readCount();
    const auto down = static_cast<NS::UInteger>(0) - static_cast<NS::UInteger>(amount);
    temporary->setReadCount(amount < 0 ? now - (down < now ? down : now) : now + static_cast<NS::UInteger>(amount));
  }
  return distinct.size();
}

void ImageBatchSynchronize(ImageBatch* batch, MTL::CommandBuffer* commandBuffer) {
  for (NS::UInteger i = 0; batch && i < batch->count(); ++i) batch->image(i)->synchronize(commandBuffer);
}

NS::UInteger ImageBatchResourceSize(ImageBatch* batch) {
  std::set<Image*> distinct;
  NS::UInteger bytes = 0;
  for (NS::UInteger i = 0; batch && i < batch->count(); ++i) {
    if (distinct.insert(batch->image(i)).second) bytes += batch->image(i)->resourceSize();
  }
  return bytes;
}

NS::Integer ImageBatchIterate(ImageBatch* batch, const std::function<NS::Integer(Image*, NS::UInteger)>& iterator) {
  for (NS::UInteger i = 0; batch && iterator && i < batch->count(); ++i) {
    if (const NS::Integer result = iterator(batch->image(i), i)) return result;
  }
  return 0;
}

State::~State() = default;

State* State::temporaryState(MTL::CommandBuffer* commandBuffer) {
  return bnns::mps::protect("MPSState temporaryState", static_cast<State*>(nullptr), [&] {
    bnns::mps::open_buffer(commandBuffer);
    return (new State)->autorelease();
  });
}

void State::checkGradient(const Image&) const {}

void State::setLabel(NS::String* label) {
  label_ = NS::RetainPtr(label);
}

ImageDescriptor* State::destinationImageDescriptor(NS::Array*, NS::Array*, Kernel*, ImageDescriptor* suggested) {
  return suggested;
}

const char* State::className() const noexcept {
  return "MPSState";
}

NNGradientState::~NNGradientState() = default;

const char* NNGradientState::className() const noexcept {
  return "MPSNNGradientState";
}

StateBatch* StateBatch::batch(State* const* states, NS::UInteger count) {
  return bnns::mps::protect("MPSStateBatch", static_cast<StateBatch*>(nullptr), [&] {
    const std::vector<const NS::Object*> objects(states, states + (states ? count : 0));
    auto made = NS::TransferPtr(new StateBatch);
    if (objects.size() != count || !made->assign(objects.data(), count)) bnns::fail_invalid("a state is null");
    return made.detach()->autorelease();
  });
}

const char* StateBatch::className() const noexcept {
  return "MPSStateBatch";
}

NS::UInteger StateBatchIncrementReadCount(StateBatch* batch, NS::Integer) {
  std::set<State*> distinct;
  for (NS::UInteger i = 0; batch && i < batch->count(); ++i) distinct.insert(batch->state(i));
  return distinct.size();
}

void StateBatchSynchronize(StateBatch*, MTL::CommandBuffer*) {}

NS::UInteger StateBatchResourceSize(StateBatch*) {
  return 0;
}

}  // namespace MPS

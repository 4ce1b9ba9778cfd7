// Helpers of the kernel classes.
#pragma once

#include "MetalPerformanceShaders/MPSKernel.hpp"

namespace bnns::mps {

// A new kernel of the class with that name (+1 reference, not initialised), or null. The list of names is in
// src/ops/mps_pooling, next to the classes.
MPS::Kernel* alloc_kernel(const char* class_name);

NS::SharedPtr<MPS::NNPadding> default_padding();

// The images of a list; throws unless it holds `count` images.
MPS::Image* image_at(NS::Array* images, NS::UInteger index, NS::UInteger count);

// Source states, then the padding's own hook if it is custom; throws where the hook returns null.
MPS::ImageDescriptor* finish_description(NS::Array* images, NS::Array* states, MPS::NNPadding* padding,
                                         MPS::Kernel* kernel, MPS::ImageDescriptor* suggested);
// The images of an encode that returns them, from the allocator; throws where it returns something else. Only with a
// destination channel offset may they have more channels than described: the offset says where in them the result goes.
NS::SharedPtr<MPS::ImageBatch> allocate_images(MPS::ImageAllocator* allocator, MTL::CommandBuffer* buffer,
                                               MPS::ImageDescriptor* descriptor, MPS::Kernel* kernel,
                                               NS::UInteger channel_offset, NS::UInteger count, bool single);
// Float formats stay, unorm becomes half: results may lie outside [0, 1].
MPS::ImageFeatureChannelFormat result_format(MPS::ImageFeatureChannelFormat source);

void check_batch_length(const char* what, const NS::Array* batch, NS::UInteger expected);
// Throws where a batch holds an image of several images.
void check_single_images(const char* what, const MPS::ImageBatch* batch);

}  // namespace bnns::mps

// The tables: the first entry that accepts a call runs it, and nothing else decides.

#include "examples/operator_skeleton/implementations.h"

namespace bnns {

const ScaleShiftImplementation kScaleShiftForward[2] = {
    {"scale_shift/planes", "f32; the elements of a channel follow each other in x and y", accepts_planes_forward,
     planes_forward},
    {"scale_shift/elements", "anything", accepts_any<ScaleShiftRun>, elements_forward},
};

const ScaleShiftImplementation kScaleShiftBackward[2] = {
    {"scale_shift/planes", "f32; the elements of a channel follow each other in x, dy and dx", accepts_planes_backward,
     planes_backward},
    {"scale_shift/elements", "anything", accepts_any<ScaleShiftRun>, elements_backward},
};

}  // namespace bnns

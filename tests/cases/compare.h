// Compares the results of a launch with the reference, by the tier of accuracy that the device states.
#pragma once

#include "primitives/accuracy/accuracy.h"
#include "tests/cases/image.h"

namespace tenon::cases {

// Ok if every output element of `got` is within what the tier of `accuracy` allows of `want`, and every other byte
// equals `want`. Both began as the image `start`. Where the device flushes denormals, each may count as 0, also to a
// comparison alone: the result may then be an argument that is denormal where the reference's is 0. The message names
// the first wrong element, and rule B02 where flushing explains all wrong elements.
Status compare_images(const Case& test, const ep_primitive_desc& desc, const Image& start, const Accuracy& accuracy,
                      const Image& got, const Image& want);

}  // namespace tenon::cases

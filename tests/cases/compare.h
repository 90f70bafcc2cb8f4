// Compares the results of a launch with the reference, by the tier of accuracy that the device states.
#pragma once

#include "primitives/accuracy/accuracy.h"
#include "tests/cases/image.h"

namespace tenon::cases {

// Ok if every output element of `got` is within the bounds of the tier of `accuracy` around `want`, and every other
// byte equals `want`. Both began as the image `start`. If the device flushes denormals, each denormal may count as 0,
// even where a function only compares: the result may then be a denormal argument where the reference has 0. The
// message names the first wrong element, and rule B02 if flushing explains all wrong elements.
Status compare_images(const Case& test, const ep_primitive_desc& desc, const Image& start, const Accuracy& accuracy,
                      const Image& got, const Image& want);

}  // namespace tenon::cases

// The base of every primitive of the vulkan provider, and the way to its pipeline.
#pragma once

#include <memory>
#include <string>

#include "providers/vulkan/device.h"
#include "sdk/provider/primitive.h"

// One created primitive. Threads: several may launch it at once, so launch() changes nothing in it.
struct ep_primitive : tenon::provider::PrimitiveBase {
  virtual ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const = 0;
};

namespace tenon::provider::vulkan {

// Gets the pipeline. The refusal says that the driver cannot compile it.
Refusal compile(ep_device& device, const std::string& module, const Constants& constants,
                std::shared_ptr<Pipeline>* out_pipeline);

}  // namespace tenon::provider::vulkan

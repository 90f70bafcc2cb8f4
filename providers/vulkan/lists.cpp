#include "providers/vulkan/lists.h"

#include "providers/vulkan/kernels/kernels.h"

namespace tenon::provider::vulkan {
namespace {

constexpr Implementation elementwise[] = {{"glsl", Elementwise::why_not, Elementwise::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, elementwise},   {EP_PRIMITIVE_copy, elementwise},    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, elementwise}, {EP_PRIMITIVE_ternary, elementwise},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::vulkan

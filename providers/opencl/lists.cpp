#include "providers/opencl/lists.h"

#include "providers/opencl/kernels/kernels.h"

namespace tenon::provider::opencl {
namespace {

constexpr Implementation elementwise[] = {{"opencl", Elementwise::why_not, Elementwise::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, elementwise},   {EP_PRIMITIVE_copy, elementwise},    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, elementwise}, {EP_PRIMITIVE_ternary, elementwise},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::opencl

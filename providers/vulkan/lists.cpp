#include "providers/vulkan/lists.h"

#include "providers/vulkan/kernels/kernels.h"

namespace tenon::provider::vulkan {
namespace {

constexpr Implementation elementwise[] = {{"glsl", Elementwise::why_not, Elementwise::make}};
constexpr Implementation reduce[] = {{"glsl", Reduce::why_not, Reduce::make}};
constexpr Implementation arg_reduce[] = {{"glsl", ArgReduce::why_not, ArgReduce::make}};
constexpr Implementation softmax[] = {{"glsl", Softmax::why_not, Softmax::make}};
constexpr Implementation matmul[] = {{"glsl", Matmul::why_not, Matmul::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, elementwise},      {EP_PRIMITIVE_copy, elementwise},    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, elementwise},    {EP_PRIMITIVE_ternary, elementwise}, {EP_PRIMITIVE_reduce, reduce},
    {EP_PRIMITIVE_arg_reduce, arg_reduce}, {EP_PRIMITIVE_softmax, softmax},     {EP_PRIMITIVE_matmul, matmul},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::vulkan

#include "providers/cuda/lists.h"

#include "providers/cuda/convolution/convolution.h"
#include "providers/cuda/elementwise/elementwise.h"
#include "providers/cuda/matmul/matmul.h"
#include "providers/cuda/movement/movement.h"
#include "providers/cuda/normalization/normalization.h"
#include "providers/cuda/pooling/pooling.h"
#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

constexpr Implementation elementwise[] = {{"kernel", Elementwise::why_not, Elementwise::make}};
constexpr Implementation reduce[] = {{"cub", Reduce::why_not, Reduce::make}};
constexpr Implementation softmax[] = {{"cub", Softmax::why_not, Softmax::make}};
constexpr Implementation matmul[] = {{"cublaslt", CublasLtMatmul::why_not, CublasLtMatmul::make},
                                     {"plain", PlainMatmul::why_not, PlainMatmul::make}};
constexpr Implementation convolution[] = {{"cudnn", CudnnConvolution::why_not, CudnnConvolution::make},
                                          {"matmul", Convolution::why_not, Convolution::make}};
constexpr Implementation convolution_weight[] = {{"cudnn", CudnnConvolution::why_not, CudnnConvolution::make}};
constexpr Implementation arg_reduce[] = {{"cub", ArgReduce::why_not, ArgReduce::make}};
constexpr Implementation scan[] = {{"cub", Scan::why_not, Scan::make}};
constexpr Implementation norm[] = {{"cub", Norm::why_not, Norm::make}};
constexpr Implementation batch_norm[] = {{"kernel", BatchNorm::why_not, BatchNorm::make}};
constexpr Implementation pooling[] = {{"kernel", Pooling::why_not, Pooling::make}};
constexpr Implementation gather[] = {{"kernel", Gather::why_not, Gather::make}};
constexpr Implementation scatter[] = {{"kernel", Scatter::why_not, Scatter::make}};
constexpr Implementation parts[] = {{"kernel", Parts::why_not, Parts::make}};
constexpr Implementation pad[] = {{"kernel", Pad::why_not, Pad::make}};

constexpr ImplementationList lists[] = {
    {EP_PRIMITIVE_fill, elementwise},
    {EP_PRIMITIVE_copy, elementwise},
    {EP_PRIMITIVE_unary, elementwise},
    {EP_PRIMITIVE_binary, elementwise},
    {EP_PRIMITIVE_ternary, elementwise},
    {EP_PRIMITIVE_reduce, reduce},
    {EP_PRIMITIVE_softmax, softmax},
    {EP_PRIMITIVE_matmul, matmul},
    {EP_PRIMITIVE_convolution, convolution},
    {EP_PRIMITIVE_convolution_weight, convolution_weight},
    {EP_PRIMITIVE_gather, gather},
    {EP_PRIMITIVE_scatter, scatter},
    {EP_PRIMITIVE_concat, parts},
    {EP_PRIMITIVE_split, parts},
    {EP_PRIMITIVE_pad, pad},
    {EP_PRIMITIVE_arg_reduce, arg_reduce},
    {EP_PRIMITIVE_scan, scan},
    {EP_PRIMITIVE_layer_norm, norm},
    {EP_PRIMITIVE_rms_norm, norm},
    {EP_PRIMITIVE_group_norm, norm},
    {EP_PRIMITIVE_batch_norm, batch_norm},
    {EP_PRIMITIVE_pooling, pooling},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::cuda

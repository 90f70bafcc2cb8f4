#include "providers/cuda/lists.h"

#include "providers/cuda/attention/attention.h"
#include "providers/cuda/convolution/convolution.h"
#include "providers/cuda/elementwise/elementwise.h"
#include "providers/cuda/matmul/matmul.h"
#include "providers/cuda/movement/movement.h"
#include "providers/cuda/normalization/normalization.h"
#include "providers/cuda/ordering/ordering.h"
#include "providers/cuda/pooling/pooling.h"
#include "providers/cuda/random/random.h"
#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

constexpr Implementation elementwise[] = {{"kernel", Elementwise::why_not, Elementwise::make}};
constexpr Implementation reduce[] = {{"cub", Reduce::why_not, Reduce::make}};
constexpr Implementation softmax[] = {{"cub", Softmax::why_not, Softmax::make}};
constexpr Implementation matmul[] = {{"cublaslt", CublasLtMatmul::why_not, CublasLtMatmul::make},
                                     {"plain", PlainMatmul::why_not, PlainMatmul::make}};
constexpr Implementation convolution[] = {{"matmul", PreferredProduct::why_not, PreferredProduct::make},
                                          {"matmul", TransposedProduct::why_not, TransposedProduct::make},
                                          {"cudnn", CudnnConvolution::why_not, CudnnConvolution::make},
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
constexpr Implementation attention[] = {{"flash", FlashAttention::why_not, FlashAttention::make},
                                        {"plain", PlainAttention::why_not, PlainAttention::make}};
constexpr Implementation rotary[] = {{"kernel", Rotary::why_not, Rotary::make}};
constexpr Implementation pad[] = {{"kernel", Pad::why_not, Pad::make}};
constexpr Implementation random[] = {{"kernel", Random::why_not, Random::make}};
constexpr Implementation sort[] = {{"radix", Sort::why_not, Sort::make}};
constexpr Implementation top_k[] = {{"radix", TopK::why_not, TopK::make}};
constexpr Implementation one_hot[] = {{"kernel", OneHot::why_not, OneHot::make}};
constexpr Implementation nonzero[] = {{"cub", Nonzero::why_not, Nonzero::make}};
constexpr Implementation unique[] = {{"radix", Unique::why_not, Unique::make}};
constexpr Implementation layer_norm_backward[] = {{"cub", LayerNormBackward::why_not, LayerNormBackward::make}};
constexpr Implementation batch_norm_training[] = {{"cub", BatchNormTraining::why_not, BatchNormTraining::make}};
constexpr Implementation batch_norm_backward[] = {{"cub", BatchNormBackward::why_not, BatchNormBackward::make}};
constexpr Implementation pooling_backward[] = {{"kernel", PoolingBackward::why_not, PoolingBackward::make}};

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
    {EP_PRIMITIVE_layer_norm_backward, layer_norm_backward},
    {EP_PRIMITIVE_batch_norm_training, batch_norm_training},
    {EP_PRIMITIVE_batch_norm_backward, batch_norm_backward},
    {EP_PRIMITIVE_pooling, pooling},
    {EP_PRIMITIVE_pooling_backward, pooling_backward},
    {EP_PRIMITIVE_attention, attention},
    {EP_PRIMITIVE_rotary, rotary},
    {EP_PRIMITIVE_random, random},
    {EP_PRIMITIVE_sort, sort},
    {EP_PRIMITIVE_top_k, top_k},
    {EP_PRIMITIVE_unique, unique},
    {EP_PRIMITIVE_nonzero, nonzero},
    {EP_PRIMITIVE_one_hot, one_hot},
};

}  // namespace

std::span<const ImplementationList> implementation_lists() { return lists; }

}  // namespace tenon::provider::cuda

// CudnnGraph: a convolution and the steps after it, described to cuDNN. CudnnPlan: how cuDNN computes them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "providers/cuda/convolution/cudnn.h"

namespace tenon::provider::cuda {

// Owns one cuDNN descriptor.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(const Cudnn& library, cudnn::Descriptor descriptor) : library_(&library), descriptor_(descriptor) {}
  ~CudnnDescriptor() {
    if (descriptor_ != nullptr) library_->descriptor_destroy(descriptor_);
  }
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : library_(other.library_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  cudnn::Descriptor get() const { return descriptor_; }

 private:
  const Cudnn* library_ = nullptr;
  cudnn::Descriptor descriptor_ = nullptr;
};

// Calls cuDNN until a call fails, and keeps the failure. Later calls are skipped.
class CudnnCalls {
 public:
  explicit CudnnCalls(const Cudnn& library) : library_(library) {}

  CudnnDescriptor create(cudnn::Kind kind);
  void finalize(const CudnnDescriptor& descriptor, const char* name);
  template <class T>
  void set(const CudnnDescriptor& descriptor, cudnn::Attribute attribute, cudnn::Type type, std::span<T> values) {
    set(descriptor, attribute, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(const CudnnDescriptor& descriptor, cudnn::Attribute attribute, cudnn::Type type, const T& value) {
    set(descriptor, attribute, type, 1, &value);
  }
  void set(const CudnnDescriptor& descriptor, cudnn::Attribute attribute, const CudnnDescriptor& value) {
    set(descriptor, attribute, cudnn::Type::BACKEND_DESCRIPTOR, value.get());
  }
  // Reads at most `most` values and returns their number.
  int64_t get(const CudnnDescriptor& descriptor, cudnn::Attribute attribute, cudnn::Type type, int64_t most,
              void* values);
  // Keeps the failure of `call`; `what` names the object of the call.
  void keep(cudnn::Status status, const char* call, const char* what = "");

  bool ok() const { return status_ == cudnn::SUCCESS; }
  cudnn::Status status() const { return status_; }
  // "cudnnBackendFinalize, a plan: CUDNN_STATUS_NOT_SUPPORTED (3000): <cuDNN's own message>"
  const std::string& failure() const { return failure_; }

 private:
  void set(const CudnnDescriptor& descriptor, cudnn::Attribute attribute, cudnn::Type type, int64_t count,
           const void* values);

  const Cudnn& library_;
  cudnn::Status status_ = cudnn::SUCCESS;
  std::string failure_;
};

constexpr int32_t most_cudnn_axes = 5;  // images, channels and up to three spatial axes

// A tensor of a graph. A virtual tensor has no memory: it passes a result to the next operation.
struct CudnnTensor {
  int64_t id;
  int32_t dtype;
  int32_t rank;
  std::array<int64_t, most_cudnn_axes> dims, strides;
  bool is_virtual;
};

// The result of the operation: Y from X and W, X from Y and W, or W from X and Y.
enum class ConvolutionResult : uint8_t { Y, X, W };

// The window, along two or three axes.
struct CudnnWindow {
  int32_t spatial;
  std::array<int64_t, 3> stride, dilation, low, high;
};

// A plan, with the descriptors that it was made from.
struct CudnnPlan {
  CudnnDescriptor plan;
  CudnnDescriptor engine_config;
  uint64_t workspace = 0;
};

// Limits on the engines that may compute a graph.
struct CudnnLimits {
  uint64_t workspace;
  bool may_narrow;  // inner formats may be narrower than the operands (TF32), and sums may use Winograd or FFT
  bool is_f32;      // tensor cores would narrow the operands
};

class CudnnGraph {
 public:
  explicit CudnnGraph(Cudnn& library) : library_(library), calls_(library) {}

  // Returns the number of the new tensor.
  size_t add(const CudnnTensor& tensor);
  // Add operations; operands are tensor numbers. `compute` is the dtype of sums.
  void convolve(ConvolutionResult result, const CudnnWindow& window, int32_t compute, size_t x, size_t w, size_t y);
  void sum(size_t x, size_t b, size_t y);
  void relu(size_t x, size_t y);

  // Makes a plan with the first engine in cuDNN's ranking that keeps the limits and works. Returns an empty string, or
  // the reason for failure. The caller holds the library's mutex.
  std::string plan(cudnn::HeurMode mode, const CudnnLimits& limits, CudnnPlan* out);

 private:
  CudnnDescriptor pointwise(cudnn::PointwiseMode mode);
  void add_operation(CudnnDescriptor operation, const char* name);
  std::vector<CudnnDescriptor> ranking(cudnn::HeurMode mode, CudnnCalls* calls);
  std::string why_not(const CudnnDescriptor& engine_config, const CudnnLimits& limits) const;

  Cudnn& library_;
  CudnnCalls calls_;
  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> parts_;
  std::vector<CudnnDescriptor> operations_;
  CudnnDescriptor graph_;
};

// cuDNN's type for a floating dtype of at least 16 bits.
cudnn::DataType cudnn_type(int32_t dtype);

}  // namespace tenon::provider::cuda

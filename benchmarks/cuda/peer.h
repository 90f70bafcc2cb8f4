// The peers of rows on a GPU: driver and cuBLASLt, called directly in the context that the provider also uses.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "providers/cuda/driver/driver.h"
#include "providers/cuda/matmul/cublaslt.h"

namespace tenon::bench {

// Device 0, its primary context and a stream.
class Gpu {
 public:
  // Opens device 0. Without one, returns NULL and sets `why_not`.
  static std::unique_ptr<Gpu> open(std::string* why_not);
  ~Gpu();

  const provider::cuda::Driver& driver() const { return driver_; }
  provider::cuda::CublasLt& cublaslt() { return cublaslt_; }
  CUstream stream() const { return stream_; }
  CUdeviceptr allocate(uint64_t bytes);
  void fill(CUdeviceptr address, unsigned char byte, uint64_t bytes);
  void wait();
  // Uploads `pattern` repeatedly until `bytes` are filled.
  void upload(CUdeviceptr address, const std::vector<unsigned char>& pattern, uint64_t bytes);

  // Copies with one of the kernels of copy.cu. `steps` is 1, 2 or 4.
  void copy(CUdeviceptr dst, CUdeviceptr src, uint64_t bytes, int steps);

 private:
  Gpu() = default;

  provider::cuda::Driver driver_;
  provider::cuda::CublasLt cublaslt_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUmodule module_ = nullptr;
};

// c = a * b for square matrices of `pattern`, stored by columns, as in cuBLASLt's own example: its first algorithm, 32
// MiB of workspace. The values matter: a GPU multiplies equal values faster than random ones, because it draws less
// power.
class DirectMatmul {
 public:
  DirectMatmul(Gpu* gpu, cudaDataType_t type, int64_t n, const std::vector<unsigned char>& pattern);
  ~DirectMatmul();
  std::string failure() const { return failure_; }
  void run();

 private:
  Gpu* gpu_;
  std::string failure_;
  CUdeviceptr a_ = 0, b_ = 0, c_ = 0, workspace_ = 0;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulHeuristicResult_t found_{};
};

}  // namespace tenon::bench

#include "benchmarks/cuda/peer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "primitives/text/format.h"
#include TENON_BENCH_COPY_DIGEST

asm(".pushsection .rodata\n.balign 64\ntenon_bench_copy_code:\n.incbin \"" TENON_BENCH_COPY_CODE
    "\"\n.balign 64\n.popsection\n");
extern "C" __attribute__((visibility("hidden"))) const unsigned char tenon_bench_copy_code[];

namespace tenon::bench {
namespace {

void must(const provider::cuda::Driver& driver, CUresult result, const char* doing) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", doing, driver.text_of(result).c_str());
  std::exit(1);
}

}  // namespace

std::unique_ptr<Gpu> Gpu::open(std::string* why_not) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->driver_ = provider::cuda::load_driver();
  const provider::cuda::Driver& driver = gpu->driver_;
  *why_not = driver.failure.sentence;
  if (why_not->empty() && driver.device_count == 0) *why_not = "the driver knows no device";
  if (!why_not->empty()) return nullptr;
  must(driver, driver.device_get(&gpu->device_, 0), "asking for device 0");
  must(driver, driver.device_primary_ctx_retain(&gpu->context_, gpu->device_), "opening device 0");
  must(driver, driver.ctx_push_current(gpu->context_), "opening device 0");
  must(driver, driver.stream_create(&gpu->stream_, CU_STREAM_NON_BLOCKING, 0), "making a stream");
  must(driver, driver.module_load_data(&gpu->module_, tenon_bench_copy_code), "loading the copy kernels");
  return gpu;
}

Gpu::~Gpu() {
  if (context_ == nullptr) return;
  cublaslt_.release();
  CUcontext popped = nullptr;
  driver_.ctx_pop_current(&popped);
  driver_.device_primary_ctx_release(device_);
}

CUdeviceptr Gpu::allocate(uint64_t bytes) {
  CUdeviceptr address = 0;
  must(driver_, driver_.mem_alloc(&address, bytes), "allocating");
  return address;
}

void Gpu::fill(CUdeviceptr address, unsigned char byte, uint64_t bytes) {
  must(driver_, driver_.memset_d8_async(address, byte, bytes, stream_), "filling");
}

void Gpu::wait() { must(driver_, driver_.stream_synchronize(stream_), "waiting"); }

void Gpu::upload(CUdeviceptr address, const std::vector<unsigned char>& pattern, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += pattern.size()) {
    const uint64_t size = std::min<uint64_t>(pattern.size(), bytes - at);
    must(driver_, driver_.memcpy_htod_async(address + at, pattern.data(), size, stream_), "uploading");
  }
  wait();
}

void Gpu::copy(CUdeviceptr dst, CUdeviceptr src, uint64_t bytes, int steps) {
  constexpr unsigned int threads = 256;
  const std::string name = fmt::format("copy_{}", steps);
  CUfunction function = nullptr;
  must(driver_, driver_.module_get_function(&function, module_, name.c_str()), "finding the copy kernel");
  auto count = static_cast<int64_t>(bytes / 16);
  const int64_t per_block = static_cast<int64_t>(threads) * steps;
  void* parameters[] = {&dst, &src, &count};
  must(driver_,
       driver_.launch_kernel(function, static_cast<unsigned int>((count + per_block - 1) / per_block), 1, 1, threads, 1,
                             1, 0, stream_, parameters, nullptr),
       "copying");
}

DirectMatmul::DirectMatmul(Gpu* gpu, cudaDataType_t type, int64_t n, const std::vector<unsigned char>& pattern)
    : gpu_(gpu) {
  provider::cuda::CublasLt& lt = gpu->cublaslt();
  if (failure_ = lt.load(); !failure_.empty()) return;
  constexpr uint64_t workspace = 32 << 20;
  const uint64_t bytes = static_cast<uint64_t>(n * n) * (type == CUDA_R_32F ? 4 : 2);
  a_ = gpu->allocate(bytes);
  b_ = gpu->allocate(bytes);
  c_ = gpu->allocate(bytes);
  workspace_ = gpu->allocate(workspace);
  gpu->upload(a_, pattern, bytes);
  gpu->upload(b_, pattern, bytes);
  const auto rows = static_cast<uint64_t>(n);
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status = lt.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  if (status == CUBLAS_STATUS_SUCCESS) status = lt.layout_create(&layout_, type, rows, rows, n);
  if (status == CUBLAS_STATUS_SUCCESS) status = lt.preference_create(&preference);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status =
        lt.preference_set_attribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  }
  int count = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status =
        lt.algo_get_heuristic(lt.handle(), desc_, layout_, layout_, layout_, layout_, preference, 1, &found_, &count);
  }
  if (preference != nullptr) lt.preference_destroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) failure_ = lt.get_status_string(status);
}

DirectMatmul::~DirectMatmul() {
  provider::cuda::CublasLt& lt = gpu_->cublaslt();
  if (layout_ != nullptr) lt.layout_destroy(layout_);
  if (desc_ != nullptr) lt.desc_destroy(desc_);
  for (const CUdeviceptr address : {a_, b_, c_, workspace_}) {
    if (address != 0) gpu_->driver().mem_free(address);
  }
}

void DirectMatmul::run() {
  provider::cuda::CublasLt& lt = gpu_->cublaslt();
  const float alpha = 1;
  const float beta = 0;
  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  const cublasStatus_t status =
      lt.matmul(lt.handle(), desc_, &alpha, pointer(a_), layout_, pointer(b_), layout_, &beta, pointer(c_), layout_,
                pointer(c_), layout_, &found_.algo, pointer(workspace_), found_.workspaceSize, gpu_->stream());
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuBLASLt called directly: %s\n", lt.get_status_string(status));
  std::exit(1);
}

}  // namespace tenon::bench

// Opens a provider through the raw ABI with a small host of the tests, and runs primitives on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::provider {

using Settings = std::map<std::string, std::string>;

inline constexpr ep_stream_desc kComputeStream{
    sizeof(ep_stream_desc), EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};

// A host that counts the plug-in's resources, keeps the last error, and reads settings from a map. Threads: any.
class TestHost {
 public:
  explicit TestHost(Settings settings = {}, int32_t threads = 2);
  TestHost(const TestHost&) = delete;
  TestHost& operator=(const TestHost&) = delete;
  const ep_host* table() const { return &table_; }
  int64_t held() const;
  int64_t reported_device_memory() const;
  std::string sentence() const;
  std::string remedy() const;
  std::vector<std::string> errors_logged() const;
  // The blobs that the plug-in has stored, by key; and the blobs that it will find.
  std::map<std::string, std::string> blobs() const;
  void put_blobs(std::map<std::string, std::string> blobs);
  // True: every call that can be cancelled is to stop.
  void cancel(bool on) { cancelled_ = on; }
  // The path of the plug-in; set it before it is opened.
  std::string path;

 private:
  static TestHost& self(const ep_host* host) { return *static_cast<TestHost*>(host->context); }
  static ep_error* error_make(const ep_host* host, ep_status status, ep_string sentence, ep_string remedy);
  static void log(const ep_host* host, int32_t level, ep_string topic, ep_string message);
  static void* allocate(const ep_host* host, uint64_t size, uint64_t alignment);
  static void release(const ep_host* host, void* pointer, uint64_t size);
  static ep_status config_get(const ep_host* host, ep_string key, ep_string* out_value);
  static ep_status blob_get(const ep_host* host, ep_string key, void (*take)(void*, const void*, uint64_t),
                            void* context);
  static void blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size);

  ep_host table_{};
  const Settings settings_;
  const int32_t threads_;
  mutable std::mutex mutex_;
  int64_t held_ = 0, reported_ = 0;
  std::string sentence_, remedy_;
  std::vector<std::string> errors_;
  std::map<std::string, std::string> blobs_;
  std::atomic<bool> cancelled_ = false;
};

// libtenon_<name>.so with its device 0 open. The constructor throws std::runtime_error with the provider's sentence.
class OpenProvider {
 public:
  explicit OpenProvider(const std::string& name, Settings settings = {}, int32_t threads = 2);
  ~OpenProvider();
  OpenProvider(const OpenProvider&) = delete;
  OpenProvider& operator=(const OpenProvider&) = delete;

  TestHost host;
  ep_plugin_ops plugin{};
  ep_device_ops ops{};
  ep_device* device = nullptr;
  ep_stream* stream = nullptr;
};

// The cpu provider on one dispatch target and one thread. NULL if this processor does not have the target.
std::unique_ptr<OpenProvider> open_on_target(const std::string& simd);

// An operand, and a descriptor of `kind` to which operands are added, outputs first.
ep_operand_desc dense(int32_t role, int32_t dtype, const std::vector<int64_t>& dims);
ep_operand_desc strided(int32_t role, int32_t dtype, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& strides);
ep_operand_desc scalar_operand(int32_t role, int32_t dtype);
ep_primitive_desc descriptor(int32_t kind, const std::vector<ep_operand_desc>& operands);
// Adds a relu as epilogue of a product; its scalars begin at slot 4.
void then_relu(ep_primitive_desc* desc);
// Adds an epilogue that adds a residual, an operand like operand 0, to the result.
void then_add_residual(ep_primitive_desc* desc);

// Numbers in [-1, 1).
std::vector<float> random_floats(int64_t count, std::mt19937* generator);

// The number of elements from the first to the last that `operand` addresses.
int64_t extent(const ep_operand_desc& operand);

struct LaunchResult {
  ep_status status = EP_STATUS_OK;
  ep_fault fault{};
  std::string implementation;
};

// Creates a primitive, launches it once on the given bytes, and destroys it. The bytes are imported, so the provider
// must map host memory. With `dynamic` the launch gives the dims, and all strides other than 0 and 1.
LaunchResult run_once(OpenProvider& provider, const ep_primitive_desc& desc, const std::vector<void*>& operands,
                      const std::vector<ep_scalar>& scalars = {}, bool dynamic = false);

}  // namespace tenon::provider

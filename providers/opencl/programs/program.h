// Programs: the compiled programs of one device. A program is made from a text of this folder and compiler options.
// Primitives hold the kernels that they launch. A program that no primitive uses stays until the host trims the device:
// programs depend on op and types but never on shapes, so there are few.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "providers/opencl/driver/context.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::opencl {

// One cl_kernel. A launch holds mutex() while it sets arguments and enqueues.
class Kernel {
 public:
  Kernel(std::shared_ptr<Context> context, cl_kernel handle) : context_(std::move(context)), handle_(handle) {}
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  cl_kernel handle() const { return handle_; }
  std::mutex& mutex() const { return mutex_; }

 private:
  std::shared_ptr<Context> context_;
  cl_kernel handle_;
  mutable std::mutex mutex_;
};

// A compiled program. It creates each kernel once. Threads: any.
class Program {
 public:
  Program(std::shared_ptr<Context> context, cl_program handle) : context_(std::move(context)), handle_(handle) {}
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  cl_program handle() const { return handle_; }
  Refusal kernel(const std::string& name, std::shared_ptr<Kernel>* out_kernel);
  // True if a kernel of the program is held elsewhere.
  bool in_use() const;

 private:
  std::shared_ptr<Context> context_;
  cl_program handle_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Kernel>> kernels_;
};

class Programs {
 public:
  Programs(std::shared_ptr<Context> context, std::string build_options)
      : context_(std::move(context)), build_options_(std::move(build_options)) {}

  // Gets kernel `name` of the program for `text` and `options`, and compiles it at the first call. A call for the same
  // program waits for its compilation; a call for another program does not. Threads: any. If a text does not compile,
  // the result is a failure with the first lines of the compiler's log, not a refusal.
  Refusal get(const std::string& text, const std::string& options, const std::string& name,
              std::shared_ptr<Kernel>* out_kernel);
  // The compiler options for every text.
  std::string options() const;
  // The compiler's log for `program`.
  std::string log_of(cl_program program) const;
  // Drops the programs that no primitive uses.
  void trim();

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<Program> program;
  };

  Refusal compile(const std::string& text, const std::string& options, std::shared_ptr<Program>* out_program);

  std::shared_ptr<Context> context_;
  std::string build_options_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Slot>> slots_;
};

}  // namespace tenon::provider::opencl

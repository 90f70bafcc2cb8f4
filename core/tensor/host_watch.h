// HostWatch: sees what a function does beside its ops, with data on the host and with random numbers, while a program
// is recorded from that function. Internal.
#pragma once

#include <string_view>
#include <utility>

#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace tenon {

class HostWatch {
 public:
  virtual ~HostWatch() = default;
  // A tensor came from outside of all ops. `filled`: it has elements that the caller gave.
  virtual void made(const Tensor& tensor, bool filled) = 0;
  // `function` ("copy_to_host") is about to let the caller see the elements of `tensor`, or write them. Gives the
  // tensor that has them. Throws if nobody has them yet.
  virtual Tensor look(std::string_view function, const Tensor& tensor) = 0;
  // An op is about to make the next `blocks` blocks of random numbers. Gives the range for its record.
  virtual RandomRange draw(uint64_t blocks) = 0;
};

// That of the calling thread; null: nobody watches.
inline thread_local constinit HostWatch* host_watch = nullptr;

// Makes `watch` that of the calling thread for its life; null: nobody watches meanwhile.
class HostWatchScope {
 public:
  explicit HostWatchScope(HostWatch* watch) : previous_(std::exchange(host_watch, watch)) {}
  ~HostWatchScope() { host_watch = previous_; }
  HostWatchScope(const HostWatchScope&) = delete;
  HostWatchScope& operator=(const HostWatchScope&) = delete;

 private:
  HostWatch* previous_;
};

}  // namespace tenon

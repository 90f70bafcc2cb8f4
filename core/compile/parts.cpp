#include "core/compile/parts.h"

#include <algorithm>

#include "core/compile/callable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/signature.h"
#include "core/ops/op_call.h"

namespace tenon::compilation {

bool Parts::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

bool Parts::full() const {
  const std::lock_guard lock(mutex_);
  return full_;
}

size_t Parts::size() const {
  const std::lock_guard lock(mutex_);
  return parts_.size();
}

std::shared_ptr<const graph::Executable> Parts::executable_of(graph::Graph program, std::span<const Tensor> arguments) {
  Sizes sizes;
  for (const Tensor& argument : arguments) sizes.insert(sizes.end(), argument.dims().begin(), argument.dims().end());
  const auto same = [&](const Part& part) { return same_program(part.recorded, program); };
  const auto part = std::find_if(parts_.begin(), parts_.end(), same);
  if (part != parts_.end()) {
    const std::shared_ptr<const graph::Executable>* found = part->executables.find(sizes);
    if (found != nullptr && !graph::is_outdated(**found)) return *found;
  }
  graph::Graph optimised = program.copy();
  const Making making(options_);
  graph::optimise(&optimised, making.passes);
  symbolic::Values values(optimised.arena());
  throw_if_error(graph::bind_sizes(optimised, arguments, &values));
  auto made = std::make_shared<const graph::Executable>(graph::prepare(optimised, &values, making.prepare));
  if (part != parts_.end()) {
    part->executables.keep(std::move(sizes), made);
  } else if (parts_.size() < kMostRecordings) {
    parts_.push_back({.recorded = std::move(program)});
    parts_.back().executables.keep(std::move(sizes), made);
  } else {
    full_ = true;
  }
  return made;
}

TensorList Parts::run(graph::Graph program, std::span<const Tensor> arguments, std::span<const Tensor> bound) {
  std::shared_ptr<const graph::Executable> executable;
  {
    const std::lock_guard lock(mutex_);
    used_ = true;
    executable = executable_of(std::move(program), arguments);
  }
  const InterpreterScope scope(eager_interpreter());
  return graph::run(*executable, arguments, bound);
}

}  // namespace tenon::compilation

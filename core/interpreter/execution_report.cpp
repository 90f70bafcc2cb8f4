#include "core/interpreter/execution_report.h"

#include <utility>

#include "core/device/call_context.h"
#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/vm/opaque.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

std::atomic<int32_t> open_scopes{0};

}  // namespace

std::string_view rung_name(Rung rung) {
  constexpr std::string_view names[] = {"native", "decomposed", "compiled", "host"};
  return names[static_cast<size_t>(rung)];
}

ExecutionScope::ExecutionScope() : previous_(std::exchange(call_context.execution, this)) {
  if (open_scopes.fetch_add(1) == 0) process::attention.fetch_or(process::kReport);
}

ExecutionScope::~ExecutionScope() {
  call_context.execution = previous_;
  if (open_scopes.fetch_sub(1) == 1) process::attention.fetch_and(~static_cast<uint32_t>(process::kReport));
}

std::vector<ExecutionEntry> ExecutionScope::take() { return std::exchange(entries_, {}); }

void note_execution(ExecutionEntry entry) {
  if (call_context.execution != nullptr) call_context.execution->entries_.push_back(std::move(entry));
}

void vm::note_conversion(const Conversion& conversion) {
  const ExecutionEntry entry{std::string(kLayoutCopy),
                             conversion.device->opened->spelling,
                             std::string(conversion.implementation),
                             Rung::native,
                             fmt::format("{} {}", conversion.to_layout ? "to" : "from", conversion.layout),
                             1,
                             conversion.bytes};
  count_execution(entry);
  if (process::attention.load(std::memory_order_relaxed) & process::kReport) note_execution(entry);
}

}  // namespace tenon

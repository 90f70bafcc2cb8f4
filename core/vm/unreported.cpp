#include "core/vm/unreported.h"

#include <algorithm>

namespace tenon::vm {
namespace {

constexpr size_t kMost = 64;

bool same_failure(const Status& a, const Status& b) { return &a.message() == &b.message(); }

}  // namespace

void Unreported::add(const Status& status, uint64_t sequence) {
  if (sequence <= told_loss_.sequence && same_failure(status, told_loss_.status)) return;
  const auto shared = std::find_if(entries_.begin(), entries_.end(),
                                   [&](const Entry& one) { return same_failure(one.status, status); });
  if (shared != entries_.end()) {
    if (shared->sequence <= sequence) return;
    entries_.erase(shared);
  }
  const auto position = std::upper_bound(entries_.begin(), entries_.end(), sequence,
                                         [](uint64_t wanted, const Entry& one) { return wanted < one.sequence; });
  entries_.insert(position, {status, sequence});
  if (entries_.size() <= kMost) return;
  entries_.pop_back();
  ++dropped_;
}

void Unreported::told(const Status& status, uint64_t sequence) {
  std::erase_if(entries_, [&](const Entry& one) { return same_failure(one.status, status); });
  if (status.code() == Code::device_lost) told_loss_ = {status, sequence};
}

Status Unreported::take_first() {
  Status first = std::move(entries_.front().status);
  entries_.erase(entries_.begin());
  return first;
}

}  // namespace tenon::vm

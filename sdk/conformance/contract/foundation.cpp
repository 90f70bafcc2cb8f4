#include "sdk/conformance/contract/foundation.h"

#include <optional>
#include <string_view>
#include <vector>

#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {
namespace {

enum class Between : uint8_t { nothing, waits };  // between two steps
enum class End : uint8_t { synchronize, event };  // after the last one

// A chain of steps that depend on each other: upload, copy, download.
class Chain {
 public:
  explicit Chain(Subject& subject) : subject_(subject) {}
  Status prepare() {
    TENON_RETURN_IF_ERROR(subject_.open());
    TENON_ASSIGN_OR_RETURN(a_, subject_.allocate(size));
    TENON_ASSIGN_OR_RETURN(b_, subject_.allocate(size));
    TENON_ASSIGN_OR_RETURN(stream_, subject_.make_stream());
    return {};
  }
  // True if every download equals the upload before it.
  Result<bool> is_right(Between between, End end);

 private:
  static constexpr uint64_t size = 20000;
  static constexpr uint64_t rounds = 32;
  Status wait() { return subject_.call("stream_synchronize", subject_.ops.stream_synchronize, stream_.get()); }
  Status submit(Between between);

  Subject& subject_;
  Memory a_, b_;
  std::vector<std::vector<uint8_t>> sent_, received_;
  Stream stream_;
};

Status Chain::submit(Between between) {
  const auto step = [&](const Status& submitted) {
    return !submitted.ok() || between == Between::nothing ? submitted : wait();
  };
  for (uint64_t i = 0; i < rounds; ++i) {
    TENON_RETURN_IF_ERROR(step(subject_.upload(stream_, a_, 0, sent_[i])));
    TENON_RETURN_IF_ERROR(step(subject_.copy(stream_, b_, 0, a_, 0, size)));
    TENON_RETURN_IF_ERROR(step(subject_.download(stream_, b_, 0, received_[i])));
  }
  return {};
}

Result<bool> Chain::is_right(Between between, End end) {
  sent_.clear();
  for (uint64_t i = 0; i < rounds; ++i) sent_.push_back(random_bytes(size, 1000 + i));
  received_.assign(rounds, std::vector<uint8_t>(size, 0));
  const Drain drain(subject_, stream_);
  TENON_RETURN_IF_ERROR(submit(between));
  if (end == End::synchronize) {
    TENON_RETURN_IF_ERROR(wait());
  } else {
    TENON_ASSIGN_OR_RETURN(const Event event, subject_.make_event());
    TENON_RETURN_IF_ERROR(subject_.record_event(event, stream_));
    TENON_RETURN_IF_ERROR(subject_.wait(event));
  }
  return sent_ == received_;
}

// Returns ok if the foundation holds, or if this cannot be decided: transfers that are wrong even one at a time prove
// nothing about order.
Status look(const Target& target) {
  Subject subject(target);
  Chain chain(subject);
  if (!chain.prepare().ok() || subject.synchronous()) return {};
  const auto holds = [&](Between between, End end) {
    const auto right = chain.is_right(between, end);
    return !right.ok() || right.value();
  };
  const auto one_by_one = chain.is_right(Between::waits, End::synchronize);
  if (!one_by_one.ok() || !one_by_one.value()) return {};
  if (!holds(Between::nothing, End::synchronize)) {
    return broken("S01", "steps of one stream do not run in order: with a wait after each they are right");
  }
  if (subject.has_events() && !holds(Between::nothing, End::event)) {
    return broken("S04", "an event is seen before the work recorded before it is done");
  }
  return {};
}

// True for rules whose tests compare results of work. This includes B02, about denormals, and E03, since work on
// indices that have not arrived yet raises unexpected faults.
bool is_about_work(std::string_view rule) {
  return rule == "B02" || rule == "E03" ||
         (!rule.empty() && std::string_view("CFGIKMPSYZ").find(rule.front()) != std::string_view::npos);
}

}  // namespace

Status explain(const Target& target, Status failure) {
  if (failure.ok() || failure.code() == skip_code || failure.code() == Code::unsupported) return failure;
  if (const std::string& rule = failure.parts().rule; !rule.empty() && !is_about_work(rule)) return failure;
  static std::optional<Status> found;
  if (!found.has_value()) found = look(target);
  if (found->ok()) return failure;
  return broken(found->parts().rule, "{}. Therefore: {}", found->parts().reason, without_rule(failure).message());
}

}  // namespace tenon::conformance

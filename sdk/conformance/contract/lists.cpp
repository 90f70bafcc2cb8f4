// Command lists: calls on a recording stream, results of replays, faults and bindings. Skipped on devices without
// command_list_begin.
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"
#include "tests/cases/compare.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr uint64_t kTag = 0x0123456789abcdef;

Status without_lists() { return skipped("the device has no command_list_begin."); }

// A recording on one stream. The destructor ends it if needed.
class Recorder {
 public:
  Recorder(Subject& subject, const Stream& stream) : subject_(subject), stream_(stream) {}
  ~Recorder() {
    if (open_) static_cast<void>(end());
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Status begin(const std::vector<ep_binding>& bindings = {}) {
    auto desc = with_header<ep_command_list_desc>(EP_STRUCT_COMMAND_LIST_DESC);
    desc.bindings = bindings.empty() ? nullptr : bindings.data();
    desc.binding_count = static_cast<uint32_t>(bindings.size());
    const Status begun = subject_.call("command_list_begin", subject_.ops.command_list_begin, stream_.get(),
                                       static_cast<const ep_command_list_desc*>(&desc));
    open_ = open_ || begun.ok();
    return begun;
  }
  Result<CommandList> end() {
    open_ = false;
    auto info = with_header<ep_command_list_info>(EP_STRUCT_COMMAND_LIST_INFO);
    ep_command_list* list = nullptr;
    TENON_RETURN_IF_ERROR(
        subject_.call("command_list_end", subject_.ops.command_list_end, stream_.get(), &list, &info));
    if (list == nullptr) return broken("R01", "command_list_end answers 'ok' and gives no list");
    return CommandList(&subject_, list);
  }

 private:
  Subject& subject_;
  const Stream& stream_;
  bool open_ = false;
};

Status replay(Subject& subject, const CommandList& list, const Stream& stream, uint64_t tag = kTag,
              std::vector<ep_buffer> buffers = {}) {
  ep_command_list_replay_desc desc{};
  desc.bindings = buffers.empty() ? nullptr : buffers.data();
  desc.binding_count = static_cast<uint32_t>(buffers.size());
  desc.tag = tag;
  const Status status = subject.call("command_list_replay", subject.ops.command_list_replay, list.get(), stream.get(),
                                     static_cast<const ep_command_list_replay_desc*>(&desc));
  for (ep_buffer& buffer : buffers) buffer = {nullptr, ~uint64_t{0}};  // they were borrowed for the call
  return status;
}

// Downloads `memory` on a stream, and waits. The wait may fail, so the caller keeps `out_bytes` until the stream's work
// is done.
Status fetch(Subject& subject, const Stream& stream, const Memory& memory, std::vector<uint8_t>* out_bytes) {
  out_bytes->assign(kBytes, 0);
  TENON_RETURN_IF_ERROR(subject.download(stream, memory, 0, *out_bytes));
  return subject.finish(stream);
}

// A stream, two blocks, and helpers to check recordings.
struct Bench {
  explicit Bench(Subject& its_subject) : subject(its_subject) {}

  Status prepare() {
    TENON_ASSIGN_OR_RETURN(stream, subject.make_stream());
    TENON_ASSIGN_OR_RETURN(other, subject.make_stream());
    TENON_ASSIGN_OR_RETURN(event, subject.make_event());
    for (Memory& block : blocks) {
      TENON_ASSIGN_OR_RETURN(block, subject.allocate(kBytes));
    }
    return fill(1);
  }
  // Fills block 0 with bytes from `seed`, and the other blocks with different bytes.
  Status fill(uint64_t seed) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      bytes[i] = random_bytes(kBytes, 10 * seed + i);
      TENON_RETURN_IF_ERROR(subject.upload(other, blocks[i], 0, bytes[i]));
    }
    TENON_RETURN_IF_ERROR(subject.record_event(event, other));
    return subject.finish(other);
  }

  Subject& subject;
  Stream stream, other;
  Event event;
  std::array<Memory, 3> blocks;
  std::array<std::vector<uint8_t>, 3> bytes;
  std::vector<uint8_t> got;
};

// Every call except launches and copies must return BUSY.
Status check_busy(Bench& bench) {
  const ep_device_ops& ops = bench.subject.ops;
  ep_stream* stream = bench.stream.get();
  auto desc = with_header<ep_command_list_desc>(EP_STRUCT_COMMAND_LIST_DESC);
  const ep_buffer block{bench.blocks[0].get(), 0};
  ep_fault fault{};
  const auto check = [&](const char* name, const auto function, auto... args) -> Status {
    if (function == nullptr) return {};
    const Status status = bench.subject.call(name, function, args...);
    if (status.code() == Code::busy) return {};
    return broken("K01", "{} on a stream that records answered '{}', not 'busy'", name, code_name(status.code()));
  };
  TENON_RETURN_IF_ERROR(
      check("command_list_begin", ops.command_list_begin, stream, static_cast<const ep_command_list_desc*>(&desc)));
  TENON_RETURN_IF_ERROR(
      check("upload", ops.upload, stream, block, static_cast<const void*>(bench.bytes[1].data()), kBytes));
  TENON_RETURN_IF_ERROR(check("download", ops.download, stream, static_cast<void*>(bench.got.data()), block, kBytes));
  TENON_RETURN_IF_ERROR(check("event_record", ops.event_record, bench.event.get(), stream));
  TENON_RETURN_IF_ERROR(check("stream_wait_event", ops.stream_wait_event, stream, bench.event.get()));
  TENON_RETURN_IF_ERROR(check("stream_flush", ops.stream_flush, stream));
  TENON_RETURN_IF_ERROR(check("stream_take_fault", ops.stream_take_fault, stream, &fault));
  return check("stream_synchronize", ops.stream_synchronize, stream);
}

Status expect_block(Bench& bench, size_t index, const std::vector<uint8_t>& wanted, std::string_view rule,
                    std::string_view when) {
  std::vector<uint8_t>& got = bench.got;
  TENON_RETURN_IF_ERROR(fetch(bench.subject, bench.stream, bench.blocks[index], &got));
  const auto wrong = std::mismatch(got.begin(), got.end(), wanted.begin());
  if (wrong.first == got.end()) return {};
  return broken(rule, "{}, byte {} of a copied block is {:#x}, not {:#x}", when, wrong.first - got.begin(),
                *wrong.first, *wrong.second);
}

// Ending a recording that has not begun must fail.
Status check_end_alone(Bench& bench) {
  Poisoned<ep_command_list*> list("out_list");
  auto info = with_header<ep_command_list_info>(EP_STRUCT_COMMAND_LIST_INFO);
  const auto end = [&](ep_error** error) {
    return bench.subject.ops.command_list_end(bench.stream.get(), &list.value, &info, error);
  };
  return refuses(bench.subject, "command_list_end", {Code::invalid_argument}, end, list);
}

// True if the device cannot record, or not this call. A provider may refuse either.
bool is_refusal(const Status& status) { return status.code() == Code::unsupported; }

}  // namespace

Status lists_recording(Subject& subject) {
  if (subject.ops.command_list_begin == nullptr) return without_lists();
  Bench bench(subject);
  TENON_RETURN_IF_ERROR(bench.prepare());
  TENON_RETURN_IF_ERROR(check_end_alone(bench));
  CommandList list;
  const Drain drain(subject, bench.stream);
  {
    Recorder recorder(subject, bench.stream);
    if (const Status begun = recorder.begin(); !begun.ok()) {
      return is_refusal(begun) ? skipped("it records nothing: {}", begun.message()) : begun;
    }
    TENON_RETURN_IF_ERROR(subject.copy(bench.stream, bench.blocks[1], 0, bench.blocks[0], 0, kBytes));
    bench.got.assign(kBytes, 0);
    TENON_RETURN_IF_ERROR(check_busy(bench));
    TENON_RETURN_IF_ERROR(subject.copy(bench.stream, bench.blocks[2], 0, bench.blocks[1], 0, kBytes));
    TENON_ASSIGN_OR_RETURN(list, recorder.end());
    TENON_RETURN_IF_ERROR(subject.finish(bench.stream));
    if (bench.got != std::vector<uint8_t>(kBytes, 0)) {
      return broken("K01", "a download that answered 'busy' has written to the host");
    }
  }
  for (size_t i = 0; i < bench.blocks.size(); ++i) {
    TENON_RETURN_IF_ERROR(expect_block(bench, i, bench.bytes[i], "K01", "after a recording and no replay"));
  }
  TENON_RETURN_IF_ERROR(replay(subject, list, bench.stream));
  return expect_block(bench, 2, bench.bytes[0], "K02", "after the replay of two copies, one behind the other");
}

namespace {

// Records a copy, a launch and a copy, and replays them on both streams with different inputs. The last replays run
// after the recording stream is destroyed.
Status replay_sample(Subject& subject, const cases::Case& sample) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  Bench bench(subject);
  TENON_RETURN_IF_ERROR(bench.prepare());
  TENON_ASSIGN_OR_RETURN(Stream recording, subject.make_stream());
  Prepared first(subject, sample, desc, 801);
  TENON_RETURN_IF_ERROR(first.work.create());
  CommandList list;
  const Drain drain_stream(subject, bench.stream), drain_other(subject, bench.other);
  TENON_RETURN_IF_ERROR(first.work.upload(bench.stream));
  TENON_RETURN_IF_ERROR(subject.finish(bench.stream));
  {
    Recorder recorder(subject, recording);
    TENON_RETURN_IF_ERROR(recorder.begin());
    TENON_RETURN_IF_ERROR(subject.copy(recording, bench.blocks[1], 0, bench.blocks[0], 0, kBytes));
    TENON_RETURN_IF_ERROR(first.work.launch(recording));
    TENON_RETURN_IF_ERROR(subject.copy(recording, bench.blocks[2], 0, bench.blocks[1], 0, kBytes));
    TENON_ASSIGN_OR_RETURN(list, recorder.end());
  }
  for (uint64_t round = 0; round < 4; ++round) {
    if (round == 2) recording.reset();
    const Stream& stream = round % 2 == 0 ? bench.stream : bench.other;
    Prepared now(subject, sample, desc, 810 + round);
    first.work.put(now.start);
    TENON_RETURN_IF_ERROR(bench.fill(2 + round));
    TENON_RETURN_IF_ERROR(first.work.upload(stream));
    TENON_RETURN_IF_ERROR(replay(subject, list, stream));
    TENON_RETURN_IF_ERROR(first.work.download(stream));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    TENON_RETURN_IF_ERROR(first.work.settle(stream));
    const Status right = now.compare(first.work.image());
    if (!right.ok()) return broken("K02", "in replay {} of four: {}", round + 1, without_rule(right).message());
    TENON_RETURN_IF_ERROR(
        expect_block(bench, 2, bench.bytes[0], "K02", fmt::format("in replay {} of four", round + 1)));
  }
  return {};
}

// The first case of each kind with bad data.
std::vector<cases::Case> fault_cases(Subject& subject) {
  std::map<int32_t, cases::Case> found;
  for (const cases::Case& test : cases::all_cases()) {
    if (test.fault != 0 && !found.contains(test.desc.kind) && accepted_desc(subject, test).ok()) {
      found.emplace(test.desc.kind, test);
    }
  }
  std::vector<cases::Case> all;
  for (const auto& [kind, test] : found) all.push_back(test);
  return all;
}

// Replays a copy and a launch with bad data, twice.
Status replay_fault(Subject& subject, const cases::Case& test) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, test));
  Bench bench(subject);
  TENON_RETURN_IF_ERROR(bench.prepare());
  Prepared bad(subject, test, desc, 820);
  bad.work.tag = 0x77;
  TENON_RETURN_IF_ERROR(bad.work.create());
  CommandList list;
  const Drain drain(subject, bench.stream);
  {
    Recorder recorder(subject, bench.stream);
    TENON_RETURN_IF_ERROR(recorder.begin());
    TENON_RETURN_IF_ERROR(subject.copy(bench.stream, bench.blocks[1], 0, bench.blocks[0], 0, kBytes));
    TENON_RETURN_IF_ERROR(bad.work.launch(bench.stream));
    TENON_ASSIGN_OR_RETURN(list, recorder.end());
  }
  for (const uint64_t tag : {kTag, kTag + 1}) {
    TENON_RETURN_IF_ERROR(bad.work.upload(bench.stream));  // the fault may have left the scratch dirty
    TENON_RETURN_IF_ERROR(replay(subject, list, bench.stream, tag));
    TENON_RETURN_IF_ERROR(subject.finish(bench.stream));
    std::vector<ep_fault> faults;
    TENON_RETURN_IF_ERROR(take_faults(subject, bench.stream, &faults));
    if (faults.empty()) return broken("K08", "a recorded launch met bad data in a replay, and there is no fault");
    for (const ep_fault& fault : faults) {
      if (fault.tag == tag && EP_FAULT_NODE(fault.flags) == 1 && fault.code == test.fault) continue;
      return broken("K08",
                    "a fault has tag {:#x}, node {} and code {}; the replay's tag is {:#x}, call 1 met bad data, "
                    "and its code is {}",
                    fault.tag, EP_FAULT_NODE(fault.flags), fault.code, tag, test.fault);
    }
  }
  return {};
}

// Returns ok if the device can record at all.
Status check_records(Subject& subject) {
  if (subject.ops.command_list_begin == nullptr) return without_lists();
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  Recorder recorder(subject, stream);
  const Status begun = recorder.begin();
  return is_refusal(begun) ? skipped("it records nothing: {}", begun.message()) : begun;
}

}  // namespace

Status lists_replays(Subject& subject) {
  TENON_RETURN_IF_ERROR(check_records(subject));
  return for_each_sound_sample(subject, [&](const cases::Case& sample) { return replay_sample(subject, sample); });
}

Status lists_faults(Subject& subject) {
  TENON_RETURN_IF_ERROR(check_records(subject));
  if (subject.ops.stream_take_fault == nullptr) return skipped("its kernels meet no bad data.");
  const std::vector<cases::Case> tests = fault_cases(subject);
  if (tests.empty()) return skipped("it supports no case that meets bad data.");
  return for_each_of(tests, [&](const cases::Case& test) { return replay_fault(subject, test); });
}

Status lists_bindings(Subject& subject) {
  TENON_RETURN_IF_ERROR(check_records(subject));
  constexpr uint64_t kPart = 1024, kAt = 256;
  Bench bench(subject);
  TENON_RETURN_IF_ERROR(bench.prepare());
  CommandList list;
  const Drain drain(subject, bench.stream);
  {
    Recorder recorder(subject, bench.stream);
    const std::vector<ep_binding> bindings = {{{bench.blocks[0].get(), 0}, kPart + kAt},
                                              {{bench.blocks[1].get(), kAt}, kPart}};
    const Status begun = recorder.begin(bindings);
    if (is_refusal(begun)) return skipped("its lists have fixed addresses: {}", begun.message());
    TENON_RETURN_IF_ERROR(begun);
    TENON_RETURN_IF_ERROR(subject.copy(bench.stream, bench.blocks[1], kAt, bench.blocks[0], kAt, kPart));
    TENON_ASSIGN_OR_RETURN(list, recorder.end());
  }
  for (const uint64_t at : {0, 1024, 2048}) {
    TENON_RETURN_IF_ERROR(bench.fill(at + 3));
    TENON_RETURN_IF_ERROR(
        replay(subject, list, bench.stream, kTag, {{bench.blocks[1].get(), at}, {bench.blocks[2].get(), at + kAt}}));
    TENON_RETURN_IF_ERROR(subject.finish(bench.stream));
    std::vector<uint8_t> wanted = bench.bytes[2];
    std::copy_n(bench.bytes[1].begin() + static_cast<int64_t>(at + kAt), kPart,
                wanted.begin() + static_cast<int64_t>(at + kAt));
    TENON_RETURN_IF_ERROR(expect_block(bench, 2, wanted, "K09", "after a replay with other buffers"));
    TENON_RETURN_IF_ERROR(expect_block(bench, 1, bench.bytes[1], "K09", "after a replay with other buffers"));
  }
  return {};
}

Status exercise_lists(Subject& subject, const Stream& stream) {
  if (subject.ops.command_list_begin == nullptr) return {};
  TENON_ASSIGN_OR_RETURN(const Memory from, subject.allocate(kBytes));
  TENON_ASSIGN_OR_RETURN(const Memory to, subject.allocate(kBytes));
  const std::vector<uint8_t> sent = random_bytes(kBytes, 51);
  std::vector<uint8_t> received;
  CommandList list;
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(subject.upload(stream, from, 0, sent));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  {
    Recorder recorder(subject, stream);
    const Status begun = recorder.begin();
    if (is_refusal(begun)) return {};
    TENON_RETURN_IF_ERROR(begun);
    TENON_RETURN_IF_ERROR(subject.copy(stream, to, 0, from, 0, kBytes));
    TENON_ASSIGN_OR_RETURN(list, recorder.end());
  }
  TENON_RETURN_IF_ERROR(replay(subject, list, stream));
  TENON_RETURN_IF_ERROR(fetch(subject, stream, to, &received));
  return sent == received ? Status() : broken("K02", "the replay of a copy did not copy");
}

}  // namespace tenon::conformance

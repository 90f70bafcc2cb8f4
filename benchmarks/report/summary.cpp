#include "benchmarks/report/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "primitives/text/format.h"

namespace tenon::bench {
namespace {

constexpr const char* verdict_names[] = {"none", "ok", "over", "void"};

const char* name_of(Verdict verdict) { return verdict_names[static_cast<int>(verdict)]; }

Verdict judge(const Summary& summary, double ours) {
  if (summary.most_ns > 0) return ours <= summary.most_ns ? Verdict::ok : Verdict::over;
  if (!summary.compared) return Verdict::none;
  if (summary.bar > 0) return summary.ratio.median <= summary.bar ? Verdict::ok : Verdict::over;
  if (summary.slack_ns > 0) return summary.over_ns <= summary.slack_ns ? Verdict::ok : Verdict::over;
  return Verdict::none;
}

// The index in `samples` of the peer with the least median; 0 if no peer was measured.
size_t fastest_peer(const Samples& samples) {
  size_t best = 0;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].empty()) continue;
    if (best == 0 || summarize(samples[i]).median < summarize(samples[best]).median) best = i;
  }
  return best;
}

void compare(const std::vector<double>& ours, const std::vector<double>& peer, Summary* summary) {
  const double our_median = summarize(ours).median;
  const double peer_median = summarize(peer).median;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(ours.size(), peer.size()); ++i) ratios.push_back(ours[i] / peer[i]);
  summary->compared = true;
  summary->ratio = {our_median / peer_median, summarize(std::move(ratios)).spread};
  summary->over_ns = our_median - peer_median;
}

std::string bar_text(const Summary& summary) {
  std::string text;
  if (summary.compared) text += fmt::format(" | ratio {:.3f} +-{:.3f}", summary.ratio.median, summary.ratio.spread);
  if (summary.verdict == Verdict::none) return text;
  if (summary.most_ns > 0) {
    text += fmt::format(" | bar {:.0f} ns", summary.most_ns);
  } else if (summary.bar > 0) {
    text += fmt::format(" | bar {:.3f}", summary.bar);
  } else {
    text += fmt::format(" | {:.1f} ns over, at most {:.1f}", summary.over_ns, summary.slack_ns);
  }
  return fmt::format("{} | {}", text, name_of(summary.verdict));
}

}  // namespace

Timing summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return {samples[n / 2], samples[n * 3 / 4] - samples[n / 4]};
}

Summary summarize(const Row& row, const Samples& samples) {
  Summary summary;
  summary.name = row.name;
  summary.bytes = row.bytes;
  summary.bar = row.bar;
  summary.slack_ns = row.slack_ns;
  summary.most_ns = row.most_ns;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].empty()) continue;
    summary.labels.push_back(i == 0 ? row.ours.label : row.peers[i - 1].label);
    summary.timings.push_back(summarize(samples[i]));
  }
  if (samples.empty() || samples[0].empty()) return summary;
  if (const size_t best = fastest_peer(samples); best != 0) compare(samples[0], samples[best], &summary);
  summary.verdict = judge(summary, summary.timings[0].median);
  return summary;
}

Summary void_row(const Row& row, std::string wrong) {
  Summary summary;
  summary.name = row.name;
  summary.verdict = Verdict::void_row;
  summary.wrong = std::move(wrong);
  return summary;
}

std::string to_text(const Summary& summary) {
  std::string text = fmt::format("{:<34}", summary.name);
  if (summary.verdict == Verdict::void_row) return fmt::format("{} | void: {}", text, summary.wrong);
  for (size_t i = 0; i < summary.timings.size(); ++i) {
    const Timing& timing = summary.timings[i];
    text += fmt::format(" | {}: {:.1f} ns +-{:.1f}", summary.labels[i], timing.median, timing.spread);
    if (summary.bytes > 0) text += fmt::format(" ({:.1f} GB/s)", summary.bytes / timing.median);
  }
  return text + bar_text(summary);
}

std::string to_json(const Summary& summary) {
  nlohmann::ordered_json line{{"row", summary.name}, {"verdict", name_of(summary.verdict)}};
  if (!summary.wrong.empty()) line["wrong"] = summary.wrong;
  for (size_t i = 0; i < summary.timings.size(); ++i) {
    line["sides"].push_back({{"label", summary.labels[i]},
                             {"median_ns", summary.timings[i].median},
                             {"spread_ns", summary.timings[i].spread}});
  }
  if (summary.compared) {
    line["ratio"] = summary.ratio.median;
    line["ratio_spread"] = summary.ratio.spread;
    line["over_ns"] = summary.over_ns;
  }
  if (summary.bytes > 0) line["bytes"] = summary.bytes;
  if (summary.bar > 0) line["bar"] = summary.bar;
  if (summary.slack_ns > 0) line["slack_ns"] = summary.slack_ns;
  if (summary.most_ns > 0) line["most_ns"] = summary.most_ns;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tenon::bench

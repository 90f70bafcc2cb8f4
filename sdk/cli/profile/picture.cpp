// The picture of a profile: a strip with the launches of one run in order, the total time of each operator, the slowest
// launches next to the shortest possible time for their work, and all launches below the limits of the device's memory
// and arithmetic ("roofline": Williams, Waterman and Patterson, 2009).
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "primitives/text/format.h"
#include "sdk/cli/profile/profile.h"

namespace tenon::cli {
namespace {

constexpr double kWidth = 1080, kMargin = 40, kInner = kWidth - 2 * kMargin;
constexpr size_t kBars = 20, kNamedOperators = 9;
// The colours of Okabe and Ito, which colour-blind people can distinguish, and two more. The last is for all other
// operators.
constexpr const char* kColours[kNamedOperators + 1] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9",
                                                       "#D55E00", "#8A63D2", "#B5A642", "#5F7A8A", "#B8B8B8"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// Returns the end of `text`, the part in which names of nodes differ.
std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : fmt::format("\u2026{}", text.substr(text.size() - most + 1));
}

std::string time_label(double ms) {
  return ms < 1 ? fmt::format("{:.1f} \u00b5s", ms * 1e3) : fmt::format("{:.2f} ms", ms);
}

const std::string& operator_of(const NodeTime& node) { return node.op_type.empty() ? node.op : node.op_type; }

struct Operator {
  std::string name;
  double ms = 0;
  size_t launches = 0;
};

class Picture {
 public:
  explicit Picture(const ModelProfile& profile) : profile_(profile) {
    std::map<std::string, Operator> all;
    for (const NodeTime& node : profile.nodes) {
      Operator& one = all[operator_of(node)];
      one.name = operator_of(node);
      one.ms += node.ms;
      ++one.launches;
      sum_ += node.ms;
      sorted_.push_back(&node);
    }
    for (auto& [name, one] : all) operators_.push_back(std::move(one));
    std::stable_sort(operators_.begin(), operators_.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
    std::stable_sort(sorted_.begin(), sorted_.end(), [](const auto* a, const auto* b) { return a->ms > b->ms; });
  }

  std::string draw() {
    header();
    strip();
    legend();
    bars();
    roof();
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"Inter, 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{2}</svg>\n",
        kWidth, y_ + 10, body_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    body_ += fmt::format(text, std::forward<Args>(args)...);
    body_ += '\n';
  }

  void text(double x, double y, double size, const char* colour, const char* anchor, std::string_view words,
            const char* more = "") {
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" fill=\"{}\" text-anchor=\"{}\" {}>{}</text>", x, y, size,
        colour, anchor, more, escaped(words));
  }

  void heading(std::string_view words, std::string_view explained) {
    y_ += 38;
    text(kMargin, y_, 15, "#1f2933", "start", words, "font-weight=\"600\"");
    text(kWidth - kMargin, y_, 11, "#7b8794", "end", explained);
    y_ += 12;
  }

  const char* colour_of(const NodeTime& node) const {
    for (size_t i = 0; i < std::min(kNamedOperators, operators_.size()); ++i) {
      if (operators_[i].name == operator_of(node)) return kColours[i];
    }
    return kColours[kNamedOperators];
  }

  void header() {
    y_ = 46;
    text(kMargin, y_, 22, "#1f2933", "start", std::filesystem::path(profile_.model).filename().string(),
         "font-weight=\"700\"");
    text(kWidth - kMargin, y_, 22, "#1f2933", "end", time_label(profile_.runs.quantile(0.5)), "font-weight=\"700\"");
    y_ += 22;
    text(kMargin, y_, 12, "#52606d", "start", fmt::format("{} \u00b7 {}", profile_.device, profile_.device_name));
    text(kWidth - kMargin, y_, 12, "#52606d", "end",
         fmt::format("median of {} runs \u00b7 p90 {} \u00b7 p99 {} \u00b7 peak memory {:.1f} MiB",
                     profile_.runs.all.size(), time_label(profile_.runs.quantile(0.9)),
                     time_label(profile_.runs.quantile(0.99)), static_cast<double>(profile_.peak_bytes) / (1 << 20)));
  }

  void title_of(const NodeTime& node) {
    add("<title>{} {} ({} {}): {}</title>", escaped(node.title()), escaped(node.op_type), escaped(node.op),
        escaped(node.implementation), time_label(node.ms));
  }

  void strip() {
    heading("One run, from left to right",
            profile_.by_launch ? "each launch as wide as its time" : "each node as wide as its time, one by one");
    const double total = std::max(sum_, 1e-9);
    double x = kMargin;
    add("<g shape-rendering=\"crispEdges\">");
    for (const NodeTime& node : profile_.nodes) {
      const double width = node.ms / total * kInner;
      const double gap = width > 3 ? 0.8 : 0;
      add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"46\" fill=\"{}\">", x, y_, width - gap,
          colour_of(node));
      title_of(node);
      add("</rect>");
      x += width;
    }
    add("</g>");
    y_ += 46;
    const double step = nice_step(total / 8);
    for (double at = 0; at <= total * 1.0001; at += step) {
      const double place = kMargin + at / total * kInner;
      add("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#9aa5b1\"/>", place, y_, y_ + 5);
      text(place, y_ + 17, 10, "#7b8794", at == 0 ? "start" : "middle", time_label(at));
    }
    y_ += 20;
  }

  // 1, 2 or 5 times a power of ten.
  static double nice_step(double rough) {
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (power * factor >= rough) return power * factor;
    }
    return power * 10;
  }

  void legend() {
    y_ += 14;
    constexpr size_t kColumns = 5;
    const size_t shown = std::min(operators_.size(), kNamedOperators);
    double others = 0;
    for (size_t i = shown; i < operators_.size(); ++i) others += operators_[i].ms;
    const size_t entries = shown + (others > 0 ? 1 : 0);
    for (size_t i = 0; i < entries; ++i) {
      const double x = kMargin + static_cast<double>(i % kColumns) * kInner / kColumns;
      const double y = y_ + 12 + static_cast<double>(i / kColumns) * 34;
      const bool other = i == shown;
      const double ms = other ? others : operators_[i].ms;
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"24\" rx=\"2\" fill=\"{}\"/>", x, y - 10,
          kColours[other ? kNamedOperators : i]);
      text(x + 18, y, 12, "#1f2933", "start", other ? "others" : shortened(operators_[i].name, 24));
      text(x + 18, y + 14, 11, "#7b8794", "start",
           fmt::format("{:.1f} % \u00b7 {}", sum_ > 0 ? ms / sum_ * 100 : 0, time_label(ms)));
    }
    y_ += 12 + static_cast<double>((entries + kColumns - 1) / kColumns) * 34;
  }

  void bars() {
    heading("The slowest", "dark: the least time that this device's limits allow for the same work");
    const size_t count = std::min(kBars, sorted_.size());
    const double most = count == 0 ? 1 : std::max(sorted_[0]->ms, 1e-9);
    constexpr double kLabel = 330, kBar = 400;
    for (size_t i = 0; i < count; ++i) {
      const NodeTime& node = *sorted_[i];
      const double y = y_ + static_cast<double>(i) * 24, width = std::max(1.0, node.ms / most * kBar);
      const double least = std::min(1.0, profile_.limits.least_ms(node) / node.ms) * width;
      text(kMargin + kLabel - 10, y + 14, 12, "#1f2933", "end", shortened(node.title(), 44));
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" rx=\"2\" fill=\"{}\">", kMargin + kLabel, y,
          width, colour_of(node));
      title_of(node);
      add("</rect>");
      if (least > 0) {
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"18\" rx=\"2\" fill=\"#000000\" "
            "fill-opacity=\"0.38\"/>",
            kMargin + kLabel, y, least);
      }
      text(kMargin + kLabel + width + 8, y + 14, 11, "#52606d", "start", said_of(node));
    }
    y_ += static_cast<double>(count) * 24;
  }

  std::string said_of(const NodeTime& node) const {
    std::string said = fmt::format("{}  {:.1f} %", time_label(node.ms), sum_ > 0 ? node.ms / sum_ * 100 : 0);
    if (node.flops > 2 * node.bytes) {
      said += fmt::format("  {:.0f} GFLOP/s", node.arithmetic() / 1e9);
    } else if (node.bytes > 0) {
      said += fmt::format("  {:.1f} GB/s", node.bandwidth() / 1e9);
    }
    return said;
  }

  // Both axes are logarithmic: arithmetic per byte moved, and arithmetic per second.
  void roof() {
    const Limits& limits = profile_.limits;
    std::vector<const NodeTime*> known;
    for (const NodeTime* node : sorted_) {
      if (node->bytes > 0 && node->flops > 0 && node->ms > 0) known.push_back(node);
    }
    if (known.empty() || limits.bandwidth <= 0 || limits.arithmetic <= 0) return;
    heading("Under the roof",
            "each circle a launch, as large as its time; the roof is what memory and arithmetic allow");
    constexpr double kHeight = 320;
    double least_x = limits.arithmetic / limits.bandwidth, most_x = least_x, most_y = limits.arithmetic,
           least_y = limits.arithmetic;
    for (const NodeTime* node : known) {
      const double x = intensity(*node);
      least_x = std::min(least_x, x);
      most_x = std::max(most_x, x);
      least_y = std::min(least_y, node->arithmetic());
      most_y = std::max(most_y, node->arithmetic());
    }
    const double x0 = std::floor(std::log10(least_x)), x1 = std::ceil(std::log10(most_x) + 0.2);
    const double y1 = std::ceil(std::log10(most_y)), y0 = std::max(std::floor(std::log10(least_y)), y1 - 6);
    const double left = kMargin + 46, wide = kInner - 46, top = y_ + 4;
    const auto at_x = [&](double value) { return left + (std::log10(value) - x0) / (x1 - x0) * wide; };
    const auto at_y = [&](double value) {
      return top + kHeight - std::max(0.0, (std::log10(value) - y0) / (y1 - y0)) * kHeight;
    };
    for (double decade = x0; decade <= x1 + 0.01; ++decade) {
      const double x = at_x(std::pow(10, decade));
      add("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#e4e7eb\"/>", x, top,
          top + kHeight);
      text(x, top + kHeight + 16, 10, "#7b8794", "middle", fmt::format("{:g}", std::pow(10, decade)));
    }
    for (double decade = y0; decade <= y1 + 0.01; ++decade) {
      const double y = at_y(std::pow(10, decade));
      add("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"#e4e7eb\"/>", left, y,
          left + wide);
      text(left - 8, y + 4, 10, "#7b8794", "end", fmt::format("{:g}", std::pow(10, decade - 9)));
    }
    const double ridge = limits.arithmetic / limits.bandwidth,
                 start = std::max(std::pow(10, x0), std::pow(10, y0) / limits.bandwidth);
    add("<polyline points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" stroke=\"#1f2933\" "
        "stroke-width=\"2\"/>",
        at_x(start), at_y(limits.bandwidth * start), at_x(ridge), at_y(limits.arithmetic), left + wide,
        at_y(limits.arithmetic));
    text(left + wide - 4, at_y(limits.arithmetic) - 7, 11, "#1f2933", "end",
         fmt::format("matmul {:.0f} GFLOP/s", limits.arithmetic / 1e9));
    const double middle = std::sqrt(start * ridge);
    text(at_x(middle) - 8, at_y(limits.bandwidth * middle) - 8, 11, "#1f2933", "end",
         fmt::format("copy {:.1f} GB/s", limits.bandwidth / 1e9));
    const double most_ms = std::max(sorted_[0]->ms, 1e-9);
    for (const NodeTime* node : known) {
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.6\" stroke=\"#ffffff\" "
          "stroke-width=\"0.7\">",
          at_x(intensity(*node)), at_y(node->arithmetic()), 2.5 + 13 * std::sqrt(node->ms / most_ms), colour_of(*node));
      title_of(*node);
      add("</circle>");
    }
    y_ = top + kHeight + 34;
    text(left + wide / 2, y_, 11, "#52606d", "middle", "arithmetic per byte moved (FLOP / byte)");
    add("<text transform=\"translate({:.1f},{:.1f}) rotate(-90)\" font-size=\"11\" fill=\"#52606d\" "
        "text-anchor=\"middle\">GFLOP / s</text>",
        kMargin + 6, top + kHeight / 2);
    y_ += 16;
  }

  static double intensity(const NodeTime& node) {
    return static_cast<double>(node.flops) / static_cast<double>(node.bytes);
  }

  const ModelProfile& profile_;
  std::vector<Operator> operators_;
  std::vector<const NodeTime*> sorted_;
  double sum_ = 0, y_ = 0;
  std::string body_;
};

}  // namespace

std::string picture(const ModelProfile& profile) { return Picture(profile).draw(); }

}  // namespace tenon::cli

#include "sdk/conformance/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "primitives/text/format.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {
namespace {

// Returns the command that repeats a test.
std::string command_text(const Row& row, const RunInfo& info) {
  return fmt::format("{} --case {}", info.command, row.test->name);
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  return result;
}

std::string xml(const std::string& text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return result;
}

std::string seconds_text(double seconds) { return fmt::format("{:.3f}", seconds); }

struct Group {
  std::string name;
  Counts counts;
};

std::vector<Group> groups_of(const std::vector<Row>& rows) {
  std::vector<Group> groups;
  for (const Row& row : rows) {
    const std::string name = group_of(row.test->name);
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.name == name; });
    Group& group = found == groups.end() ? groups.emplace_back(Group{name, {}}) : *found;
    ++group.counts[static_cast<size_t>(row.finding.outcome)];
  }
  return groups;
}

void append_line(std::string* text, const std::string& name, const Counts& counts) {
  *text += fmt::format("{:<24}", name);
  for (int number : counts) *text += number == 0 ? "          ." : fmt::format(" {:10}", number);
  text->push_back('\n');
}

int count_unclaimed(const std::vector<Row>& rows) {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [](const Row& row) {
    return row.finding.outcome == Outcome::skipped && row.finding.not_claimed;
  }));
}

// Returns " (not claimed)", " (3 not claimed)" or nothing: the number of skipped tests that the provider does not
// claim.
std::string unclaimed_text(int number, const Counts& counts) {
  if (number == 0) return {};
  const bool all = number == counts[static_cast<size_t>(Outcome::skipped)];
  return all ? " (not claimed)" : fmt::format(" ({} not claimed)", number);
}

}  // namespace

std::string group_of(const std::string& name) {
  size_t end = name.find('/');
  if (name.starts_with("primitives/") && name.find('/', end + 1) != std::string::npos) end = name.find('/', end + 1);
  return name.substr(0, end);
}

Counts count(const std::vector<Row>& rows) {
  Counts counts{};
  for (const Row& row : rows) ++counts[static_cast<size_t>(row.finding.outcome)];
  return counts;
}

std::string failure_text(const Row& row, const RunInfo& info) {
  std::string outcome(outcome_name(row.finding.outcome));
  std::transform(outcome.begin(), outcome.end(), outcome.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string text = fmt::format("{} {}\n{}\n", outcome, row.test->name, indented(row.finding.sentence));
  if (!row.test->claim.empty()) {
    // A crash or a hang breaks rule X01 or X02 in addition to the rule of the test.
    const bool ended = row.finding.outcome == Outcome::crashed || row.finding.outcome == Outcome::hung;
    text += fmt::format("    held to: {}\n",
                        ended ? broken(row.test->rule, "{}", row.test->claim).message() : row.test->claim);
  }
  if (!row.finding.output.empty()) text += fmt::format("    it printed:\n{}\n", indented(row.finding.output));
  return fmt::format("{}    {}\n", text, command_text(row, info));
}

std::string table_text(const std::vector<Row>& rows, const RunInfo& info) {
  std::string text =
      "\n                            passed     failed    crashed       hung    skipped  exp. fail unexp.pass\n";
  for (const Group& group : groups_of(rows)) append_line(&text, group.name, group.counts);
  const Counts counts = count(rows);
  append_line(&text, "all", counts);
  std::string line;
  for (int i = 0; i < outcome_count; ++i) {
    if (i > 0) line += ", ";
    line += fmt::format("{} {}", counts[static_cast<size_t>(i)], outcome_name(static_cast<Outcome>(i)));
    if (static_cast<Outcome>(i) == Outcome::skipped) line += unclaimed_text(count_unclaimed(rows), counts);
  }
  return fmt::format("{}{} in {} s\n", text, line, seconds_text(info.seconds));
}

std::string junit_text(const std::vector<Row>& rows, const RunInfo& info) {
  const Counts counts = count(rows);
  const auto of = [&](Outcome outcome) { return counts[static_cast<size_t>(outcome)]; };
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"tenon conform {}\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">\n",
      xml(info.path), rows.size(), of(Outcome::failed) + of(Outcome::unexpected_pass),
      of(Outcome::crashed) + of(Outcome::hung), of(Outcome::skipped) + of(Outcome::expected_failure),
      seconds_text(info.seconds));
  for (const Row& row : rows) {
    const Finding& finding = row.finding;
    text += fmt::format("<testcase classname=\"{}\" name=\"{}\" status=\"run\" time=\"{}\"",
                        xml(group_of(row.test->name)), xml(row.test->name), seconds_text(finding.milliseconds / 1e3));
    if (finding.outcome == Outcome::passed) {
      text += "/>\n";
      continue;
    }
    const bool error = finding.outcome == Outcome::crashed || finding.outcome == Outcome::hung;
    const std::string_view tag = !is_bad(finding.outcome) ? "skipped" : error ? "error" : "failure";
    text +=
        fmt::format("><{} type=\"{}\" message=\"{}\">{}</{}></testcase>\n", tag, outcome_name(finding.outcome),
                    xml(finding.sentence), is_bad(finding.outcome) ? xml(failure_text(row, info)) : std::string(), tag);
  }
  return fmt::format("{}</testsuite>\n</testsuites>\n", text);
}

std::string json_text(const std::vector<Row>& rows, const RunInfo& info) {
  using nlohmann::json;
  json tests = json::array(), counts = json::object();
  const Counts counted = count(rows);
  for (int i = 0; i < outcome_count; ++i) {
    counts[std::string(outcome_name(static_cast<Outcome>(i)))] = counted[static_cast<size_t>(i)];
  }
  for (const Row& row : rows) {
    tests.push_back({{"name", row.test->name},
                     {"outcome", std::string(outcome_name(row.finding.outcome))},
                     {"not claimed", row.finding.not_claimed},
                     {"rule", is_bad(row.finding.outcome) ? row.finding.rule : row.test->rule},
                     {"sentence", row.finding.sentence},
                     {"claim", row.test->claim},
                     {"held to", row.test->rule},
                     {"output", row.finding.output},
                     {"milliseconds", row.finding.milliseconds},
                     {"command", command_text(row, info)}});
  }
  return json{{"path", info.path},
              {"provider", info.provider},
              {"seconds", info.seconds},
              {"counts", counts},
              {"not claimed", count_unclaimed(rows)},
              {"tests", tests}}
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

}  // namespace tenon::conformance

// Object detection: selects boxes. The result size depends on the elements, so the host computes it.
#include <algorithm>
#include <optional>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

// Two opposite corners, or the centre (x, y) with width and height.
Box box_of(const float* numbers, bool centred) {
  if (centred) {
    const float x = numbers[0], y = numbers[1], half_width = numbers[2] / 2, half_height = numbers[3] / 2;
    return {y - half_height, x - half_width, y + half_height, x + half_width};
  }
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]), std::max(numbers[0], numbers[2]),
          std::max(numbers[1], numbers[3])};
}

// The area that both boxes cover, divided by the area that at least one covers.
float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return 0;
  const float both = height * width, all = a.area() + b.area() - both;
  return all > 0 ? both / all : 0;
}

struct Limits {
  int64_t most = 0;
  float overlap = 0;
  std::optional<float> score;
};

// The indices of the selected boxes, highest score first.
std::vector<int64_t> kept(const std::vector<Box>& boxes, const float* scores, const Limits& limits) {
  std::vector<int64_t> order, stay;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (!limits.score || scores[i] > *limits.score) order.push_back(static_cast<int64_t>(i));
  }
  // NaN is below all numbers.
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[a] > scores[b] || (scores[b] != scores[b] && scores[a] == scores[a]);
  });
  for (const int64_t candidate : order) {
    if (static_cast<int64_t>(stay.size()) >= limits.most) break;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool hidden = std::any_of(stay.begin(), stay.end(), [&](int64_t other) {
      return overlap(boxes[static_cast<size_t>(other)], box) > limits.overlap;
    });
    if (!hidden) stay.push_back(candidate);
  }
  return stay;
}

TensorList non_max_suppression(NodeContext& n) {
  const Dims &boxes = n.dims(0), &scores = n.dims(1);
  Limits limits;
  if (n.has(2)) limits.most = n.scalar(2).to_int();
  if (n.has(3)) limits.overlap = static_cast<float>(n.scalar(3).to_double());
  if (n.has(4)) limits.score = static_cast<float>(n.scalar(4).to_double());
  const bool centred = n.flag("center_point_box", false);
  const auto each = static_cast<double>(boxes[1]);
  const double compared = std::clamp(static_cast<double>(limits.most), 0.0, each) * each;
  const double lists = static_cast<double>(scores[0]) * static_cast<double>(scores[1]);
  n.require_host_work(0, lists * (compared + each));
  const std::vector<float> corners = n.elements<float>(0), marks = n.elements<float>(1);
  std::vector<int64_t> rows;
  for (int64_t batch = 0; batch < boxes[0]; ++batch) {
    std::vector<Box> list;
    for (int64_t i = 0; i < boxes[1]; ++i) list.push_back(box_of(corners.data() + (batch * boxes[1] + i) * 4, centred));
    for (int64_t type = 0; type < scores[1]; ++type) {
      for (const int64_t box : kept(list, marks.data() + (batch * scores[1] + type) * boxes[1], limits))
        rows.insert(rows.end(), {batch, type, box});
    }
  }
  return {Tensor::from<int64_t>(rows, {static_cast<int64_t>(rows.size()) / 3, 3}, n.device())};
}

constexpr Translator kDetectionRows[] = {
    {.op_type = "NonMaxSuppression", .since = 10, .translate = non_max_suppression},
};

}  // namespace

std::span<const Translator> detection_translators() { return kDetectionRows; }

}  // namespace tenon::onnx

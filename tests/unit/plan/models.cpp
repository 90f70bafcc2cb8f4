#include "tests/unit/plan/models.h"

#include <utility>

#include "primitives/text/format.h"

namespace tenon::testing {

void ProgramOfValues::read(std::initializer_list<uint32_t> inputs) {
  for (const uint32_t input : inputs) values_[input].last = step_;
}

uint32_t ProgramOfValues::make(int64_t elements, std::initializer_list<uint32_t> inputs) {
  ++step_;
  read(inputs);
  values_.push_back({static_cast<uint64_t>(elements) * 4, 64, step_, step_, plan::kNone});
  return static_cast<uint32_t>(values_.size() - 1);
}

uint32_t ProgramOfValues::in_place(std::initializer_list<uint32_t> inputs) {
  const uint32_t over = *inputs.begin();
  if (values_[over].group == plan::kNone) values_[over].group = groups_++;
  const uint32_t result = make(static_cast<int64_t>(values_[over].bytes / 4), inputs);
  values_[result].group = values_[over].group;
  return result;
}

void ProgramOfValues::workspace(int64_t bytes) {
  values_.push_back({static_cast<uint64_t>(bytes), 256, step_, step_, plan::kNone});
}

namespace {

ModelOfValues resnet50(int64_t batch) {
  ProgramOfValues p;
  uint32_t x = p.make(batch * 64 * 112 * 112, {});
  x = p.make(batch * 64 * 56 * 56, {x});
  const int64_t blocks[] = {3, 4, 6, 3};
  int64_t size = 56;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = 64 << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const bool halves = stage > 0 && block == 0;
      const uint32_t narrow = p.make(batch * width * size * size, {x});
      if (halves) size /= 2;
      const uint32_t inner = p.make(batch * width * size * size, {narrow});
      p.workspace(batch * 36 * width * size);
      const uint32_t wide = p.make(batch * 4 * width * size * size, {inner});
      const uint32_t shortcut = block == 0 ? p.make(batch * 4 * width * size * size, {x}) : x;
      x = p.in_place({wide, shortcut});
    }
  }
  x = p.make(batch * 2048, {x});
  p.make(batch * 1000, {x});
  return {fmt::format("ResNet-50, batch {}", batch), p.values()};
}

ModelOfValues mobilenet() {
  ProgramOfValues p;
  struct Stage {
    int64_t expand, channels, repeats, stride;
  };
  const Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t size = 112, channels = 32;
  uint32_t x = p.make(channels * size * size, {});
  for (const Stage& stage : stages) {
    for (int64_t i = 0; i < stage.repeats; ++i) {
      const int64_t inner = stage.expand * channels;
      uint32_t y = stage.expand == 1 ? x : p.make(inner * size * size, {x});
      const bool strided = i == 0 && stage.stride == 2;
      if (strided) size /= 2;
      y = p.make(inner * size * size, {y});
      y = p.make(stage.channels * size * size, {y});
      x = i > 0 ? p.in_place({y, x}) : y;
      channels = stage.channels;
    }
  }
  x = p.make(1280 * size * size, {x});
  x = p.make(1280, {x});
  p.make(1000, {x});
  return {"MobileNet-v2", p.values()};
}

ModelOfValues unet() {
  ProgramOfValues p;
  std::vector<uint32_t> skips;
  int64_t size = 256;
  uint32_t x = p.make(3 * size * size, {});
  for (int64_t width = 64; width <= 1024; width *= 2) {
    x = p.make(width * size * size, {x});
    x = p.make(width * size * size, {x});
    if (width == 1024) break;
    skips.push_back(x);
    size /= 2;
    x = p.make(width * size * size, {x});
  }
  for (int64_t width = 512; width >= 64; width /= 2) {
    size *= 2;
    const uint32_t up = p.make(width * size * size, {x});
    const uint32_t joined = p.make(2 * width * size * size, {skips.back(), up});
    skips.pop_back();
    x = p.make(width * size * size, {joined});
    x = p.make(width * size * size, {x});
  }
  p.make(2 * size * size, {x});
  return {"U-Net, 256 x 256", p.values()};
}

ModelOfValues transformer(const std::string& name, int64_t tokens, int64_t width, int64_t heads, int64_t layers) {
  ProgramOfValues p;
  const int64_t whole = tokens * width;
  uint32_t x = p.make(whole, {});
  const uint32_t mask = p.make(tokens * tokens, {});
  for (int64_t layer = 0; layer < layers; ++layer) {
    const uint32_t q = p.make(whole, {x}), k = p.make(whole, {x}), v = p.make(whole, {x});
    const uint32_t turned_q = p.make(whole, {q}), turned_k = p.make(whole, {k}), turned_v = p.make(whole, {v});
    uint32_t scores = p.make(heads * tokens * tokens, {turned_q, turned_k});
    scores = p.in_place({scores, mask});
    scores = p.in_place({scores});
    const uint32_t mixed = p.make(whole, {scores, turned_v});
    const uint32_t turned = p.make(whole, {mixed});
    uint32_t y = p.make(whole, {turned});
    y = p.in_place({y, x});
    x = p.make(whole, {y});
    uint32_t inner = p.make(4 * whole, {x});
    inner = p.in_place({inner});
    y = p.make(whole, {inner});
    p.workspace(tokens * 1024);
    y = p.in_place({y, x});
    x = p.make(whole, {y});
  }
  p.make(width, {x});
  return {name, p.values()};
}

ModelOfValues densenet() {
  ProgramOfValues p;
  const int64_t blocks[] = {6, 12, 24, 16};
  int64_t size = 56, channels = 64;
  uint32_t x = p.make(channels * size * size, {});
  for (const int64_t layers : blocks) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      const uint32_t normed = p.make(channels * size * size, {x});
      const uint32_t narrow = p.make(128 * size * size, {normed});
      const uint32_t grown = p.make(32 * size * size, {narrow});
      channels += 32;
      x = p.make(channels * size * size, {x, grown});
    }
    channels /= 2;
    x = p.make(channels * size * size, {x});
    size /= 2;
    if (size >= 7) x = p.make(channels * size * size, {x});
  }
  p.make(1000, {x});
  return {"DenseNet-121", p.values()};
}

}  // namespace

std::vector<ModelOfValues> models_of_values() {
  return {resnet50(1),
          resnet50(8),
          mobilenet(),
          unet(),
          transformer("BERT-base, 1 x 128", 128, 768, 12, 12),
          transformer("BERT-base, 1 x 512", 512, 768, 12, 12),
          transformer("ViT-B/16", 197, 768, 12, 12),
          transformer("500 layers", 128, 768, 12, 500),
          densenet()};
}

}  // namespace tenon::testing

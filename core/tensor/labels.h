// Labels: the names of the parts of a program ("node 14 (/encoder/MatMul)"). Errors name the part whose work failed, on
// any device and at any later time. LabelScope: the part that the calling thread works for. Internal.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/export.h"
#include "primitives/status/status.h"

namespace tenon {

// Unfinished work may refer to a label, so the labels of a dropped program stay until that work is done.
class TENON_API Labels {
 public:
  Labels() = default;
  Labels(Labels&&) noexcept = default;
  Labels& operator=(Labels&& other) noexcept {
    texts_.swap(other.texts_);
    return *this;
  }
  ~Labels();

  void add(std::string text) { texts_.push_back(std::make_unique<const std::string>(std::move(text))); }
  size_t size() const { return texts_.size(); }
  const std::string& operator[](size_t index) const { return *texts_[index]; }

 private:
  std::vector<std::unique_ptr<const std::string>> texts_;
};

// While this object lives, the calling thread works for the part called `label`, which is an entry of a Labels. An
// empty label changes nothing.
class TENON_API LabelScope {
 public:
  explicit LabelScope(const std::string& label);
  ~LabelScope();
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;

 private:
  const std::string* previous_;
};

// `status` with "while running `label` on `device`", unless an error of the part has that line already.
TENON_API Status with_label(const Status& status, std::string_view label, std::string_view device);

}  // namespace tenon

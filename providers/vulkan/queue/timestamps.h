// Timestamps: places where the device writes its time, for the events of timed streams.
//
// A place is taken when an event is recorded, and given back when the event is recorded again or destroyed. It belongs
// to one stream, whose commands reset and write it in order; so it may be given back before an earlier write has
// happened.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

class Timestamps : public std::enable_shared_from_this<Timestamps> {
 public:
  explicit Timestamps(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Timestamps();
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;

  // One place. The destructor gives it back.
  class Place {
   public:
    Place(std::shared_ptr<Timestamps> owner, VkQueryPool pool, uint32_t query)
        : owner_(std::move(owner)), pool_(pool), query_(query) {}
    ~Place() { owner_->give_back(pool_, query_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Records a write of the time at which all earlier commands are done.
    void write(VkCommandBuffer commands) const;
    // Reads the ticks. The write must be done.
    VkResult read(uint64_t* out_ticks) const;

   private:
    std::shared_ptr<Timestamps> owner_;
    VkQueryPool pool_;
    uint32_t query_;
  };

  VkResult take(std::shared_ptr<Place>* out_place);

 private:
  static constexpr uint32_t pool_size = 64;

  struct Free {
    VkQueryPool pool;
    uint32_t query;
  };
  void give_back(VkQueryPool pool, uint32_t query);

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::vector<VkQueryPool> pools_;
  std::vector<Free> free_;
};

}  // namespace tenon::provider::vulkan

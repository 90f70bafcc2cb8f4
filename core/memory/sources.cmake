target_sources(tenon_core PRIVATE
  memory/allocator.cpp
  memory/heap.cpp
  memory/housekeeping.cpp
  memory/small_blocks.cpp)

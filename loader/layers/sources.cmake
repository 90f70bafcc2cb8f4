target_sources(tenon_loader PRIVATE
  layers/validate/call.cpp
  layers/validate/launch_rules.cpp
  layers/validate/memory_rules.cpp
  layers/validate/primitive_rules.cpp
  layers/validate/services.cpp
  layers/validate/stream_rules.cpp
  layers/validate/validate.cpp)

target_sources(tenon_core PRIVATE graph/recorder.cpp graph/run.cpp)

// Captured graphs: the work of a stream, which can run several times.
#include <memory>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/stream.h"

using tenon::fakes::cuda::control;

using Works = std::vector<std::function<void()>>;

struct CUgraph_st {
  int device = 0;
  std::shared_ptr<const Works> works;
};

struct CUgraphExec_st {
  int device = 0;
  std::shared_ptr<const Works> works;
};

#undef cuStreamBeginCapture
FAKE_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  if (stream->captures()) return CUDA_ERROR_ILLEGAL_STATE;
  stream->begin_capture();
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  if (!stream->captures()) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = new CUgraph_st{stream->device, std::make_shared<const Works>(stream->end_capture())};
  ++control().objects;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  FAKE_ENTER(true);
  FAKE_HERE(graph);
  if (const int failure = control().fail_graph.exchange(0); failure != 0) return static_cast<CUresult>(failure);
  *exec = new CUgraphExec_st{graph->device, graph->works};
  ++control().objects;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  FAKE_HERE(exec);
  if (const int failure = control().fail_launch.exchange(0); failure != 0) return static_cast<CUresult>(failure);
  control().graph_launches.fetch_add(1);
  stream->push([works = exec->works] {
    for (const std::function<void()>& work : *works) work();
  });
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete exec;
  --control().objects;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  --control().objects;
  return CUDA_SUCCESS;
}

/* runtime.h - what the parts of the stand-in for the CUDA runtime share.
 *
 * One mutex guards everything here; api() takes it for each call, so that all other functions run
 * under it. Kernels run under it too: they call no API but cudaGraphSetConditional. */
#pragma once

#include <cuda.h>
#include <cuda_emulator.h>
#include <cuda_emulator_control.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace cuda_emulator
{
/* The kernel's function in its name, without what is in < >. Lives as long as the process. */
const char *function_of(const char *name);
} // namespace cuda_emulator

namespace cuda_emulator::runtime
{

/* Whether and when an operation has ended. */
struct mark {
    bool done = false;
    unsigned long long ns = 0;
};
using mark_ref = std::shared_ptr<mark>;

struct plan;
struct graph_run;

/* Conditional value of a graph. */
struct handle {
    cudaGraphConditionalHandle id;
    CUgraph_st *graph;
    unsigned first, flags, value;
    bool used;        /* by a node */
    CUgreenCtx green; /* current when it was made */
};

enum class place { pageable, pinned, managed, device };

/* A range of memory that a copy names: `serial` tells its allocation from a later one. */
struct range {
    char *at = nullptr;
    size_t size = 0;
    place where = place::pageable;
    unsigned long serial = 0;
};

/* What a graph node or an operation on a stream does. */
struct task {
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    /* kernel */
    const char *name = "";
    dim3 grid, block;
    size_t shared = 0;
    unsigned cluster = 1; /* blocks along z */
    bool overlap = false;
    CUgreenCtx green = nullptr; /* of its stream */
    std::function<void()> body;
    /* copy, set */
    range to, from;
    std::vector<char> staged; /* what is copied, where it was pageable */
    int value = 0;
    /* event record */
    cudaEvent_t event = nullptr;
    /* child graph, conditional */
    std::shared_ptr<plan> child;
    std::shared_ptr<handle> condition;
    cudaGraphConditionalNodeType loop = cudaGraphCondTypeIf;
    std::vector<cudaGraph_t> bodies; /* owned by the node */
    cudaError_t fails = cudaSuccess; /* injected: when it runs */
};
using task_ref = std::shared_ptr<task>;

/* One piece of work on a stream: a task, a graph, or nothing but an order (an event). */
struct operation {
    task_ref what;
    std::shared_ptr<graph_run> graph;
    mark_ref done = std::make_shared<mark>();
    std::vector<mark_ref> waits;
    cudaError_t fails = cudaSuccess;
    bool hung = false;
};

struct edge {
    cudaGraphNode_t from;
    cudaGraphEdgeData data;
};

struct capture {
    unsigned long long id = 0;
    cudaGraph_t graph = nullptr;
    bool own = true; /* the graph was made by the capture */
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    cudaStream_t origin = nullptr;
    bool invalid = false, over = false;
    std::set<cudaStream_t> streams;
};
using capture_ref = std::shared_ptr<capture>;

/* Instantiated: nodes by number, with what follows each. */
struct plan {
    struct step {
        task_ref what;
        std::vector<unsigned> next;
        unsigned waits = 0;
        std::vector<std::shared_ptr<plan>> inner; /* bodies, or the child */
        cudaGraphNode_t node = nullptr;
        std::vector<unsigned> before; /* in the order of the node's dependencies */
    };
    std::vector<step> steps;
    std::vector<std::shared_ptr<handle>> handles;
    bool conditional = false; /* here or in a body */
};

/* A plan being run: which steps may go on, one of them at a time. */
struct graph_run {
    explicit graph_run(std::shared_ptr<plan> of);
    bool ended() const
    {
        return left == 0;
    }
    cudaError_t step();

    std::shared_ptr<plan> of;
    std::map<cudaEvent_t, mark_ref> records; /* of external event nodes */
    graph_run *top = nullptr;

  private:
    cudaError_t advance(unsigned i, bool &ends);
    bool open(unsigned i); /* enter a body; false: there is none to run */
    void finish(unsigned i);
    void record(cudaEvent_t event);
    std::vector<unsigned> waits, ready; /* a heap by the order */
    std::map<unsigned, std::unique_ptr<graph_run>> inside;
    size_t left;
    bool first; /* step: conditional values are as the graph begins */
    unsigned rounds = 0;
};

struct allocation {
    char *base = nullptr; /* of its pages, guards not included */
    size_t pages = 0;     /* bytes */
    char *at = nullptr;   /* what the caller has */
    size_t size = 0;
    place where = place::device;
    unsigned long serial = 0;
    unsigned flags = 0;
};

struct injection {
    int countdown;
    cudaError_t error;
};

struct state {
    std::mutex mutex;

    /* device */
    int capability = 90, processors = 132;
    size_t memory = (size_t)8 << 30;
    int driver = 0; /* version; 0: the toolkit's */
    int code = 90;  /* what kernels are compiled for */
    cudaError_t absent = cudaSuccess, sticky = cudaSuccess;
    std::map<const void *, int> shared_limits;
    std::set<const void *> large_clusters; /* functions that may have more than 8 blocks */

    /* memory: runtime_memory.cpp */
    std::map<char *, allocation> allocations; /* by base */
    bool protect = true;
    bool reachable = false; /* device memory, for kernels and copies */

    /* streams and events: runtime_stream.cpp, runtime_event.cpp */
    std::vector<cudaStream_t> streams; /* the legacy one first */
    std::set<cudaEvent_t> events;
    std::set<CUgreenCtx> greens;
    CUgreenCtx newest_green = nullptr;
    unsigned long long serial = 0;
    enum cuda_emulator_when when = CUDA_EMULATOR_LOWEST;
    unsigned random = 1;

    /* capture and graphs */
    std::set<capture_ref> captures;
    std::set<cudaGraph_t> graphs;
    std::set<cudaGraphExec_t> execs;
    std::map<cudaGraphConditionalHandle, std::shared_ptr<handle>> handles;

    /* control */
    std::map<std::string, injection> injections;
    cudaError_t late_error = cudaSuccess; /* for the operation that this call puts on a stream */
    int hang = 0;
    bool bodies = true;
    std::vector<std::string> always;
    struct cuda_emulator_counters count = {};
    std::map<std::string, unsigned long> calls, kernels;
    std::vector<struct cuda_emulator_grid> grids; /* the first GRIDS */
    static constexpr size_t GRIDS = 64;
    std::string report;
    unsigned background = 0; /* microseconds */
    std::vector<std::shared_ptr<void>> dead;
};
state &the();
/* Destroy what a handle names, and never give its address to another. */
template <class T> void bury(T *p)
{
    *p = T();
    the().dead.push_back(
        std::shared_ptr<void>(static_cast<void *>(p), [](void *q) { delete static_cast<T *>(q); }));
}
unsigned draw(unsigned below);
unsigned long long now_ns();

/* A call of the API: counted, failed where a test asked for it, refused where there is no device,
 * after a kept error or while a capture forbids it. */
enum {
    PLAIN = 0,
    UNSAFE = 1,   /* refused while a capture forbids it */
    ASYNC = 2,    /* puts work on a stream: a kept error comes when that runs */
    ANYWHERE = 4, /* needs no device, works after a kept error */
};
cudaError_t enter(const char *name, unsigned flags);
cudaError_t leave(cudaError_t error, unsigned flags);
template <class F> cudaError_t api(const char *name, unsigned flags, F f)
{
    std::lock_guard<std::mutex> lock(the().mutex);
    cudaError_t error = enter(name, flags);
    if (error == cudaSuccess)
        error = f();
    the().late_error = cudaSuccess;
    return leave(error, flags);
}
bool injected(const char *what, cudaError_t &error); /* counts down */
bool kept(cudaError_t error);                        /* by the device, once it occurred */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

size_t shared_optin();
unsigned cluster_of(const cudaLaunchConfig_t &config);
cudaError_t check_cluster(const void *function, unsigned cluster, unsigned blocks);
size_t shared_limit(const void *function);

/* Memory. */
/* Until out_of_reach(), with which all that takes the mutex ends, but a query amid work. */
void reach_device();
void out_of_reach();
/* Memory that can be reached while this lives, if the device's is out of reach; the rest stays so:
 * a model's weights are a thousand copies, each of them to one of as many allocations. */
class within_reach
{
  public:
    explicit within_reach(const char *at);
    ~within_reach();
    within_reach(const within_reach &) = delete;
    within_reach &operator=(const within_reach &) = delete;

  private:
    const allocation *opened = nullptr;
};
const allocation *find_allocation(const void *p);
cudaError_t find_range(const void *p, size_t size, range &to);
bool alive(const range &r);
void forget_memory();

/* Green contexts; NULL is the device's own. */
CUgreenCtx current_context(); /* of the thread */
void leave_context();
void forget_contexts();

/* Work. */
cudaError_t create_stream(cudaStream_t *to, unsigned flags, int priority);
cudaStream_t find_stream(cudaStream_t stream); /* NULL: no such */
cudaError_t submit(cudaStream_t stream, task_ref what);
cudaError_t enqueue(cudaStream_t stream, operation &&op);
cudaError_t perform(const task &t);
bool progress();  /* make one step; false: there was none to make */
bool more_work(); /* there is a step to make */
cudaError_t wait_for(const mark_ref &m);
cudaError_t wait_for_all();
void raise(cudaError_t error);
void drop_work();

/* Capture and graphs. */
cudaError_t capture_guard();
cudaError_t invalidate(const capture_ref &c, cudaError_t error);
cudaError_t legacy_guard(cudaStream_t stream);
cudaError_t add_captured(cudaStream_t stream, task_ref what);
cudaGraphNode_t add_node(cudaGraph_t graph, task_ref what, std::vector<edge> deps);
cudaGraph_t make_graph(cudaGraph_t parent);
void delete_graph(cudaGraph_t graph);
void forget_graphs();
cudaError_t build_plan(cudaGraph_t graph, bool body, std::shared_ptr<plan> &to);

} // namespace cuda_emulator::runtime

struct CUgreenCtx_st {
    unsigned processors = 0;
};

struct CUstream_st {
    CUgreenCtx green = nullptr;
    unsigned long long serial = 0;
    unsigned flags = 0;
    int priority = 0;
    std::deque<cuda_emulator::runtime::operation> work;
    cuda_emulator::runtime::mark_ref tail; /* of the latest operation */
    cuda_emulator::runtime::capture_ref capture;
    std::vector<cuda_emulator::runtime::edge> deps; /* of the next node captured */
    std::vector<cudaGraphNode_t> shown;             /* what cudaStreamGetCaptureInfo gave out */
    std::vector<cudaGraphEdgeData> shown_data;
    bool legacy = false;

    bool capturing() const
    {
        return capture != nullptr;
    }
    bool blocking() const
    {
        return !(flags & cudaStreamNonBlocking);
    }
};

struct CUevent_st {
    unsigned flags = 0;
    cuda_emulator::runtime::mark_ref last; /* of the latest record */
    cuda_emulator::runtime::capture_ref capture;
    std::vector<cuda_emulator::runtime::edge> deps;
};

struct CUgraphNode_st {
    cuda_emulator::runtime::task_ref what;
    cudaGraph_t graph = nullptr;
    std::vector<cuda_emulator::runtime::edge> deps;
    unsigned number = 0;
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
    cudaGraph_t parent = nullptr; /* this is the body of a conditional of it */
    int instances = 0;
};

struct CUgraphExec_st {
    std::shared_ptr<cuda_emulator::runtime::plan> plan;
    cudaGraph_t graph = nullptr; /* may be gone */
    cuda_emulator::runtime::mark_ref last;
};

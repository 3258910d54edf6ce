/* runtime_control.cpp - the switches and counters of cuda_emulator_control.h. */
#include "runtime.h"

#include <chrono>

using namespace cuda_emulator::runtime;

using guard = std::lock_guard<std::mutex>;

void cuda_emulator_timing(enum cuda_emulator_when when, unsigned seed)
{
    guard lock(the().mutex);
    the().when = when;
    the().random = seed * 2654435761U + 1;
}

int cuda_emulator_progress(int steps)
{
    guard lock(the().mutex);
    int made = 0;
    while (made < steps && progress())
        made++;
    out_of_reach();
    return made;
}

static void background()
{
    for (;;) {
        unsigned pause;
        {
            guard lock(the().mutex);
            pause = the().background;
            if (pause == 0)
                return;
            progress();
            out_of_reach();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(pause));
    }
}

void cuda_emulator_background(unsigned microseconds)
{
    static std::thread thread;
    static std::mutex one;
    guard only(one);
    {
        guard lock(the().mutex);
        the().background = microseconds;
    }
    if (microseconds && !thread.joinable())
        thread = std::thread(background);
    if (!microseconds && thread.joinable())
        thread.join();
}

void cuda_emulator_fail(const char *call, int nth, cudaError_t error)
{
    guard lock(the().mutex);
    the().injections.erase(call);
    if (error != cudaSuccess && nth > 0)
        the().injections[call] = injection{nth, error};
}

static void release_hung()
{
    the().hang = 0;
    for (cudaStream_t stream : the().streams)
        for (operation &op : stream->work)
            op.hung = false;
}

void cuda_emulator_hang(int nth)
{
    guard lock(the().mutex);
    if (nth <= 0)
        release_hung();
    else
        the().hang = nth;
}

void cuda_emulator_absent(cudaError_t error)
{
    guard lock(the().mutex);
    the().absent = error;
}

void cuda_emulator_bodies(bool run)
{
    guard lock(the().mutex);
    the().bodies = run;
}

void cuda_emulator_always(const char *pattern)
{
    guard lock(the().mutex);
    the().always.push_back(pattern);
}

void cuda_emulator_protect(bool on)
{
    guard lock(the().mutex);
    if (the().allocations.empty())
        the().protect = on;
}

void cuda_emulator_device(int capability, int processors, size_t memory)
{
    guard lock(the().mutex);
    the().capability = capability;
    the().processors = processors;
    the().memory = memory;
}

void cuda_emulator_code(int capability)
{
    guard lock(the().mutex);
    the().code = capability;
}

void cuda_emulator_driver(int version)
{
    guard lock(the().mutex);
    the().driver = version;
}

void cuda_emulator_counters(struct cuda_emulator_counters *to)
{
    guard lock(the().mutex);
    *to = the().count;
}

static void clear_counters()
{
    state &s = the();
    struct cuda_emulator_counters now = {}, old = s.count;
    now.device_bytes = now.device_peak = old.device_bytes;
    now.pinned_bytes = old.pinned_bytes;
    now.streams = old.streams;
    now.events = old.events;
    now.greens = old.greens;
    now.graphs = old.graphs;
    now.execs = old.execs;
    s.count = now;
    s.calls.clear();
    s.kernels.clear();
    s.grids.clear();
    s.report.clear();
}

void cuda_emulator_counters_clear(void)
{
    guard lock(the().mutex);
    clear_counters();
}

static unsigned long find(const std::map<std::string, unsigned long> &in, const char *name)
{
    auto i = in.find(name);
    return i == in.end() ? 0 : i->second;
}

unsigned long cuda_emulator_calls(const char *call)
{
    guard lock(the().mutex);
    return find(the().calls, call);
}

unsigned long long cuda_emulator_clock()
{
    return 1000ULL * the().count.kernels; // under the mutex, as every kernel
}

unsigned long cuda_emulator_kernels(const char *name)
{
    guard lock(the().mutex);
    return find(the().kernels, name);
}

size_t cuda_emulator_grids(struct cuda_emulator_grid *to, size_t room)
{
    guard lock(the().mutex);
    const auto &grids = the().grids;
    size_t n = grids.size() < room ? grids.size() : room;
    std::copy_n(grids.begin(), n, to);
    return n;
}

const char *cuda_emulator_report(void)
{
    guard lock(the().mutex);
    return the().report.c_str();
}

void cuda_emulator_reset(void)
{
    cuda_emulator_background(0);
    guard lock(the().mutex);
    state &s = the(), first;
    release_hung();
    drop_work();
    s.capability = first.capability;
    s.processors = first.processors;
    s.memory = first.memory;
    s.driver = first.driver;
    s.code = first.code;
    s.absent = s.sticky = cudaSuccess;
    s.when = first.when;
    s.random = first.random;
    s.injections.clear();
    s.bodies = true;
    s.always.clear();
    s.protect = s.allocations.empty() ? true : s.protect;
    clear_counters();
}

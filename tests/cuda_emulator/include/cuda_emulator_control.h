/* cuda_emulator_control.h - how a test steers the stand-in for the CUDA runtime.
 *
 * Everything holds for the process and may be called from any thread. What each switch is at the
 * start is in its line; cuda_emulator_reset() puts all of them back. */
#ifndef CUDA_EMULATOR_CONTROL_H
#define CUDA_EMULATOR_CONTROL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When and in which order work runs. All but EARLY are late: an operation runs only when somebody
 * asks for progress (a query makes some steps, a synchronize as many as it needs). */
enum cuda_emulator_when {
    CUDA_EMULATOR_LOWEST,  /* oldest stream first, in a graph the oldest node first; at the start */
    CUDA_EMULATOR_HIGHEST, /* newest stream first, newest node first */
    CUDA_EMULATOR_SHUFFLED, /* any that may run, by the seed; sometimes at once */
    CUDA_EMULATOR_EARLY     /* at once, oldest first */
};
void cuda_emulator_timing(enum cuda_emulator_when when, unsigned seed);
/* Make at most `steps` steps; returns how many there were to make. */
int cuda_emulator_progress(int steps);
/* Let a thread of the stand-in make steps by itself, one each `microseconds`; 0: none (start). For
 * hosts that watch mapped memory and ask nothing. */
void cuda_emulator_background(unsigned microseconds);

/* The nth call from now (1: the next) of the API function `call` fails with `error`, once. Errors
 * that a device keeps (illegal address, launch failure ...) injected into a call that puts work on
 * a stream come when that work runs; from then on every call returns them, until
 * cudaDeviceReset() or cuda_emulator_reset(). A kernel start is "cudaLaunchKernelEx"; "kernel" is
 * the nth kernel that runs; "no cuGreenCtxCreate" is a driver that lacks that function. error
 * cudaSuccess: take the injection back. */
void cuda_emulator_fail(const char *call, int nth, cudaError_t error);
/* The calling thread's next call of the API stands there (cuda_emulator_sites.h), and whether a
 * call between these lines of a file has been made to fail since the
 * process began. */
void cuda_emulator_site(const char *file, int line);
bool cuda_emulator_failed_at(const char *file, int first, int last);
/* The nth graph launch from now never ends; 0: none, and whatever hangs goes on (start). */
void cuda_emulator_hang(int nth);
/* No device: every call but the version ones and error texts returns `error`
 * (cudaErrorInsufficientDriver, cudaErrorNoDevice); cudaSuccess: there is one (start). */
void cuda_emulator_absent(cudaError_t error);

/* false: kernels are counted and their bodies not run; copies and sets are done (start: true). */
void cuda_emulator_bodies(bool run);
/* Kernels whose name matches the fnmatch pattern run even so. */
void cuda_emulator_always(const char *pattern);
/* Device memory is out of the host's reach (start: true). Only while none is allocated. */
void cuda_emulator_protect(bool on);
/* Put a kernel of one thread on a stream: `body` with `user`. For tests written in C. */
cudaError_t cuda_emulator_call(cudaStream_t stream, const char *name, void (*body)(void *user),
                               void *user);
/* The device: 10 * major + minor (90), multiprocessors (132), bytes of memory (8 GiB). */
void cuda_emulator_device(int capability, int processors, size_t memory);
/* What the kernels' code is for, 10 * major + minor (90): a driver that makes code for the device
 * of older PTX says so of each. */
void cuda_emulator_code(int capability);
/* The driver's version, 1000 * major + 10 * minor; 0: the toolkit's (start). */
void cuda_emulator_driver(int version);

/* The stand-in for a device's clock, ns: 1000 for each kernel that has run since the counters were
 * cleared. Called from a kernel. */
unsigned long long cuda_emulator_clock(void);

struct cuda_emulator_counters {
    unsigned long calls;         /* of the API */
    unsigned long kernels;       /* run, with or without body */
    unsigned long kernel_nodes;  /* captured */
    unsigned long overlaps;      /* kernels started or captured that may overlap the one before */
    unsigned long overlap_edges; /* programmatic edges that capture made */
    unsigned long allocations;   /* device, pinned and managed */
    unsigned long frees;
    unsigned long captures; /* begun */
    unsigned long instantiations;
    unsigned long updates;
    unsigned long uploads;
    unsigned long graph_launches;
    unsigned long graph_nodes; /* run, those of bodies included */
    unsigned long copies;      /* run */
    unsigned long copied_bytes;
    unsigned long sets;
    unsigned long reports; /* misuses found: cuda_emulator_report */
    size_t device_bytes;   /* allocated now */
    size_t device_peak;
    size_t pinned_bytes;
    int streams, events, graphs, execs, greens; /* alive; greens: green contexts */
};
void cuda_emulator_counters(struct cuda_emulator_counters *to);
void cuda_emulator_counters_clear(void); /* all but what is alive */
/* Multiprocessors of the newest green context; 0: there is none. */
int cuda_emulator_green_processors(void);
/* Calls of one API function; kernels run of one name. */
unsigned long cuda_emulator_calls(const char *call);
unsigned long cuda_emulator_kernels(const char *name);
/* The kernels that were started or captured since the counters were cleared, in order; of many the
 * first ones. Returns how many were written to `to`, at most `room`. */
struct cuda_emulator_grid {
    unsigned blocks[3], threads;
    size_t shared;    /* bytes that the launch asked for */
    unsigned cluster; /* blocks along z that may meet */
    const char *name; /* of the kernel's function, for as long as the process lives */
};
size_t cuda_emulator_grids(struct cuda_emulator_grid *to, size_t room);
/* The latest misuse in words, "" if there was none; until the next report. */
const char *cuda_emulator_report(void);

/* All switches as at the start, injections and the error kept by the device dropped, counters
 * cleared, waiting work dropped. What is allocated stays. */
void cuda_emulator_reset(void);

#ifdef __cplusplus
}

namespace cuda_emulator
{
inline void timing(enum cuda_emulator_when when, unsigned seed)
{
    cuda_emulator_timing(when, seed);
}
inline void fail(const char *call, int nth, cudaError_t error)
{
    cuda_emulator_fail(call, nth, error);
}
inline void hang(int nth)
{
    cuda_emulator_hang(nth);
}
inline void absent(cudaError_t error = cudaErrorNoDevice)
{
    cuda_emulator_absent(error);
}
inline void bodies(bool run)
{
    cuda_emulator_bodies(run);
}
inline struct cuda_emulator_counters counters()
{
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    return c;
}
inline void reset()
{
    cuda_emulator_reset();
}
} // namespace cuda_emulator
#endif

#endif

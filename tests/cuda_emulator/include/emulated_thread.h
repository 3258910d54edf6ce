/* emulated_thread.h - what device code asks of the scheduler: who am I, meet, wait, complain.
 *
 * One block runs at a time and one thread of it at a time, so all of this is plain memory. */
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>

namespace cuda_emulator
{
/* Something that lanes of a warp do together: `complete` gets the deposit of each, by lane. */
struct operation {
    const char *name;
    void (*complete)(void *const deposits[32], unsigned lanes);
};

/* What a thread waits for, while it waits for lanes of its warp. */
struct call {
    const operation *what;
    unsigned lanes;
    const char *file;
    int line;
};

struct thread {
    uint3 index;
    unsigned number, lane, warp;
    bool waited;         /* wait_previous() was called */
    bool asleep;         /* in at, until somebody wakes it */
    struct fiber *fiber; /* NULL until it first runs */
    call at;
};

extern thread *current;
extern uint3 block_index;
extern dim3 block_size, grid_size;
extern unsigned cluster_size; /* blocks, along z */
extern unsigned char *shared_memory;

/* The lanes of the warp that `lanes` names meet here. When the last has come, `what` is completed;
 * then they go on, in an order that the schedule chooses. */
void meet(const operation *what, unsigned lanes, void *deposit, const char *file, int line);

/* All threads of the block meet; the sum, all and any of what they bring. */
struct votes {
    int count, all, any;
};
votes meet_block(int vote, const char *file, int line);

/* All threads of all blocks of the cluster meet. */
void meet_cluster(const char *file, int line);

/* cp.async: `from` NULL brings zeros. wait: all but the latest `left` groups have landed. */
void copy_issue(void *to, const void *from, int bytes, const char *file, int line);
void copy_close_group();
void copy_settle(int left);

/* [p, p + size) is shared memory of this block and p is a multiple of `align`. */
void check_shared(const void *p, size_t size, size_t align, const char *what);

void previous_awaited();
void next_released();

/* A finding about the running thread. Does not return to it. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
} // namespace cuda_emulator

#define threadIdx (cuda_emulator::current->index)
#define blockIdx (cuda_emulator::block_index)
#define blockDim (cuda_emulator::block_size)
#define gridDim (cuda_emulator::grid_size)

/* Defaults of a function that wants to know where it is called. */
#define EMULATOR_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

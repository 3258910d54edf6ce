/* machine.h - what the parts of the emulator share. */
#pragma once

#include "tests/cuda_emulator/fiber.h"

#include <cuda_emulator.h>
#include <emulated_thread.h>
#include <functional>

namespace cuda_emulator
{
enum {
    WARP_LANES = 32,
    MAX_THREADS = 1024,
    MAX_WARPS = MAX_THREADS / WARP_LANES,
    MAX_CLUSTER = 16 /* blocks */
};

extern cuda_emulator_order schedule_order;
extern fiber host;   /* where run_grid was called */
extern bool dropped; /* a finding ended the grid */
extern struct cuda_emulator_work work;

unsigned random_below(unsigned n); /* by the schedule's seed */

/* Tell of a finding; returns where a handler is set. */
void report(const char *line);
const char *kernel_name();
const char *base(const char *file); /* without its folders */

/* block.cpp: threads of the grid's blocks; then one block from its first thread to its last, or to
 * where it waits for the others of its cluster (true), from which it goes on when they are there.
 */
void block_shape(dim3 block);
bool block_run(const std::function<void()> &body);
bool block_go_on();

/* In each part: the running block's state changes places with what is aside for a block of the
 * cluster. */
void block_swap(unsigned place);
void copies_swap(unsigned place);
void barriers_swap(unsigned place);
void products_swap(unsigned place);
void shared_arrays_swap(unsigned place);
/* Blocks that wait in a cluster are given up. */
void blocks_drop();

/* names.cpp: the file that the kernel of this name (kernel_of) is in, NULL where nobody said. */
const char *file_of_kernel(const char *name);

/* shared_arrays.cpp: whether a static function is compiled in this .cu file. */
bool kernel_is_of(const void *function, const char *file);

/* The same: find the __shared__ arrays of the program, once, and choose those of a file,
 * NULL for all; make these NaN; whether one of them has [p, p + size). */
void shared_arrays_choose(const char *file);
void shared_arrays_unset();
bool shared_arrays_hold(const void *p, size_t size);

/* copies.cpp: forget all copies of the block before; let those of a thread land that a barrier is
 * told of, when nobody can go on, false: there are none; the running thread ends: it has waited for
 * its copies, or a barrier is told of them. */
void copies_forget();
bool copies_land_told();
void copies_end();

/* block.cpp: the running thread waits until another one wakes it. */
void thread_sleeps(const operation *what, const char *file, int line);
void thread_wakes(unsigned number);

/* barriers.cpp, products.cpp: forget the block before; whether one is on its way; let one land when
 * nobody can go on, false: there is none; what is wrong at the end of a block, or NULL. */
void barriers_forget();
bool bulk_flies();
bool bulk_land_one();
void products_forget();
bool products_land_one();
const char *products_wrong();
} // namespace cuda_emulator

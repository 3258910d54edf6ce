/* fiber.h - stacks that one host thread changes between; x86-64, System V.
 *
 * Address sanitizer is told of every change, so that it knows whose stack it looks at. */
#pragma once

#include <stddef.h>

namespace cuda_emulator
{
struct fiber {
    void *stack_pointer; /* while it does not run */
    char *stack;         /* lowest usable byte; NULL for the stack of the host thread */
    size_t size;
    void *fake_stack; /* address sanitizer's */
};

/* A fiber that begins in `entry` (which never returns) when it is first changed to. `number` shifts
 * its frames so that the fibers of a block do not all want the same cache lines. */
void fiber_create(fiber *f, unsigned number);
void fiber_begin(fiber *f, unsigned number, void (*entry)(void));

/* Leave `from` (the running one) for `to`; returns when something changes back to `from`. */
void fiber_change(fiber *from, fiber *to);

/* Leave `from` for good. */
[[noreturn]] void fiber_abandon(fiber *from, fiber *to);
} // namespace cuda_emulator

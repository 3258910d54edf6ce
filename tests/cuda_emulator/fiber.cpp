#include "tests/cuda_emulator/fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#error "the emulator changes stacks with instructions of x86-64"
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#endif
#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" void cuda_emulator_change(void **save, void *to);
extern "C" void cuda_emulator_entered(void);
/* Registers that a callee keeps are on the stack that is left; the rest a call may change. */
__asm__(".text\n"
        ".globl cuda_emulator_change\n"
        ".type cuda_emulator_change, @function\n"
        "cuda_emulator_change:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size cuda_emulator_change, .-cuda_emulator_change\n");

namespace cuda_emulator
{
#ifdef EMULATOR_ASAN
enum { STACK = 256 << 10 };
#else
enum { STACK = 64 << 10 };
#endif
enum { PAGE = 4096, SAVED = 6 };

static void (*first)(void); /* what every fiber begins with */
static fiber *left;         /* the fiber that ran before this one */

static void arrived(void *fake_stack)
{
#ifdef EMULATOR_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
    if (!left->stack) { /* the host's: this is how one learns where it is */
        left->stack = (char *)const_cast<void *>(bottom);
        left->size = size;
    }
#else
    (void)fake_stack;
#endif
}

extern "C" void cuda_emulator_entered(void)
{
    arrived(NULL);
    first();
    abort();
}

void fiber_create(fiber *f, unsigned number)
{
    /* A page that nobody may touch below each stack. */
    void *memory =
        mmap(NULL, STACK + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED ||
        mprotect((char *)memory + PAGE, STACK, PROT_READ | PROT_WRITE) != 0) {
        fprintf(stderr, "cuda emulator: no memory for the stack of thread %u\n", number);
        abort();
    }
    f->stack = (char *)memory + PAGE;
    f->size = STACK;
}

void fiber_begin(fiber *f, unsigned number, void (*entry)(void))
{
#ifdef EMULATOR_ASAN
    ASAN_UNPOISON_MEMORY_REGION(f->stack, f->size);
#endif
    first = entry;
    f->fake_stack = NULL;
    void **top = (void **)(void *)(f->stack + f->size - (size_t)(number % 61) * 64);
    *--top = NULL;
    *--top = (void *)cuda_emulator_entered;
    for (int i = 0; i < SAVED; i++)
        *--top = NULL;
    f->stack_pointer = top;
}

void fiber_change(fiber *from, fiber *to)
{
#ifdef EMULATOR_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->size);
#endif
    left = from;
    cuda_emulator_change(&from->stack_pointer, to->stack_pointer);
    arrived(from->fake_stack);
}

void fiber_abandon(fiber *from, fiber *to)
{
#ifdef EMULATOR_ASAN
    __sanitizer_start_switch_fiber(NULL, to->stack, to->size);
#endif
    left = from;
    cuda_emulator_change(&from->stack_pointer, to->stack_pointer);
    abort();
}
} // namespace cuda_emulator

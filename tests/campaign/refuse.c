/* refuse.c - a library for LD_PRELOAD, with tests/allocations.c: from main on, allocation number
 * $FAIL_AT fails, and with $FAIL_ON each one behind it; $FAIL_COUNT is a file for how many there
 * were.
 */
#include "tests/allocations.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int main_function(int argc, char **argv, char **env);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void),
                           void (*)(void), void *);
start_function __libc_start_main;

static main_function *real_main;

/* What libraries allocate before main is not the program's to answer for. */
static int counted_main(int argc, char **argv, char **env)
{
    const char *at = getenv("FAIL_AT");
    allocations->for_ever = getenv("FAIL_ON") != NULL;
    allocations->calls = 0;
    allocations->fail_at = at ? atol(at) : 0;
    return real_main(argc, argv, env);
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*linker)(void), void *stack)
{
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return start(counted_main, argc, argv, init, fini, linker, stack);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    long calls = allocations->calls;
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0) {
        dprintf(file, "%ld\n", calls);
        close(file);
    }
}

/* crash.c - signal handlers that end the program with one line and exit code 5 when it faults
 * itself. */
#include "tools/cli/crash.h"

#include "tools/cli/command.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#ifndef SANITIZED
static void ended(int signal_number)
{
    static const char text[] = "tectum: this is a bug of tectum; please report it with the command "
                               "line (signal ";
    char digits[4] = {(char)('0' + signal_number / 10 % 10), (char)('0' + signal_number % 10), ')',
                      '\n'};
    ssize_t n = write(2, text, sizeof text - 1);
    n += write(2, digits, sizeof digits);
    (void)n;
    _exit(TEC_EXIT_BUG);
}
#endif

void tec_crash_handlers(void)
{
#ifndef SANITIZED
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char memory[32768]; /* the usual stack may have overflowed */
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ended;
    action.sa_flags = SA_ONSTACK;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
#endif
}

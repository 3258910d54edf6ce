/* no_threads.c - a library to load in front of a test that is said to start no thread: it ends the
 * first that does. tests/run.sh leaves such tests out of the thread sanitizer's stage. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *user)
{
    (void)thread, (void)how, (void)run, (void)user;
    fputs("# a thread is started: take this subject off the list `unthreaded` of tests/run.sh\n",
          stderr);
    abort();
}

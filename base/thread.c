/* thread.c - threads of the engine's own. */
#include "base/thread.h"

#include <signal.h>

bool tec_thread_start(pthread_t *thread, void *(*run)(void *user), void *user)
{
    pthread_attr_t attributes;
    sigset_t others, before;
    size_t size = 0;
    sigemptyset(&others);
    sigaddset(&others, SIGINT);
    sigaddset(&others, SIGTERM);
    sigaddset(&others, SIGHUP);
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_getstacksize(&attributes, &size);
    if (size < TEC_THREAD_STACK)
        pthread_attr_setstacksize(&attributes, TEC_THREAD_STACK);
    bool held = pthread_sigmask(SIG_BLOCK, &others, &before) == 0;
    bool started = pthread_create(thread, &attributes, run, user) == 0;
    if (held)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

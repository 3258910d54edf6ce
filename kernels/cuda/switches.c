/* switches.c - words of the environment that switch a part of the device on or off, and how long
 * it waits for a replay (doc/gpu.md). */
#include "kernels/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *words[3];
} switches[] = {
    {"TECTUM_CUDA_BRANCH", {"0", "1", NULL}},
    {"TECTUM_CUDA_CLUSTERS", {"0", "1", NULL}},
    {"TECTUM_CUDA_GREEN", {"0", "1", NULL}},
    {"TECTUM_CUDA_OVERLAP", {"0", "1", "loops"}},
};
enum { SWITCHES = sizeof switches / sizeof switches[0], WORDS = 3 };

bool tec_gpu_switched(const char *name, const char *word)
{
    const char *is = getenv(name);
    return is && strcmp(is, word) == 0;
}

/* They are there to find a cause: a word that nothing reads would name the wrong one. */
enum tec_status tec_gpu_switches_check(struct tec_error *err)
{
    for (int i = 0; i < SWITCHES; i++) {
        bool known = getenv(switches[i].name) == NULL;
        for (int w = 0; w < WORDS && switches[i].words[w]; w++)
            known = known || tec_gpu_switched(switches[i].name, switches[i].words[w]);
        if (!known)
            return tec_fail(err, TEC_INVALID, "%s in the environment is '%.20s'; it may be %s",
                            switches[i].name, getenv(switches[i].name),
                            switches[i].words[2] ? "0, 1 or loops" : "0 or 1");
    }
    return tec_gpu_dump_check(err);
}

enum tec_status tec_gpu_patience(int patience_ms, int64_t *ns, struct tec_error *err)
{
    enum { DEFAULT_MS = 30000, MOST_S = 24 * 60 * 60 };
    const char *word = getenv("TECTUM_CUDA_PATIENCE");
    char *end = NULL;
    long seconds = word ? strtol(word, &end, 10) : 0;
    if (word && (*end || seconds < 1 || seconds > MOST_S))
        return tec_fail(err, TEC_INVALID,
                        "TECTUM_CUDA_PATIENCE in the environment is '%.20s'; it may be 1 to %d "
                        "seconds",
                        word, MOST_S);
    if (patience_ms <= 0)
        patience_ms = word ? (int)(seconds * 1000) : DEFAULT_MS;
    *ns = (int64_t)patience_ms * 1000000;
    return TEC_OK;
}

/* choose_device.c - chooses the device that a name means ("cpu", "cuda", "cuda:N"), or the best
 * usable one when no name is given. */
#include "tools/api/choose_device.h"

#include "base/nearest.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

/* Whether the name is "cuda" or "cuda:N"; sets the index. */
static bool is_cuda(const char *name, int *index)
{
    int64_t number = 0;
    if (strncmp(name, "cuda", 4) != 0)
        return false;
    if (name[4] && (name[4] != ':' || !tec_number_parse(name + 5, &number)))
        return false;
    *index = (int)number;
    return number >= 0 && number < 1024;
}

static void choose_best(struct tec_device_options *choice, char note[200])
{
    struct tec_error why;
    struct tec_device_options gpu = *choice;
    gpu.kind = "cuda";
    if (!tec_device_known("cuda"))
        return;
    if (tec_device_check(&gpu, &why) == TEC_OK)
        choice->kind = "cuda";
    else
        snprintf(note, 200, "%.160s; running on the CPU", why.message);
}

enum tec_status tec_choose_device_named(struct tec_device_options *choice, const char *name,
                                        struct tec_error *err)
{
    static const char *const known[] = {"cpu", "cuda", "gpu"}; /* the last is said, and no name */
    if (is_cuda(name, &choice->index) || strcmp(name, "cpu") == 0) {
        choice->kind = name[1] == 'u' ? "cuda" : "cpu";
        return TEC_OK;
    }
    char bare[16];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":"), name);
    const char *near = tec_nearest(bare, known, sizeof known / sizeof known[0]);
    if (near && near[0] == 'g')
        near = "cuda";
    return tec_fail(err, TEC_INVALID, "--device: '%.60s' is none of cpu, cuda, cuda:N%s", name,
                    tec_meant(';', near).text);
}

enum tec_status tec_choose_device(struct tec_device_options *choice, const char *name,
                                  char note[200], struct tec_error *err)
{
    note[0] = '\0';
    choice->kind = "cpu";
    if (!name) {
        choose_best(choice, note);
        return TEC_OK;
    }
    TEC_TRY(tec_choose_device_named(choice, name, err));
    if (strcmp(choice->kind, "cpu") == 0)
        return TEC_OK;
    if (!tec_device_known("cuda"))
        return tec_fail(err, TEC_DEVICE, "--device %s: this build has no CUDA; use --device cpu",
                        name);
    struct tec_error why;
    enum tec_status status = tec_device_check(choice, &why);
    if (status == TEC_OK)
        return TEC_OK;
    return tec_fail(err, status, "--device %s: %.200s; use --device cpu", name, why.message);
}

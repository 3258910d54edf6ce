/* adapter.c - fuzz target: both files of a LoRA adapter, and what they make of a checkpoint. */
#include "base/store/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSORS = 4, MOST = 48 };
static char dir[] = "/tmp/fuzz-adapter-XXXXXX";
static struct tec_checkpoint *base;
static struct tec_heap base_heap;
static int64_t held; /* by the base */

static void end(void)
{
    static const char *const names[] = {"model.safetensors", "adapter_config.json",
                                        "adapter_model.safetensors"};
    char path[100];
    tec_checkpoint_close(base);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* A checkpoint with a layer, an embedding and a convolution. */
static void begin(void)
{
    static float values[MOST];
    static const struct tec_tensor_entry entries[TENSORS] = {
        {.name = "a.q.weight", .dtype = TEC_F32, .rank = 2, .shape = {3, 5}, .data = values},
        {.name = "a.q.bias", .dtype = TEC_F32, .rank = 1, .shape = {3}, .data = values},
        {.name = "embed.weight", .dtype = TEC_F32, .rank = 2, .shape = {6, 4}, .data = values},
        {.name = "patch.weight",
         .dtype = TEC_F32,
         .rank = 4,
         .shape = {4, 3, 2, 2},
         .data = values}};
    char path[100];
    if (base)
        return;
    for (int i = 0; i < MOST; i++)
        values[i] = (float)(i % 9 - 4);
    if (!mkdtemp(dir))
        abort();
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (tec_tensors_write(path, entries, TENSORS, &base_heap, NULL) != TEC_OK ||
        tec_checkpoint_open(&base, path, &base_heap, NULL) != TEC_OK)
        abort();
    held = base_heap.live;
    atexit(end);
}

static void put(const char *name, const uint8_t *data, size_t n)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wbe");
    if (!file || fwrite(data, 1, n, file) != n || fclose(file) != 0)
        abort();
}

/* What an adapter that is taken changes: all of each tensor at once, and element by element. */
static void apply(const struct tec_adapter *a)
{
    static const char *const names[TENSORS] = {"a.q.weight", "a.q.bias", "embed.weight",
                                               "patch.weight"};
    struct tec_error err;
    for (int t = 0; t < TENSORS; t++) {
        const struct tec_stored *stored = tec_checkpoint_tensor(base, names[t]);
        float whole[MOST] = {0}, one[MOST] = {0};
        size_t n = (size_t)tec_stored_count(stored);
        if (tec_adapter_apply(a, stored, 0, whole, n, &err) != TEC_OK)
            continue;
        for (size_t i = 0; i < n; i++)
            if (tec_adapter_apply(a, stored, i, &one[i], 1, &err) != TEC_OK)
                abort();
        if (memcmp(whole, one, sizeof whole) != 0 ||
            (!tec_adapter_changes(a, names[t]) && whole[0] != 0.0F))
            abort();
    }
}

/* Two bytes with the size of the configuration, that, and the file of tensors. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_adapter *a = NULL;
    struct tec_error err;
    if (size < 2)
        return 0;
    size_t n = (size_t)data[0] | (size_t)data[1] << 8;
    n = n < size - 2 ? n : size - 2;
    begin();
    put("adapter_config.json", data + 2, n);
    put("adapter_model.safetensors", data + 2 + n, size - 2 - n);
    if (tec_adapter_open(&a, dir, base, &err) == TEC_OK)
        apply(a);
    else if (!err.message[0] || strchr(err.message, '\n'))
        abort();
    tec_adapter_close(a);
    if (base_heap.live != held)
        abort();
    return 0;
}

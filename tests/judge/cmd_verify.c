/* cmd_verify.c - golden cases, judged: one line for each comparison. */
#include "tests/judge/certificate.h"
#include "tests/judge/verify.h"
#include "tools/cli/command.h"
#include "tools/cli/expect.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 8, MAX_CASES = 4096 };

struct verify_options {
    int dtype, round, quantize, head;
    const char *adapter, *certify;
};

static const struct tec_option options[] = {
    {"dtype", 0, TEC_OPTION_WORD, "f32|bf16", "what the engine computes in; f32",
     offsetof(struct verify_options, dtype), 0, 0},
    {"quantize", 0, TEC_OPTION_WORD, "none|int8|int4",
     "what the layers' matrices are rounded to, as model.quantize says of a pipeline; none",
     offsetof(struct verify_options, quantize), 0, 0},
    {"round", 0, TEC_OPTION_WORD, "none|bf16x2|mixed|bf16|int8",
     "what products read of activations, as model.round says of a pipeline; none",
     offsetof(struct verify_options, round), 0, 0},
    {"quantize-head", 0, TEC_OPTION_WORD, "none|int8",
     "what the head is kept in, as model.quantize_head says of a pipeline; none",
     offsetof(struct verify_options, head), 0, 0},
    {"adapter", 0, TEC_OPTION_TEXT, "DIR",
     "a LoRA adapter (PEFT) to merge into the checkpoint of each case",
     offsetof(struct verify_options, adapter), 0, 0},
    {"certify", 0, TEC_OPTION_TEXT, "DIR",
     "certificate.json and certificate.html: files, machine, latency by stage, every comparison",
     offsetof(struct verify_options, certify), 0, 0},
};

/* The cases found, and what has been counted. */
struct walk {
    struct tec_invocation *call;
    struct tec_device_options device;
    struct tec_words cases;
    int checks, failed, unjudged, not_compared, in_part;
    struct tec_certificate certificate;
};

static bool is_case(const char *dir, struct tec_arena *arena)
{
    const char *path = tec_arena_printf(arena, "%s/case.json", dir);
    return path && access(path, F_OK) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the folders in `dir`, sorted. */
static enum tec_status list_folders(const char *dir, struct tec_words *names,
                                    struct tec_arena *arena, struct tec_error *err)
{
    DIR *handle = opendir(dir);
    if (!handle)
        return tec_fail(err, TEC_IO, "%s: this folder cannot be read", dir);
    names->item = TEC_NEW(arena, MAX_CASES, const char *);
    enum tec_status status = names->item ? TEC_OK : TEC_NO_MEMORY;
    for (struct dirent *e = readdir(handle); e && status == TEC_OK; e = readdir(handle)) {
        struct stat st;
        const char *path = tec_arena_printf(arena, "%s/%s", dir, e->d_name);
        if (!path)
            status = TEC_NO_MEMORY;
        else if (e->d_name[0] != '.' && names->n < MAX_CASES && lstat(path, &st) == 0 &&
                 S_ISDIR(st.st_mode))
            names->item[names->n++] = path;
    }
    closedir(handle);
    if (status != TEC_OK)
        return tec_fail(err, status, "%s: no memory for the list of its folders", dir);
    qsort(names->item, (size_t)names->n, sizeof *names->item, by_name);
    return TEC_OK;
}

/* Run a case, and print its lines to `out`. */
static void judge_case(struct walk *w, const char *dir, FILE *out, bool text,
                       struct tec_stage_times *times)
{
    const struct verify_options *o = w->call->options;
    struct tec_arena arena;
    struct tec_error err = {0};
    tec_arena_init(&arena, w->call->heap);
    struct tec_verify v = {.dtype = o->dtype ? "bf16" : "f32",
                           .round = (enum tec_round)o->round,
                           .quantize = (enum tec_quantize)o->quantize,
                           .quantize_head = (enum tec_quantize)o->head,
                           .root = w->call->root,
                           .adapter = o->adapter,
                           .device = w->device,
                           .heap = w->call->heap,
                           .arena = &arena,
                           .out = out,
                           .text = text,
                           .times = times};
    /* A case that cannot be judged has reported so itself, as a check that is not ok. */
    enum tec_status status = tec_verify_case(&v, dir, &err);
    w->checks += v.checks;
    w->unjudged += v.unjudged;
    w->not_compared += v.not_compared;
    w->in_part += v.in_part;
    w->failed += v.failed + (status != TEC_OK && v.failed == 0);
    tec_arena_finish(&arena);
    fflush(out);
}

/* The same, with its lines kept for the certificate. */
static enum tec_status certify_case(struct walk *w, const char *dir, struct tec_error *err)
{
    char *lines = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&lines, &n);
    if (!out)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its checks", dir);
    struct tec_stage_times times = {0};
    judge_case(w, dir, out, false, &times);
    bool kept = fclose(out) == 0;
    if (kept && w->call->shared.format == TEC_FORMAT_JSON)
        fwrite(lines, 1, n, w->call->out); /* the caller checks the stream for errors */
    enum tec_status status = kept ? tec_certificate_add(&w->certificate, dir, lines, n, &times, err)
                                  : tec_fail(err, TEC_NO_MEMORY, "%s: no memory", dir);
    free(lines);
    return status;
}

static enum tec_status run_case(struct walk *w, const char *dir, struct tec_error *err)
{
    const struct verify_options *o = w->call->options;
    if (o->certify)
        return certify_case(w, dir, err);
    judge_case(w, dir, w->call->out, w->call->shared.format == TEC_FORMAT_TEXT, NULL);
    return TEC_OK;
}

/* Run the case in `dir`, and those in folders below it. */
static enum tec_status walk(struct walk *w, const char *dir, int depth, int *found,
                            struct tec_error *err)
{
    struct tec_words folders = {0};
    if (is_case(dir, w->call->arena)) {
        ++*found;
        TEC_TRY(run_case(w, dir, err));
    }
    if (depth >= MAX_DEPTH || ferror(w->call->out))
        return TEC_OK;
    TEC_TRY(list_folders(dir, &folders, w->call->arena, err));
    for (int i = 0; i < folders.n && !ferror(w->call->out); i++)
        TEC_TRY(walk(w, folders.item[i], depth + 1, found, err));
    return TEC_OK;
}

static enum tec_status verify_path(struct walk *w, const char *given, struct tec_error *err)
{
    struct stat st;
    int found = 0;
    char *path = tec_arena_strdup(w->call->arena, given);
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (stat(path, &st) != 0)
        return tec_fail(err, TEC_NOT_FOUND, "%s: there is no such folder", path);
    size_t n = strlen(path);
    if (!S_ISDIR(st.st_mode) && n > 10 && strcmp(path + n - 10, "/case.json") == 0)
        path[n - 10] = '\0';
    else if (!S_ISDIR(st.st_mode))
        return tec_expect(path, "a folder with a case.json", err);
    TEC_TRY(walk(w, path, 0, &found, err));
    if (!found)
        return tec_expect(path, "a folder with a case.json", err);
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct verify_options *o = call->options;
    struct walk w = {.call = call};
    bool in_8_bits = o->round == TEC_ROUND_INT8;
    bool fits = in_8_bits ? o->quantize == TEC_QUANTIZE_INT8 : o->dtype;
    if (o->certify && (o->round || o->quantize || o->head))
        return tec_fail(err, TEC_INVALID, "--%s: a certificate is of plans that do not round",
                        o->round      ? "round"
                        : o->quantize ? "quantize"
                                      : "quantize-head");
    if (o->round && !fits)
        return tec_fail(err, TEC_INVALID, "--round: without %s there is nothing to round",
                        in_8_bits ? "--quantize int8" : "--dtype bf16");
    struct tec_error none; /* a case may need no shipped file; one that does names it */
    enum tec_status root = tec_cli_need_root(call, &none);
    if (root != TEC_OK && call->shared.root)
        return tec_fail(err, root, "%s", none.message);
    TEC_TRY(tec_cli_device_choice(call, &w.device, err));
    enum tec_status status = TEC_OK;
    for (int i = 0; i < call->args.n && status == TEC_OK; i++)
        status = verify_path(&w, call->args.item[i], err);
    const struct tec_certificate_facts facts = {.path = o->certify,
                                                .dtype = o->dtype ? "bf16" : "f32",
                                                .device = &w.device,
                                                .checks = w.checks,
                                                .failed = w.failed,
                                                .unjudged = w.unjudged,
                                                .not_compared = w.not_compared,
                                                .in_part = w.in_part,
                                                .heap = call->heap};
    if (status == TEC_OK && o->certify)
        status = tec_certificate_write(&w.certificate, &facts, err);
    tec_certificate_free(&w.certificate);
    TEC_TRY(status);
    call->wrong = w.failed > 0;
    if (call->shared.format == TEC_FORMAT_TEXT && w.unjudged > 0)
        fprintf(call->out, "%d more not judged, their lines say why\n", w.unjudged);
    if (call->shared.format == TEC_FORMAT_TEXT && w.not_compared > 0)
        fprintf(call->out, "%d tensor%s not compared, their lines say why\n", w.not_compared,
                w.not_compared == 1 ? "" : "s");
    if (call->shared.format == TEC_FORMAT_TEXT && w.in_part > 0)
        fprintf(call->out, "%d tensor%s compared in part, their lines say how much and why\n",
                w.in_part, w.in_part == 1 ? "" : "s");
    if (call->shared.format == TEC_FORMAT_TEXT)
        fprintf(call->out, "%d checks, %d not ok\n", w.checks, w.failed);
    return TEC_OK;
}

const struct tec_command tec_command_verify = {
    .usage = "verify [options] CASE...",
    .about =
        "A case is a folder with case.json (tests/golden/README.md); folders are searched for\n"
        "cases. Prints a line for each comparison: {case, check, max_abs, rms, bound, ok}.\n"
        "A tensor that the case expects and that no check compares is not ok, but for those that\n"
        "the engine does not make: their lines say \"not compared\" and why. One of which a part\n"
        "is compared has a line that says how much: {compared, values}.\n"
        "Exit code 1 when any is not ok.\n",
    .example = "  tectum verify tests/golden/pi/pi05_tiny\n"
               "  tectum verify --format text --dtype bf16 tests/golden/pi\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE,
    .format = TEC_FORMAT_JSON,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct verify_options),
    .min_args = 1,
    .max_args = -1,
    .args = "a golden case",
    .offers = "FILE",
    .run = run,
};

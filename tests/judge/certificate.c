/* certificate.c - keeps what a verification showed as JSON and as a page. */
#include "tests/judge/certificate.h"

#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/measure/machine.h"
#include "tools/picture/drawing.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <xxhash.h>

enum { BLOCK = 1 << 16, DEPTH = 4 };

/* The 128-bit XXH3 of a file, as `inspect` writes hashes. */
static bool hash_file(const char *path, char text[40], int64_t *bytes)
{
    unsigned char block[BLOCK];
    XXH3_state_t *state = XXH3_createState();
    FILE *in = fopen(path, "re");
    bool good = state && in && XXH3_128bits_reset(state) == XXH_OK;
    size_t n;
    *bytes = 0;
    while (good && (n = fread(block, 1, sizeof block, in)) > 0) {
        good = XXH3_128bits_update(state, block, n) == XXH_OK;
        *bytes += (int64_t)n;
    }
    good = good && !ferror(in);
    if (good) {
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        snprintf(text, 40, "%016llx%016llx", (unsigned long long)hash.high64,
                 (unsigned long long)hash.low64);
    }
    if (in)
        fclose(in);
    XXH3_freeState(state);
    return good;
}

/* The files of a folder and of those below it: a case's checkpoint is one. */
static void add_files(struct tec_certificate *c, const char *folder, int depth)
{
    DIR *handle = opendir(folder);
    for (struct dirent *e = handle ? readdir(handle) : NULL; e; e = readdir(handle)) {
        char path[4096], hash[40];
        struct stat there;
        int64_t bytes;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &there) != 0)
            continue;
        if (S_ISDIR(there.st_mode) && depth < DEPTH)
            add_files(c, path, depth + 1);
        else if (S_ISREG(there.st_mode) && hash_file(path, hash, &bytes))
            json_array_append_new(c->files,
                                  json_pack("{s:o, s:I, s:s}", "path", tec_json_shown(path),
                                            "bytes", (json_int_t)bytes, "xxh128", hash));
    }
    if (handle)
        closedir(handle);
}

enum tec_status tec_certificate_add(struct tec_certificate *c, const char *folder,
                                    const char *lines, size_t n, struct tec_stage_times *times,
                                    struct tec_error *err)
{
    c->checks = c->checks ? c->checks : json_array();
    c->files = c->files ? c->files : json_array();
    c->latency = c->latency ? c->latency : json_array();
    tec_verify_put_times(c->latency, folder, times);
    add_files(c, folder, 0);
    while (n > 0) {
        const char *end = memchr(lines, '\n', n);
        size_t length = end ? (size_t)(end - lines) : n;
        json_t *one = json_loadb(lines, length, 0, NULL);
        if (length && (!one || json_array_append_new(c->checks, one) != 0))
            return tec_fail(err, TEC_NO_MEMORY, "%s: its checks cannot be kept", folder);
        lines += length + (end != NULL);
        n -= length + (end != NULL);
    }
    return TEC_OK;
}

static json_t *whole(const struct tec_certificate *c, const struct tec_certificate_facts *f,
                     const struct tec_device *device)
{
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_pack("{s:i, s:s, s:s, s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:O?, s:O?, s:O?}",
                     "schema", 1, "date", when, "commit", tec_machine_commit(), "machine",
                     tec_machine_json(device), "dtype", f->dtype, "total", f->checks, "not_ok",
                     f->failed, "not_judged", f->unjudged, "not_compared", f->not_compared,
                     "in_part", f->in_part, "ok", f->failed == 0, "latency", c->latency, "files",
                     c->files, "checks", c->checks);
}

/* --- the page --------------------------------------------------------------------------------- */

static void cell(FILE *out, const json_t *row, const char *name)
{
    const json_t *value = json_object_get(row, name);
    fputs("<td>", out);
    if (json_is_string(value))
        tec_graph_escape(json_string_value(value), out);
    else if (json_is_number(value))
        fprintf(out, "%.4g", json_number_value(value));
    else
        fputs(json_is_true(value) ? "ok" : json_is_false(value) ? "<b>not ok</b>" : "", out);
}

static void table(FILE *out, const json_t *rows, const char *const *names, int n)
{
    fputs("<table><tr>", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "<th>%s", names[i]);
    fputs("</tr>\n", out);
    for (size_t r = 0; r < json_array_size(rows); r++) {
        fputs("<tr>", out);
        for (int i = 0; i < n; i++)
            cell(out, json_array_get(rows, r), names[i]);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

static void facts(FILE *out, const json_t *all)
{
    const json_t *machine = json_object_get(all, "machine");
    const char *name;
    json_t *value;
    fputs("<table>", out);
    json_object_foreach((json_t *)(uintptr_t)machine, name, value)
    {
        fprintf(out, "<tr><th>%s", name);
        cell(out, machine, name);
        fputs("</tr>\n", out);
    }
    fputs("<tr><th>commit", out);
    cell(out, all, "commit");
    fputs("</tr>\n<tr><th>dtype", out);
    cell(out, all, "dtype");
    fputs("</tr>\n<tr><th>date", out);
    cell(out, all, "date");
    fputs("</tr></table>\n", out);
}

static void page(FILE *out, const json_t *all)
{
    static const char *const checks[] = {"case", "check", "max_abs", "rms", "bound", "ok", "note"};
    static const char *const files[] = {"path", "bytes", "xxh128"};
    static const char *const times[] = {"case", "stage", "n", "p50_us", "p99_us", "max_us"};
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
          "charset=\"utf-8\"><title>Certificate</title>"
          "<style>body{font:14px system-ui,sans-serif;margin:24px}table{border-collapse:collapse;"
          "margin:8px 0}td,th{border:1px solid #999;padding:3px 9px;text-align:left}"
          "b{color:#b8325f}</style></head><body>\n<h1>Certificate</h1>\n<p>",
          out);
    fprintf(out,
            "%lld comparisons, %lld not ok, %lld not judged; %lld tensors not compared, %lld "
            "compared in part.",
            (long long)json_integer_value(json_object_get(all, "total")),
            (long long)json_integer_value(json_object_get(all, "not_ok")),
            (long long)json_integer_value(json_object_get(all, "not_judged")),
            (long long)json_integer_value(json_object_get(all, "not_compared")),
            (long long)json_integer_value(json_object_get(all, "in_part")));
    fputs("</p>\n", out);
    facts(out, all);
    fputs("<h2>Latency by stage</h2>\n<p>Microseconds of the launches that these comparisons made, "
          "on this machine as it was. A prefill and its actions are one launch; plans for taps "
          "keep tensors for the comparison, and are slower.</p>\n",
          out);
    table(out, json_object_get(all, "latency"), times, 6);
    fputs("<h2>Comparisons with the reference</h2>\n", out);
    table(out, json_object_get(all, "checks"), checks, 7);
    fputs("<h2>Files</h2>\n", out);
    table(out, json_object_get(all, "files"), files, 3);
    fputs("</body></html>\n", out);
}

static enum tec_status write_page(const char *path, const json_t *all, struct tec_error *err)
{
    struct tec_out_file out = {0};
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    page(out.file, all);
    enum tec_status status =
        ferror(out.file) ? tec_outfile_file_failed(&out, err) : tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}

enum tec_status tec_certificate_write(const struct tec_certificate *c,
                                      const struct tec_certificate_facts *f, struct tec_error *err)
{
    struct tec_device *device = NULL;
    char path[4096];
    if (mkdir(f->path, 0777) != 0 && errno != EEXIST)
        return tec_fail(err, TEC_IO, "--certify %s: %s", f->path, strerror(errno));
    TEC_TRY(tec_device_open(&device, f->device, f->heap, err));
    json_t *all = whole(c, f, device);
    tec_device_close(device);
    snprintf(path, sizeof path, "%s/certificate.json", f->path);
    enum tec_status status = all ? tec_json_write(path, all, JSON_INDENT(1), err)
                                 : tec_fail(err, TEC_NO_MEMORY, "no memory for a certificate");
    snprintf(path, sizeof path, "%s/certificate.html", f->path);
    if (status == TEC_OK)
        status = write_page(path, all, err);
    json_decref(all);
    return status;
}

void tec_certificate_free(struct tec_certificate *c)
{
    json_decref(c->checks);
    json_decref(c->files);
    json_decref(c->latency);
}

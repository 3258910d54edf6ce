/* report_layout.c - results in the layout that OxyGen's own analysis reads
 * (experiments/Experiments.md of its repository, revision dcc134a):
 * SETTING/CONFIG/denoiseS_decodeN[_stepK_ARRIVALS].json, a record for each frame. */
#include "tests/experiments/oxygen/oxygen.h"

#include "base/json_text.h"
#include "tools/measure/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

/* Both tasks of the baseline, each with its own prefill; the analysis asks for the totals. */
static json_t *timing(const struct tec_oxygen_point *p, const struct tec_oxygen_frame *f)
{
    json_t *t = json_pack("{s:f,s:f,s:f,s:f,s:i,s:i,s:i}", "prefill_actions_ms",
                          ms(f->prefill_ns + f->act_ns), "actions_ms", ms(f->act_ns), "text_gen_ms",
                          ms(f->private_ns + f->decode_ns), "host_ms", ms(f->host_ns),
                          "new_requests", f->n_new, "resumed_requests", f->n_resumed, "batch_size",
                          f->n_new + f->n_resumed);
    if (p->setting == TEC_OXYGEN_BASELINE) {
        json_object_set_new(t, "actions_total_ms", json_real(ms(f->prefill_ns + f->act_ns)));
        json_object_set_new(t, "text_total_ms", json_real(ms(f->private_ns + f->decode_ns)));
    }
    return t;
}

static json_t *frames_of(const struct tec_oxygen_point *p)
{
    json_t *frames = json_array();
    for (int i = 0; i < p->n; i++) {
        const struct tec_oxygen_frame *f = &p->frame[i];
        json_array_append_new(
            frames, json_pack("{s:i,s:f,s:i,s:i,s:i,s:i,s:o,s:b}", "frame_idx", i, "frame_ms",
                              ms(f->ns), "total_tokens_this_frame", f->tokens, "n_new", f->n_new,
                              "n_resumed", f->n_resumed, "n_total", f->n_new + f->n_resumed,
                              "policy_timing", timing(p, f), "is_warmup", f->warmup));
    }
    return frames;
}

static json_t *requests_of(const struct tec_oxygen_point *p)
{
    json_t *requests = json_array();
    for (int i = 0; i < p->n_requests; i++) {
        const struct tec_oxygen_request *r = &p->request[i];
        char id[32];
        snprintf(id, sizeof id, "req_%lld", (long long)r->id);
        json_array_append_new(requests,
                              json_pack("{s:s,s:i,s:i,s:f}", "request_id", id, "arrival_frame",
                                        r->arrival, "finish_frame", r->finish, "total_wall_ms",
                                        ms(r->finished_ns - r->born_ns)));
    }
    return requests;
}

static json_t *metadata_of(const struct tec_oxygen *s, const struct tec_oxygen_point *p)
{
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    const char *cpu = json_string_value(json_object_get(s->machine, "cpu"));
    if (gmtime_r(&now, &utc))
        strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &utc);
    return json_pack("{s:s,s:s,s:s,s:s,s:i,s:i}", "timestamp", stamp, "gpu", cpu ? cpu : "unknown",
                     "engine", "tectum", "commit", tec_machine_commit(), "total_frames", p->n,
                     "warmup_frames", p->n - p->sorted.n);
}

static json_t *result_of(const struct tec_oxygen *s, const struct tec_oxygen_point *p)
{
    json_t *params = json_pack("{s:s,s:i,s:i}", "policy_config", tec_oxygen_robots[p->robot].config,
                               "num_denoise_steps", p->S, "max_decoding_steps", p->N);
    if (p->input == TEC_OXYGEN_PADDED) /* the same computation for each; OxyGen's default is this */
        json_object_set_new(params, "policy_config", json_string(tec_oxygen_robots[0].config));
    if (p->setting == TEC_OXYGEN_BATCHING) {
        json_object_set_new(params, "steps_per_frame", json_integer(p->k));
        json_object_set_new(params, "arrival_pattern",
                            json_string(p->load ? p->load->pattern : "uniform_arrivals(rate=1)"));
    }
    json_t *result =
        json_pack("{s:s,s:o,s:o,s:[],s:o}", "setting", tec_oxygen_settings[p->setting], "params",
                  params, "frames", frames_of(p), "gpu_monitor", "metadata", metadata_of(s, p));
    if (p->setting == TEC_OXYGEN_BATCHING)
        json_object_set_new(result, "completed_requests", requests_of(p));
    return result;
}

static enum tec_status make_folders(const char *path, struct tec_error *err)
{
    char part[1024];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return tec_fail(err, TEC_IO, "%s: %s", part, strerror(errno));
    }
    return TEC_OK;
}

static enum tec_status write_point(const struct tec_oxygen *s, const struct tec_oxygen_point *p,
                                   struct tec_error *err)
{
    char path[1024], more[128] = "";
    int robot = p->input == TEC_OXYGEN_PADDED ? 0 : p->robot;
    if (p->setting == TEC_OXYGEN_BATCHING)
        snprintf(more, sizeof more, "_step%d_%s", p->k, p->load ? p->load->slug : "uniform_1");
    int n = snprintf(path, sizeof path, "%s/oxygen_%s/%s/%s/denoise%d_decode%d%s.json", s->dir,
                     tec_oxygen_inputs[p->input], tec_oxygen_settings[p->setting],
                     tec_oxygen_robots[robot].config, p->S, p->N, more);
    if (n < 0 || (size_t)n >= sizeof path)
        return tec_fail(err, TEC_INVALID, "%.80s: the path is too long", s->dir);
    TEC_TRY(make_folders(path, err));
    json_t *result = result_of(s, p);
    enum tec_status status =
        tec_json_write(path, result, JSON_INDENT(2) | JSON_REAL_PRECISION(9), err);
    json_decref(result);
    return status;
}

/* OxyGen's harness stacks a frame's observations: where there is such a point, it is that one's. */
static bool stacked(const struct tec_oxygen *s, const struct tec_oxygen_point *p)
{
    return p->together || !p->load || !tec_oxygen_load_point(s, p->load, true);
}

enum tec_status tec_oxygen_write_layout(const struct tec_oxygen *s, struct tec_error *err)
{
    for (int i = 0; i < s->n_points; i++)
        if (s->points[i].ran && stacked(s, &s->points[i]))
            TEC_TRY(write_point(s, &s->points[i], err));
    return TEC_OK;
}

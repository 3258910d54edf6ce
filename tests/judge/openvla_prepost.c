/* openvla_prepost.c - what stands around a model that acts by tokens, judged without the model. */
#include "tests/judge/openvla_prepost.h"

#include "base/lua.h"
#include "base/text/tokenizer.h"
#include "graph/transform/observer.h"
#include "graph/transform/template.h"
#include "tests/judge/images.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, MOST_IDS = 4096, TEXT = 4000 };

struct around {
    struct tec_verify *v;
    const struct tec_checkpoint *checkpoint;
    const struct tec_tensors *inputs, *expected;
    json_t *description; /* of the robot, which every key and number of actions changes */
    json_t *templates;
    int vocabulary, bins, size;
};

/* A session of the robot for one key of the statistics. */
struct room {
    struct tec_robot *robot;
    struct tec_observer *observer;
    int columns;
};

static void report(const struct around *a, const char *check, double wrong, const char *note)
{
    tec_verify_report(a->v, check, wrong, 0.0, 0.0, wrong == 0.0, NULL, note);
}

static int columns_of(const struct around *a, const char *key)
{
    json_t *one = json_object_get(a->checkpoint->statistics, key);
    return (int)json_array_size(json_object_get(json_object_get(one, "action"), "q01"));
}

static enum tec_status open_room(struct room *room, const struct around *a, const char *key,
                                 int end, struct tec_error *err)
{
    struct tec_observer_needs needs = {.n_slots = 1,
                                       .image_h = a->size,
                                       .image_w = a->size,
                                       .tokens = {a->vocabulary, a->bins, end},
                                       .text_max = TEXT};
    *room = (struct room){.columns = columns_of(a, key)};
    if (room->columns < 1 || room->columns > MOST)
        return tec_fail(err, TEC_MALFORMED, "key '%s' has %d columns", key, room->columns);
    json_t *json = json_deep_copy(a->description);
    json_object_set_new(json_object_get(json, "actions"), "size", json_integer(room->columns));
    json_object_set_new(json_object_get(json, "norm"), "asset", json_string(key));
    enum tec_status status =
        tec_robot_parse(&room->robot, json, NULL, "openvla_bridge", a->v->arena, err);
    json_decref(json);
    TEC_TRY(status);
    room->robot->unlimited = true; /* the published code holds no action to its statistics */
    TEC_TRY(tec_robot_take(room->robot, a->checkpoint, err));
    TEC_TRY(tec_robot_norms(room->robot, a->checkpoint, NULL, &needs.state_norm, &needs.action_norm,
                            a->v->arena, err));
    needs.action_width = room->columns;
    return tec_observer_create(&room->observer, room->robot, &needs, a->v->heap, err);
}

/* Actions of one row of ids, out [MOST]; the number that differ from `want`, an array of doubles.
 */
static double compare(struct room *room, const float *ids, const json_t *want, double *out)
{
    double wrong = 0.0;
    memset(out, 0, MOST * sizeof *out);
    int rows = tec_robot_act(room->observer, ids, 1, NULL, out, NULL);
    if (rows != 1 || json_array_size(want) != (size_t)room->columns)
        return room->columns;
    for (int i = 0; i < room->columns; i++)
        wrong += out[i] != json_number_value(json_array_get(want, (size_t)i));
    return wrong;
}

static enum tec_status judge_key(const struct around *a, const char *key, const json_t *lines,
                                 struct tec_error *err)
{
    struct room room;
    float ids[MOST];
    double out[MOST];
    char check[120];
    const json_t *line;
    size_t i;
    double wrong = json_array_size(lines) ? 0.0 : 1.0;
    enum tec_status status = open_room(&room, a, key, -1, err);
    json_array_foreach(status == TEC_OK ? lines : NULL, i, line)
    {
        for (int c = 0; c < room.columns; c++)
            ids[c] = (float)json_integer_value(json_object_get(line, "id"));
        wrong += compare(&room, ids, json_object_get(line, "action"), out);
    }
    tec_observer_destroy(room.observer);
    TEC_TRY(status);
    snprintf(check, sizeof check, "detokenise.%.80s", key);
    report(a, check, wrong, NULL);
    return TEC_OK;
}

static void judge_detokenise(const struct around *a)
{
    struct tec_error err;
    json_error_t where;
    const char *key;
    json_t *lines;
    const char *path = tec_arena_printf(a->v->arena, "%s/detokenise.json", a->v->dir);
    if (!path || access(path, F_OK) != 0)
        return;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    json_t *keys = json_object_get(json, "keys");
    if (json_object_size(keys) == 0)
        report(a, "detokenise", 1.0, "detokenise.json has no keys");
    json_object_foreach(keys, key, lines)
    {
        if (judge_key(a, key, lines, &err) != TEC_OK)
            tec_verify_cannot(a->v, "detokenise", &err);
    }
    json_decref(json);
}

/* The ids that the template makes with one tokenizer. */
static enum tec_status judge_prompt(const struct around *a, const json_t *frame, const char *file,
                                    const char *check, struct tec_error *err)
{
    struct tec_tokenizer *tokenizer = NULL;
    struct tec_template *t = NULL;
    int got[MOST_IDS], want[MOST_IDS];
    const json_t *ids = json_object_get(frame, "input_ids_extended");
    const char *text = json_string_value(json_object_get(frame, "instruction"));
    size_t n = 0, n_want = json_array_size(ids);
    if (!text || n_want < 1 || n_want > MOST_IDS)
        return tec_fail(err, TEC_MALFORMED, "the frame has no instruction or ids");
    for (size_t i = 0; i < n_want; i++)
        want[i] = (int)json_integer_value(json_array_get(ids, i));
    const struct tec_template_values values = {{{.text = text, .n = strlen(text)}}, 1, NULL, 0};
    TEC_TRY(tec_template_parse(&t, a->templates, "openvla",
                               tec_verify_shipped(a->v, "models/prompts.lua"), a->v->arena, err));
    TEC_TRY(tec_tokenizer_open(&tokenizer, file, a->v->heap, err));
    enum tec_status status =
        tec_template_encode(t, tokenizer, &values, got, MOST_IDS, &n, a->v->arena, err);
    tec_tokenizer_close(tokenizer);
    TEC_TRY(status);
    tec_verify_ids(a->v, check, got, n < MOST_IDS ? n : MOST_IDS, want, n_want);
    return TEC_OK;
}

static void judge_prompts(const struct around *a, const json_t *frame, const char *name)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer.model"};
    struct tec_error err;
    char check[80];
    for (size_t i = 0; i < 2; i++) {
        const char *file = tec_arena_printf(a->v->arena, "%s/%s", a->checkpoint->root, files[i]);
        if (!file || access(file, F_OK) != 0)
            continue;
        snprintf(check, sizeof check, "%s.prompt_ids.%s", name, files[i]);
        if (judge_prompt(a, frame, file, check, &err) != TEC_OK)
            tec_verify_cannot(a->v, check, &err);
    }
}

/* The session's picture against the processor's words applied one by one. */
static enum tec_status reference_picture(const struct around *a, const struct tec_image *in,
                                         unsigned char **out, struct tec_error *err)
{
    const struct tec_reshape *plan = NULL;
    struct tec_processor p;
    TEC_TRY(tec_checkpoint_processor(a->checkpoint, &p, err));
    struct tec_reshape_spec spec = {.kind = p.kind,
                                    .in_height = in->height,
                                    .in_width = in->width,
                                    .height = p.height,
                                    .width = p.width};
    memcpy(spec.fill, p.fill, sizeof spec.fill);
    TEC_TRY(tec_reshape_plan(&plan, &spec, a->v->arena, err));
    void *scratch = tec_arena_push(a->v->arena, tec_reshape_scratch(plan), 1, 64);
    *out = TEC_NEW(a->v->arena, (size_t)p.height * (size_t)p.width * 3, unsigned char);
    if (!scratch || !*out)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a picture");
    tec_reshape_run(plan, *out, in->pixels, scratch);
    return TEC_OK;
}

static enum tec_status judge_picture(const struct around *a, struct room *room, const json_t *frame,
                                     const char *name, struct tec_error *err)
{
    struct tec_image in;
    unsigned char *want = NULL;
    char check[60];
    const char *image = json_string_value(json_object_get(frame, "image"));
    const char *text = json_string_value(json_object_get(frame, "instruction"));
    const struct tec_robot *robot = room->robot;
    if (!robot || robot->n_cameras < 1)
        return tec_fail(err, TEC_MALFORMED, "the robot has no camera");
    TEC_TRY(tec_images_picture(&in, a->v, a->inputs, image, err));
    TEC_TRY(reference_picture(a, &in, &want, err));
    size_t n = (size_t)a->size * (size_t)a->size * 3;
    uint8_t *picture = TEC_NEW(a->v->arena, n, uint8_t);
    char *said = TEC_NEW(a->v->arena, TEXT + 1, char);
    bool valid = false;
    int bins = 0;
    if (!picture || !said)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a picture");
    struct tec_observation seen = {
        .pictures = &picture, .valid = &valid, .bins = &bins, .text = said};
    float state = 0.0F;
    double wide = 0.0, raw = 0.0;
    seen.state = &state;
    seen.state_f64 = &wide;
    seen.state_raw = &raw;
    const struct tec_value values[] = {
        {robot->cameras[0].input,
         TEC_VALUE_U8,
         3,
         {in.height, in.width, 3},
         in.pixels,
         (size_t)in.height * (size_t)in.width * 3},
        {robot->prompt_input, TEC_VALUE_TEXT, 0, {0}, text ? text : "", text ? strlen(text) : 0}};
    TEC_TRY(tec_robot_observe(room->observer, values, 2, &seen, err));
    snprintf(check, sizeof check, "%s.picture", name);
    tec_images_bytes(a->v, check, picture, want, n);
    return TEC_OK;
}

/* Of actions, how many are others than the tensor of the case has, which is rounded to float32; a
 * case without the tensor has them in case.json only. */
static double differ_from_tensor(const struct around *a, const char *name, const double *got, int n)
{
    const struct tec_stored *t = tec_tensors_find(a->expected, name);
    float want[MOST];
    double wrong = 0.0;
    if (!t)
        return 0.0;
    tec_verify_compared(a->v, name);
    if (tec_stored_count(t) != n ||
        tec_tensors_read_f32(a->expected, t, 0, want, (size_t)n, NULL) != TEC_OK)
        return n;
    for (int i = 0; i < n; i++)
        wrong += (float)got[i] != want[i];
    return wrong;
}

/* Ids to actions, and the first id that has no bin. */
static void judge_actions(const struct around *a, struct room *room, const json_t *frame,
                          const char *name)
{
    const json_t *list = json_object_get(frame, "action_token_ids");
    const json_t *outside = json_object_get(frame, "ids_outside_action_range");
    float ids[MOST];
    double out[MOST], wrong;
    char check[60];
    int at = -1;
    if (json_array_size(list) != (size_t)room->columns) {
        report(a, name, 1.0, "another number of ids than of statistics");
        return;
    }
    for (int i = 0; i < room->columns; i++)
        ids[i] = (float)json_integer_value(json_array_get(list, (size_t)i));
    snprintf(check, sizeof check, "%s.action", name);
    wrong = compare(room, ids, json_object_get(frame, "action"), out);
    report(a, check, wrong + differ_from_tensor(a, check, out, room->columns), NULL);
    enum tec_action_ids verdict = tec_robot_judge_ids(room->observer, ids, &at);
    bool equal = verdict == TEC_IDS_GOOD
                     ? json_array_size(outside) == 0
                     : verdict == TEC_IDS_OUTSIDE && at >= 0 &&
                           json_number_value(json_array_get(outside, 0)) == (double)ids[at];
    snprintf(check, sizeof check, "%s.ids_judged", name);
    report(a, check, equal ? 0.0 : 1.0, NULL);
}

static enum tec_status judge_frame(const struct around *a, const json_t *frame, const char *name,
                                   struct tec_error *err)
{
    struct room room;
    const char *key = json_string_value(json_object_get(frame, "unnorm_key"));
    judge_prompts(a, frame, name);
    enum tec_status status = open_room(&room, a, key ? key : "?", -1, err);
    if (status == TEC_OK) {
        judge_actions(a, &room, frame, name);
        status = judge_picture(a, &room, frame, name, err);
    }
    tec_observer_destroy(room.observer);
    return status;
}

/* A text that ends inside an action makes no action. */
static enum tec_status judge_end(const struct around *a, const json_t *end, struct tec_error *err)
{
    struct room room;
    float ids[MOST] = {0};
    double out[MOST];
    int at = -1;
    const json_t *frames = json_object_get(a->v->json, "frames");
    const json_t *frame =
        json_array_get(frames, (size_t)json_integer_value(json_object_get(end, "frame")));
    const json_t *list = json_object_get(frame, "action_token_ids");
    const char *key = json_string_value(json_object_get(frame, "unnorm_key"));
    int id = (int)json_integer_value(json_object_get(end, "pretend_eos_token_id"));
    int n = (int)json_array_size(json_object_get(end, "generated_ids"));
    enum tec_status status = open_room(&room, a, key ? key : "?", id, err);
    for (int i = 0; status == TEC_OK && i < room.columns; i++)
        ids[i] = (float)json_integer_value(json_array_get(list, (size_t)i));
    bool good = status == TEC_OK && tec_robot_judge_ids(room.observer, ids, &at) == TEC_IDS_ENDED &&
                at == n - 1 && tec_robot_act(room.observer, ids, 1, NULL, out, NULL) == 0;
    tec_observer_destroy(room.observer);
    TEC_TRY(status);
    report(a, "eos_inside_action", good ? 0.0 : 1.0, NULL);
    return TEC_OK;
}

static enum tec_status open_around(struct around *a, struct tec_error *err)
{
    const json_t *config = a->checkpoint->config;
    const json_t *text = json_object_get(config, "text_config");
    struct tec_processor p;
    struct tec_heap *heap = a->v->heap;
    TEC_TRY(tec_checkpoint_processor(a->checkpoint, &p, err));
    a->size = p.height;
    a->vocabulary = (int)(json_integer_value(json_object_get(text, "vocab_size")) -
                          json_integer_value(json_object_get(config, "pad_to_multiple_of")));
    a->bins = (int)json_integer_value(json_object_get(config, "n_action_bins"));
    TEC_TRY(tec_lua_read(&a->description, tec_verify_shipped(a->v, "robots/openvla_bridge.lua"),
                         tec_verify_shipped(a->v, "robots"), heap, err));
    return tec_lua_read(&a->templates, tec_verify_shipped(a->v, "models/prompts.lua"),
                        tec_verify_shipped(a->v, "models"), heap, err);
}

void tec_verify_openvla_prepost(struct tec_verify *v, const struct tec_checkpoint *checkpoint,
                                const struct tec_tensors *inputs,
                                const struct tec_tensors *expected)
{
    struct around a = {.v = v, .checkpoint = checkpoint, .inputs = inputs, .expected = expected};
    const json_t *end = json_object_get(v->json, "eos_inside_action"), *frame;
    struct tec_error err;
    size_t i;
    if (open_around(&a, &err) != TEC_OK)
        tec_verify_cannot(v, "prepost", &err);
    json_array_foreach(a.templates ? json_object_get(v->json, "frames") : NULL, i, frame)
    {
        char name[40];
        struct tec_arena_mark mark = tec_arena_mark(v->arena);
        snprintf(name, sizeof name, "frame%zu", i);
        if (judge_frame(&a, frame, name, &err) != TEC_OK)
            tec_verify_cannot(v, name, &err);
        tec_arena_rewind(v->arena, mark);
    }
    if (a.templates)
        judge_detokenise(&a);
    if (a.templates && end && judge_end(&a, end, &err) != TEC_OK)
        tec_verify_cannot(v, "eos_inside_action", &err);
    json_decref(a.description);
    json_decref(a.templates);
}

/* pipeline.c - pipeline files: what is accepted, what is refused, and where the fault is shown. */
#include "graph/load/pipeline.h"
#include "tests/tap.h"

#include <dirent.h>
#include <stdlib.h>

static struct tec_heap heap;

struct loaded {
    struct tec_pipeline *p;
    struct tec_diagnostics d;
    struct tec_error err;
    enum tec_status status;
};

static struct loaded load_with(const char *path, const char *text, size_t n, const char *const *set,
                               int n_set)
{
    struct loaded l = {.p = NULL};
    struct tec_load_options options = {
        .path = path, .text = text, .n = n, .root = "pipelines", .set = set, .n_set = n_set};
    options.any = true;
    tec_diagnostics_init(&l.d, &heap);
    l.status = tec_pipeline_load(&l.p, &options, &heap, &l.d, &l.err);
    return l;
}

static struct loaded load(const char *path)
{
    return load_with(path, NULL, 0, NULL, 0);
}

static struct loaded load_text(const char *text)
{
    return load_with("pipelines/text.lua", text, strlen(text), NULL, 0);
}

static void finish(struct loaded *l)
{
    tec_pipeline_free(l->p);
    tec_diagnostics_finish(&l->d);
    CHECK_INT(heap.live, ==, 0);
}

static char *print(const struct tec_diagnostics *d, enum tec_diagnostics_format format)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    tec_diagnostics_print(d, format, out);
    fclose(out);
    return text;
}

static void complain(const struct loaded *l, const char *path)
{
    char *text = print(&l->d, TEC_PRINT_TEXT);
    fprintf(stderr, "# %s: %s\n%s", path, tec_status_name(l->status), text);
    free(text);
}

static const char *const good[] = {"tests/pipelines/bad/good.lua",
                                   "tests/golden/schedules/ring_k7/pipeline.lua",
                                   "tests/golden/schedules/ring_k5_keep/pipeline.lua",
                                   "tests/golden/schedules/ring_k7_copy/pipeline.lua",
                                   "tests/golden/schedules/ring_k7_gather/pipeline.lua",
                                   "tests/golden/schedules/oxy_random/pipeline.lua",
                                   "tests/golden/schedules/base_parallel/pipeline.lua",
                                   "tests/golden/schedules/three_edf/pipeline.lua",
                                   "tests/golden/schedules/miss_decay/pipeline.lua",
                                   "tests/golden/schedules/miss_stop/pipeline.lua",
                                   "tests/pipelines/planner.lua",
                                   "tests/pipelines/shared.lua",
                                   "pipelines/pi05_aloha.lua",
                                   "pipelines/pi05_libero.lua",
                                   "pipelines/pi05_libero_parallel.lua",
                                   "pipelines/pi05_droid.lua",
                                   "pipelines/pi0_aloha.lua",
                                   "pipelines/demo_metaworld.lua",
                                   "pipelines/pi05_my_arm.lua",
                                   "tests/pipelines/prefix.lua",
                                   "tests/pipelines/changed.lua",
                                   "tests/pipelines/tasks.lua"};
enum { N_GOOD = sizeof good / sizeof good[0] };

TEST(good_files_load)
{
    for (int i = 0; i < N_GOOD; i++) {
        struct loaded l = load(good[i]);
        CHECK_INT(l.status, ==, TEC_OK);
        CHECK(tec_only_refused(&l.d));
        if (!tec_only_refused(&l.d))
            complain(&l, good[i]);
        finish(&l);
    }
}

/* `look` at each Lua file of a folder, loaded; how many of them it counted. */
static int each_file(const char *folder, int (*look)(const struct loaded *l, const char *path))
{
    DIR *dir = opendir(folder);
    int n = 0;
    REQUIRE(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[300];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".lua") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        struct loaded l = load(path);
        n += look(&l, path);
        finish(&l);
    }
    closedir(dir);
    return n;
}

static int check_silent(const struct loaded *l, const char *path)
{
    CHECK_INT(l->d.n, ==, 0);
    if (l->d.n)
        complain(l, path);
    return 1;
}

TEST(shipped_files_have_no_warnings)
{
    CHECK_INT(each_file("pipelines", check_silent), >=, 6);
}

/* One line a diagnostic: "file code line col"; files in the order of expected.txt. */
static void list_found(const char *folder, const char *file, char *out, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    struct loaded l = load(path);
    size_t n = strlen(out);
    for (int i = 0; i < l.d.n; i++) {
        const struct tec_diagnostic *e = &l.d.list[i];
        const char *slash = strrchr(e->where.file, '/');
        n += (size_t)snprintf(out + n, size - n, "%s %s %d %d\n", slash ? slash + 1 : "?",
                              tec_code_name(e->code), e->where.line, e->where.col);
    }
    CHECK((l.status == TEC_OK) == tec_only_refused(&l.d));
    CHECK(l.status == TEC_OK || l.status == TEC_MALFORMED);
    CHECK((l.p != NULL) == (l.status == TEC_OK));
    finish(&l);
}

/* A valid graph that does not run can be drawn, but not opened. */
TEST(refused_graphs_are_told_apart)
{
    struct tec_load_options options = {.path = "tests/pipelines/bad/refused.lua"};
    for (int any = 0; any < 2; any++) {
        struct loaded l = {.p = NULL};
        options.any = any;
        tec_diagnostics_init(&l.d, &heap);
        l.status = tec_pipeline_load(&l.p, &options, &heap, &l.d, &l.err);
        CHECK_INT(l.status, ==, any ? TEC_OK : TEC_UNSUPPORTED);
        CHECK((l.p != NULL) == any);
        CHECK(any || strstr(l.err.message, "refused.lua:19:56: buffer 'third' takes"));
        finish(&l);
    }
}

static char *read_whole(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

TEST(bad_files_are_located)
{
    static char found[1 << 16];
    char last[100] = "";
    char *expected = read_whole("tests/pipelines/bad/expected.txt");
    REQUIRE(expected);
    found[0] = '\0';
    for (char *line = expected; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        char file[100] = "";
        sscanf(line, "%99s", file);
        /* the overlay's base is not loaded by itself */
        if (strcmp(file, last) != 0 && strcmp(file, "good.lua") != 0)
            list_found("tests/pipelines/bad", file, found, sizeof found);
        if (strcmp(file, "good.lua") != 0)
            snprintf(last, sizeof last, "%s", file);
    }
    CHECK_STR(found, expected);
    free(expected);
}

TEST(every_code_has_a_file)
{
    char *expected = read_whole("tests/pipelines/bad/expected.txt");
    REQUIRE(expected);
    for (int i = 0; i < TEC_CODES; i++) {
        char word[16];
        snprintf(word, sizeof word, " %s ", tec_code_name((enum tec_code)i));
        /* these need costs, sizes, a model, a checkpoint, a policy or a machine: they are reported
         * later */
        if (i != TEC_E031 && i != TEC_E040 && i != TEC_E060 && i != TEC_E070 && i != TEC_W106 &&
            i != TEC_W108 && i != TEC_W109 && i != TEC_W111 && i != TEC_W113 && i != TEC_W114 &&
            i != TEC_W115 && i != TEC_W116 && i != TEC_W119 && i != TEC_W120)
            CHECK(strstr(expected, word) != NULL);
        CHECK_INT(tec_code_find(tec_code_name((enum tec_code)i)), ==, i);
    }
    CHECK_INT(tec_code_find("E999"), ==, TEC_CODES);
    free(expected);
}

TEST(every_bad_file_is_expected)
{
    char *expected = read_whole("tests/pipelines/bad/expected.txt");
    DIR *dir = opendir("tests/pipelines/bad");
    REQUIRE(expected && dir);
    for (struct dirent *e; (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && e->d_name[0] != '.' && strcmp(dot, ".txt") != 0)
            CHECK(strstr(expected, e->d_name) != NULL);
    }
    closedir(dir);
    free(expected);
}

/* Index of the thing with this name, or -1. */
static int find_input(const struct tec_pipeline *p, const char *name)
{
    for (int i = 0; i < p->n_inputs; i++)
        if (strcmp(p->inputs[i].name, name) == 0)
            return i;
    return -1;
}

static int find_resource(const struct tec_pipeline *p, const char *name)
{
    for (int i = 0; i < p->n_resources; i++)
        if (strcmp(p->resources[i].name, name) == 0)
            return i;
    return -1;
}

TEST(declaration_of_a_file)
{
    struct loaded l = load("pipelines/pi05_aloha.lua");
    REQUIRE(l.p);
    const struct tec_pipeline *p = l.p;
    CHECK_STR(p->name, "pi05_aloha");
    CHECK_INT(p->n_models, ==, 1);
    CHECK_STR(p->models[0].arch, "pi05");
    CHECK_INT(p->models[0].dtype, ==, TEC_DECL_BF16);
    CHECK_STR(json_string_value(json_object_get(p->robots[0].description, "name")), "aloha");
    CHECK_STR(p->robots[0].path, "pipelines/robots/aloha.lua");
    CHECK_INT(p->n_inputs, ==, 5);
    CHECK_INT(p->inputs[0].kind, ==, TEC_INPUT_IMAGE);
    CHECK_INT(p->inputs[3].shape.item[0], ==, 14);
    int obs = find_resource(p, "obs"), lang = find_resource(p, "lang");
    int see = tec_pipeline_find_node(p, "see"), talk = tec_pipeline_find_node(p, "talk");
    const struct tec_decl_node *act = &p->nodes[tec_pipeline_find_node(p, "act")];
    CHECK_INT(p->resources[obs].tokens, ==, 968);
    CHECK_INT(p->resources[lang].share_prefix.index, ==, obs);
    CHECK_INT(p->resources[lang].model, ==, 0);
    CHECK_INT(p->nodes[see].writes.index, ==, obs);
    CHECK_INT(p->nodes[see].reads.n, ==, 5);
    CHECK_INT(p->nodes[see].reads.item[4].index, ==, find_input(p, "prompt"));
    CHECK_INT(p->nodes[see].kv.index, ==, -1);
    CHECK_INT(act->kv.index, ==, obs);
    CHECK_INT(act->steps, ==, 10);
    CHECK_INT(act->deadline.kind, ==, TEC_DEADLINE_HARD);
    CHECK_INT(act->deadline.on_miss, ==, TEC_MISS_HOLD);
    CHECK(act->deadline.ms == 45);
    CHECK_STR(p->partitions[act->partition.index].name, "rt");
    CHECK_INT(p->nodes[talk].spawn.kind, ==, TEC_SPAWN_EVERY);
    CHECK(p->nodes[talk].out.stream && p->nodes[talk].out.buffer == -1);
    CHECK_INT(p->nodes[talk].deadline.on_miss, ==, TEC_MISS_SHED);
    CHECK_INT(p->memory.device, ==, 9663676416);
    CHECK_INT(p->guard.heap, ==, 524288);
    CHECK_INT(tec_pipeline_captures(p), ==, 6);
    CHECK_INT(p->nodes[talk].where.line, ==, 41);
    CHECK_INT(p->order[0], ==, see);
    CHECK_INT(tec_pipeline_find_node(p, "nobody"), ==, -1);
    finish(&l);
}

TEST(a_ring_and_its_reader)
{
    struct loaded l = load("tests/golden/schedules/ring_k7/pipeline.lua");
    REQUIRE(l.p);
    const struct tec_decl_node *advance = &l.p->nodes[1];
    CHECK(advance->kv.prev && l.p->resources[0].read_prev);
    CHECK_INT(l.p->resources[0].stages, ==, 7);
    CHECK_INT(advance->pack_with.index, ==, 0);
    CHECK_INT(l.p->capture.depth.n, ==, 2);
    CHECK_INT(tec_pipeline_captures(l.p), ==, 2);
    finish(&l);
}

static char *expand(const struct tec_pipeline *p)
{
    json_t *form = NULL;
    struct tec_error err;
    if (tec_pipeline_expand(&form, p, &err) != TEC_OK)
        return NULL;
    char *text = json_dumps(form, JSON_INDENT(1));
    json_decref(form);
    return text;
}

/* What is read back is the same, with as many refusals and warnings; its places are the form's. */
static void check_form(const struct loaded *a, const char *path)
{
    char *once = expand(a->p);
    REQUIRE(once);
    struct loaded b = load_with("x.json", once, strlen(once), NULL, 0);
    CHECK_INT(b.status, ==, TEC_OK);
    if (b.status != TEC_OK)
        complain(&b, path);
    char *twice = b.p ? expand(b.p) : NULL;
    CHECK(twice && strcmp(once, twice) == 0);
    CHECK_INT(a->d.n_errors, ==, b.d.n_errors);
    CHECK_INT(a->d.n_warnings, ==, b.d.n_warnings);
    CHECK(!b.p || b.p->n_nodes == 0 || strcmp(b.p->nodes[0].where.file, "x.json") != 0);
    tec_pipeline_free(b.p);
    tec_diagnostics_finish(&b.d);
    free(once);
    free(twice);
}

TEST(the_canonical_form_is_a_fixed_point)
{
    for (int i = 0; i < N_GOOD; i++) {
        struct loaded a = load(good[i]);
        REQUIRE(a.p);
        check_form(&a, good[i]);
        finish(&a);
    }
}

static int check_form_of_what_loads(const struct loaded *l, const char *path)
{
    bool loads = l->status == TEC_OK && l->p;
    if (loads)
        check_form(l, path);
    return loads;
}

TEST(what_loads_can_be_expanded_and_loaded)
{
    CHECK_INT(each_file("tests/pipelines", check_form_of_what_loads), >=, 40);
}

TEST(overlays_merge)
{
    struct loaded l = load("pipelines/pi0_aloha.lua");
    REQUIRE(l.p);
    CHECK_STR(l.p->name, "pi0_aloha");
    CHECK_STR(l.p->models[0].arch, "pi0");
    CHECK_INT(l.p->models[0].dtype, ==, TEC_DECL_BF16);
    CHECK_INT(l.p->n_inputs, ==, 5);
    CHECK_INT(l.p->inputs[4].max_tokens, ==, 48);
    CHECK_INT(l.p->resources[0].tokens, ==, 816);
    CHECK_INT(l.p->resources[1].slots, ==, 8);
    CHECK_STR(l.p->robot_variant, "pi0_aloha");
    finish(&l);
    l = load("pipelines/pi05_my_arm.lua");
    REQUIRE(l.p);
    CHECK_INT(l.p->n_inputs, ==, 4);
    CHECK_INT(find_input(l.p, "observation/wrist_image_left"), ==, -1);
    CHECK_INT(l.p->nodes[0].reads.n, ==, 4);
    CHECK_INT(l.p->nodes[1].deadline.on_miss, ==, TEC_MISS_DECAY);
    CHECK_INT(l.p->nodes[1].steps, ==, 10);
    CHECK(l.p->robots[0].path == NULL && l.p->robots[0].description != NULL);
    finish(&l);
}

TEST(settings_apply_and_are_checked)
{
    const char *const fine[] = {"frame.period_ms=200",
                                "nodes.act.steps=5",
                                "guard.heap=1MiB",
                                "inputs.observation/state.shape=[9]",
                                "model.dtype=f32",
                                "nodes.act.deadline.on_miss=zeros",
                                "capture.batch=[1, 2]",
                                "policy.params.k=8",
                                "seed=7",
                                "robot=robots/metaworld.lua",
                                "nodes.talk.spawn=on_change()",
                                "nodes.talk.supersede=true"};
    struct loaded l = load_with("pipelines/pi05_libero.lua", NULL, 0, fine, 12);
    REQUIRE(l.p);
    CHECK(l.p->frame.period_ms == 200);
    CHECK_INT(l.p->nodes[1].steps, ==, 5);
    CHECK_INT(l.p->nodes[1].deadline.on_miss, ==, TEC_MISS_ZEROS);
    CHECK_INT(l.p->guard.heap, ==, 1 << 20);
    CHECK_INT(l.p->inputs[2].shape.item[0], ==, 9);
    CHECK_INT(l.p->models[0].dtype, ==, TEC_DECL_F32);
    CHECK_INT(l.p->capture.batch.n, ==, 2);
    CHECK_INT(json_integer_value(json_object_get(l.p->policy.params, "k")), ==, 8);
    CHECK_INT(l.p->seed, ==, 7);
    CHECK_INT(l.p->nodes[2].spawn.kind, ==, TEC_SPAWN_ON_CHANGE);
    CHECK(l.p->nodes[2].supersede);
    finish(&l);
}

TEST(spawns_are_set_and_checked)
{
    const char *const calls[] = {
        "nodes.talk.spawn=on_request()",       "nodes.talk.spawn=every(7)",
        "nodes.talk.spawn=on_change(\"obs\")", "nodes.talk.spawn=on_change('prompt')",
        "nodes.talk.spawn=every(0)",           "nodes.talk.spawn=every(99999999999)",
        "nodes.talk.spawn=every(1) ",          "nodes.talk.spawn=every()",
        "nodes.talk.spawn=every('obs')",       "nodes.talk.spawn=on_change(7)",
        "nodes.talk.spawn=on_change('obs\")",  "nodes.talk.spawn=on_change('nothing')",
        "nodes.talk.spawn=on_request('obs')"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct loaded l = load_with("pipelines/pi05_libero.lua", NULL, 0, &calls[i], 1);
        CHECK_INT(l.status, ==, i < 4 ? TEC_OK : TEC_MALFORMED);
        CHECK(i < 4 || strcmp(l.d.list[0].where.file, "--set") == 0);
        if (i == 0)
            CHECK_INT(l.p->nodes[2].spawn.kind, ==, TEC_SPAWN_ON_REQUEST);
        if (i == 1)
            CHECK_INT(l.p->nodes[2].spawn.frames, ==, 7);
        if (i == 2 || i == 3)
            CHECK_STR(l.p->nodes[2].spawn.value, i == 2 ? "obs" : "prompt");
        finish(&l);
    }
}

TEST(wrong_settings_are_located)
{
    const char *const bad[] = {"nodes.act.steps=0", "nodes.tlk.max_tokens=3", "guard.hep=3MiB",
                               "foo", "frame=5"};
    static const struct {
        enum tec_code code;
        int line, col;
    } want[] = {
        {TEC_E011, 1, 17}, {TEC_E021, 2, 7}, {TEC_E010, 3, 7}, {TEC_E011, 4, 0}, {TEC_E011, 5, 7}};
    struct loaded l = load_with("pipelines/pi05_libero.lua", NULL, 0, bad, 5);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    CHECK_INT(l.d.n, ==, 5);
    for (int i = 0; i < l.d.n && i < 5; i++) {
        CHECK_STR(l.d.list[i].where.file, "--set");
        CHECK_INT(l.d.list[i].code, ==, want[i].code);
        CHECK_INT(l.d.list[i].where.line, ==, want[i].line);
        CHECK_INT(l.d.list[i].where.col, ==, want[i].col);
    }
    finish(&l);
}

TEST(set_says_that_it_takes_no_table)
{
    const char *const set[] = {"nodes.act.steps=5", "nodes.act.deadline=hard { ms = 50 }"};
    struct loaded l = load_with("pipelines/pi05_libero.lua", NULL, 0, set, 2);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    REQUIRE(l.d.n == 1 && l.d.list[0].help);
    CHECK(strstr(l.d.list[0].help, "no table") &&
          strstr(l.d.list[0].help, "--set nodes.act.deadline.FIELD=VALUE"));
    finish(&l);
}

TEST(a_password_in_the_address_of_a_server_is_refused_and_not_printed)
{
    const char *const secret[] = {"resources.mem.remote=redis://robot:hunter2@host:6379"};
    const char *const none[] = {"resources.mem.remote=redis://host:99999"};
    struct loaded l = load_with("pipelines/qwen_planner.lua", NULL, 0, secret, 1);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    REQUIRE(l.d.n == 1);
    CHECK_INT(l.d.list[0].code, ==, TEC_E011);
    CHECK_STR(l.d.list[0].where.file, "--set");
    for (int format = TEC_PRINT_TEXT; format <= TEC_PRINT_GITHUB; format++) {
        char *text = print(&l.d, (enum tec_diagnostics_format)format);
        CHECK(strstr(text, "an address with a user or password") && !strstr(text, "hunter2"));
        free(text);
    }
    CHECK(!strstr(l.err.message, "hunter2"));
    finish(&l);

    l = load_with("pipelines/qwen_planner.lua", NULL, 0, none, 1);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    REQUIRE(l.d.n == 1);
    char *text = print(&l.d, TEC_PRINT_TEXT);
    CHECK(strstr(text, "'99999' is no port") && strstr(text, "^"));
    free(text);
    finish(&l);
}

TEST(a_store_is_a_path_as_it_stands)
{
    static const struct {
        const char *store, *says;
    } cases[] = {
        {"redis://127.0.0.1:1/m", "'remote' names a server"},
        {"tcp://robot:hunter2@host/m", "'remote' names a server"},
        {"unix:/run/redis.sock", "'remote' names a server"},
        {"file:///tmp/m", "is a path and no URL"},
        {"~/robot/m", "not expanded"},
        {"$HOME/m/x", "not expanded"},
        {"", "is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char set[80];
        snprintf(set, sizeof set, "resources.mem.store=%s", cases[i].store);
        const char *const sets[] = {set};
        struct loaded l = load_with("pipelines/qwen_planner.lua", NULL, 0, sets, 1);
        CHECK_INT(l.status, ==, TEC_MALFORMED);
        REQUIRE(l.d.n == 1);
        CHECK_INT(l.d.list[0].code, ==, TEC_E011);
        char *text = print(&l.d, TEC_PRINT_TEXT);
        CHECK(strstr(text, cases[i].says) && !strstr(text, "hunter2"));
        CHECK(strstr(text, "^") || strchr(cases[i].store, '@'));
        free(text);
        finish(&l);
    }
}

/* Errors of g11_two_memories.lua with these stores and so many sessions that name a shared file. */
static int files_met(const char *facts, const char *places, int sessions)
{
    char sets[3][64];
    snprintf(sets[0], sizeof sets[0], "resources.mem.store=%s", facts);
    snprintf(sets[1], sizeof sets[1], "resources.mem2.store=%s", places);
    snprintf(sets[2], sizeof sets[2], "frame.sessions=%d", sessions);
    const char *const list[] = {sets[0], sets[1], sets[2]};
    struct loaded l = load_with("pipelines/graphs/g11_two_memories.lua", NULL, 0, list, 3);
    int met = 0;
    for (int i = 0; i < l.d.n; i++)
        met += l.d.list[i].code == TEC_E011 && strstr(l.d.list[i].message, "would write a file of");
    CHECK_INT(l.status, ==, met ? TEC_MALFORMED : TEC_OK);
    finish(&l);
    return met;
}

TEST(each_session_of_each_memory_has_a_file_of_its_own)
{
    CHECK_INT(files_met("build/m", "build/n", 3), ==, 0);
    CHECK_INT(files_met("build/m", "build/m", 1), ==, 1);
    CHECK_INT(files_met("build/m", "build/m.1", 1), ==, 0);
    CHECK_INT(files_met("build/m", "build/m.2", 3), ==, 1);
    CHECK_INT(files_met("build/m.1", "build/m", 3), ==, 1);
    CHECK_INT(files_met("build/m", "build/m.3", 3), ==, 0);
    CHECK_INT(files_met("build/m", "build/m.1x", 3), ==, 0);
}

TEST(prefills_that_wait_have_room)
{
    static const char *const slots[] = {"resources.answers.slots=63", "resources.answers.slots=64"};
    for (int i = 0; i < 2; i++) {
        struct loaded l = load_with("tests/pipelines/held.lua", NULL, 0, &slots[i], 1);
        CHECK_INT(l.d.n_errors, ==, i);
        for (int k = 0; k < l.d.n; k++) {
            CHECK_INT(l.d.list[k].code, ==, TEC_E072);
            CHECK(strstr(l.d.list[k].message, "130 prefills may wait at a time, 128 at most"));
            CHECK_INT(l.d.list[k].where.col, ==, 25); /* of what is set */
        }
        finish(&l);
    }
}

TEST(each_node_of_a_memory_has_a_file_of_its_own)
{
    static const char text[] =
        "return extend('two_load.lua', { name = 'three_load',\n"
        "  inputs = { segments { name = 'more', max_segments = 3, tokens_each = 8 } },\n"
        "  resources = { kv.segments { name = 'mem', store = 'build/m' },\n"
        "                kv.segments { name = 'other', tokens = 32, store = 'build/%s' } },\n"
        "  nodes = { memory_load { name = 'recall3', model = 'planner', reads = { 'more' },\n"
        "                          from = 'other', into = 'context', after = 'recall2' },\n"
        "            prefill { name = 'think', after = 'recall3' } } })\n";
    static const struct {
        const char *store;
        bool met;
    } cases[] = {{"m.recall2", true}, {"m.recall", false}, {"m", true}, {"n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char file[sizeof text + 20];
        snprintf(file, sizeof file, text, cases[i].store);
        struct loaded l = load_with("tests/pipelines/text.lua", file, strlen(file), NULL, 0);
        if (l.d.n_errors > cases[i].met)
            complain(&l, cases[i].store);
        CHECK_INT(l.d.n_errors, ==, cases[i].met);
        bool met = l.d.n_errors && strstr(l.d.list[0].message, "would write a file of 'mem'");
        CHECK_INT(met, ==, cases[i].met);
        CHECK(!met || l.d.list[0].code == TEC_E011);
        finish(&l);
    }
}

TEST(text_output)
{
    struct loaded l = load("tests/pipelines/bad/deadline.lua");
    char *text = print(&l.d, TEC_PRINT_TEXT);
    CHECK_STR(text,
              "error[E030]: hard deadline 80 ms is longer than the frame period 50 ms\n"
              "  --> tests/pipelines/bad/deadline.lua:24:38\n"
              "   |\n"
              "24 |               deadline = hard { ms = 80, on_miss = \"hold_last\" } },\n"
              "   |                                      ^^\n"
              "   = also: tests/pipelines/bad/deadline.lua:8 period set here\n"
              "   = help: a hard deadline must fit in one frame; use soft{} for work that spans "
              "frames\n");
    free(text);
    CHECK(strstr(l.err.message, "deadline.lua:24:38") != NULL);
    text = print(&l.d, TEC_PRINT_GITHUB);
    CHECK(strncmp(text, "::error file=tests/pipelines/bad/deadline.lua,line=24,col=38,title=E030::",
                  73) == 0);
    free(text);
    finish(&l);
}

TEST(json_output)
{
    struct loaded l = load_text("return pipeline { name = \"a\\1\\\"\\255\", shcema = 1 }");
    char *text = print(&l.d, TEC_PRINT_JSON);
    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) {
        json_t *json = json_loads(line, 0, NULL);
        CHECK(json_is_string(json_object_get(json, "file")));
        CHECK(json_is_integer(json_object_get(json, "line")));
        CHECK(json_is_integer(json_object_get(json, "col")));
        CHECK_STR(json_string_value(json_object_get(json, "severity")), "error");
        CHECK(json_is_string(json_object_get(json, "code")));
        CHECK(json_is_string(json_object_get(json, "message")));
        CHECK(json_object_get(json, "help") != NULL);
        json_decref(json);
    }
    CHECK_INT(n, ==, l.d.n);
    CHECK_INT(n, >=, 3);
    free(text);
    finish(&l);
}

#define HEAD                                                             \
    "return pipeline { name = 'x', schema = 1, model = { arch = 'a' }, " \
    "frame = { period_ms = 9 }, "

/* Every one must be refused, in bounded time and memory. */
static const char *const hostile[] = {
    "while true do end",
    "local function f() return f() end return f()",
    "local function f() return 1 + f() end return f()",
    "local s = {} for i = 1, 1e9 do s[i] = i end",
    "local t = {} t.t = t return pipeline(t)",
    "local t = {} t[1] = t return pipeline { nodes = t }",
    "local t = { 1 } for i = 1, 60 do t = { t, t } end return pipeline { nodes = t }",
    "local t = { 1 } for i = 1, 5000 do t = { t } end return pipeline { inputs = t }",
    HEAD "policy = use { params = { f = pipeline } } }",
    HEAD "inputs = { [1.5] = 2 } }",
    HEAD "inputs = { [true] = 2 } }",
    HEAD "[3] = 4 }",
    "return pipeline(pipeline(pipeline {}))",
    "return include('text.lua')",
    "return include('/etc/passwd')",
    "return include('..')",
    "return include(('x'):rep(1e9))",
    "return extend('pi05_aloha.lua', 5)",
    "return extend('pi05_aloha.lua', { nodes = 5 })",
    "return extend('models/pi05.lua', { nodes = {} })",
    "return require('os')",
    "return os.execute('true')",
    "return load('x')",
    "return _ENV",
    "return kv",
    "kv.frame = 5 return kv.frame {}",
    "pairs = 5 return pipeline {}",
    "return pipeline { name = nosuch.a.b.c(1)(2) + 3 .. 'x' }",
    "local t = setmetatable({}, {}) return t",
    "return pipeline { name = '\\0\\1\\2', schema = 1e308 * 10, seed = 0/0 }",
    "return {{{{{{{{{{",
    "--[==[ never closed",
    "return 'never closed",
    "return pipeline { nodes = { every('x'), prev(5), stream {}, on_request(1), without 'y' } }",
    "",
    "return",
    "return nil",
    "return function() end",
    "{",
    "{}",
    "{\"nodes\": {\"kind\": \"kind\"}}",
    "{\"schema\": 1e999}",
    "{\"a\": \"\\ud800\"}",
    "[[[[[[[[[[[[[[[[[[",
};

TEST(hostile_files_are_refused)
{
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct loaded l = load_text(hostile[i]);
        if (l.status == TEC_OK || l.d.n == 0)
            fprintf(stderr, "# %s: %s\n", hostile[i], tec_status_name(l.status));
        CHECK(l.status == TEC_MALFORMED || l.status == TEC_NO_MEMORY);
        CHECK_INT(l.d.n, >, 0);
        CHECK_INT(heap.peak, <, 128 << 20);
        finish(&l);
    }
}

TEST(a_million_nodes)
{
    struct loaded l = load_text(HEAD "nodes = (function() local t = {} for i = 1, 1e6 do "
                                     "t[i] = decode { name = 'n' } end return t end)() }");
    CHECK(l.status == TEC_MALFORMED || l.status == TEC_NO_MEMORY);
    finish(&l);
    l = load_text(HEAD "nodes = (function() local t = {} for i = 1, 5000 do "
                       "t[i] = decode { name = 'n', nonsense = i } end return t end)() }");
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    CHECK_INT(l.d.n, <=, TEC_MAX_DIAGNOSTICS);
    finish(&l);
}

/* What is looked up to show a place must not grow with the number of mistakes. */
TEST(very_many_mistakes)
{
    enum { N = 30000, ROOM = 24 };
    char *text = malloc(N * ROOM + 300);
    REQUIRE(text);
    size_t n = (size_t)sprintf(text, HEAD);
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(text + n, "u%d = %d,\n", i, i);
    sprintf(text + n, "}");
    struct loaded l = load_text(text);
    CHECK_INT(l.d.n, ==, TEC_MAX_DIAGNOSTICS);
    CHECK_INT(l.d.n_errors, >=, N);
    finish(&l);
    n = (size_t)sprintf(text, "for i = 1, 1e5 do local x = nosuch end return nosuch --");
    memset(text + n, '-', N);
    text[n + N] = '\0';
    l = load_text(text);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    finish(&l);
    free(text);
}

TEST(binary_and_large_texts)
{
    static char text[(1 << 20) + 2];
    struct loaded l = load_with("b.lua", "\x1bLua\x54\0\x19\x93", 8, NULL, 0);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    finish(&l);
    memset(text, '{', sizeof text);
    l = load_with("b.lua", text, sizeof text, NULL, 0);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    finish(&l);
    l = load_with("b.lua", text, sizeof text - 2, NULL, 0);
    CHECK(l.status == TEC_MALFORMED || l.status == TEC_NO_MEMORY);
    finish(&l);
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "{}", 2);
    memcpy(text, "return {", 8);
    l = load_with("b.lua", text, sizeof text - 2, NULL, 0);
    CHECK(l.status == TEC_MALFORMED || l.status == TEC_NO_MEMORY);
    finish(&l);
    memset(text, '[', sizeof text);
    text[0] = '{';
    l = load_with("b.json", text, sizeof text - 2, NULL, 0);
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    finish(&l);
}

TEST(files_that_are_not_there)
{
    struct loaded l = load("pipelines/nothing.lua");
    CHECK_INT(l.status, ==, TEC_IO);
    CHECK(strstr(l.err.message, "pipelines/nothing.lua") != NULL);
    finish(&l);
    l = load("pipelines");
    CHECK_INT(l.status, ==, TEC_IO);
    finish(&l);
    l = load("tests/golden/demo/episodes/checkpoint");
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    CHECK(strstr(l.err.message, "checkpoint folder") != NULL);
    finish(&l);
    l = load_text("return policy { name = 'x', plan = function() end }");
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    CHECK(strstr(l.err.message, "a policy file") != NULL);
    finish(&l);
    l = load("x.safetensors");
    CHECK_INT(l.status, ==, TEC_MALFORMED);
    CHECK(strstr(l.err.message, "a checkpoint file") != NULL);
    finish(&l);
}

/* Refuse each of the first allocations of a load, then every thirteenth. */
static void check_refusals(const char *path)
{
    heap.calls = 0;
    struct loaded l = load(path);
    int64_t calls = heap.calls;
    finish(&l);
    int refused = 0;
    for (int64_t n = 1; n <= calls; n += n < 40 ? 1 : 13) {
        heap.calls = 0;
        heap.fail_at = n;
        l = load(path);
        refused += l.status == TEC_NO_MEMORY;
        CHECK(l.status == TEC_NO_MEMORY || l.status == TEC_OK);
        if (l.status != TEC_NO_MEMORY && l.status != TEC_OK)
            complain(&l, "at");
        heap.fail_at = 0;
        finish(&l);
    }
    CHECK_INT(refused, >, 40);
}

TEST(running_out_of_memory)
{
    check_refusals("tests/pipelines/bad/good.lua");
    check_refusals("tests/golden/pi/pi0_tiny_lerobot/checkpoint");
}

TAP_MAIN

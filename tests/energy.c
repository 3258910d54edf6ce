/* energy.c - joules from a folder of counters: going round, parts left out, counters that go. */
#include "tools/measure/energy_card.h"

#include "tests/box.h"
#include "tests/nvml/stand_in.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void put(const char *zone, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, zone);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder, zone, file);
    FILE *f = fopen(path, "we");
    REQUIRE(f);
    fputs(text, f);
    fclose(f);
}

static void zone(const char *name, const char *label, const char *uj)
{
    put(name, "name", label);
    put(name, "energy_uj", uj);
    put(name, "max_energy_range_uj", "1000000000\n");
}

/* A machine with two packages, a part of one, its memory, and the platform around them. */
static void make_machine(void)
{
    box_folder(folder, sizeof folder);
    zone("intel-rapl:0", "package-0\n", "900000000\n");
    zone("intel-rapl:0:0", "core\n", "100\n");
    zone("intel-rapl:0:1", "dram\n", "5000000\n");
    zone("intel-rapl:1", "package-1\n", "0\n");
    zone("intel-rapl:2", "psys\n", "77\n");
    put("intel-rapl", "name", "package-9\n");
}

static void drop_machine(void)
{
    static const char *const zones[] = {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1",
                                        "intel-rapl:1", "intel-rapl:2",   "intel-rapl"};
    static const char *const files[] = {"name", "energy_uj", "max_energy_range_uj"};
    char path[256];
    for (size_t z = 0; z < sizeof zones / sizeof zones[0]; z++) {
        for (size_t f = 0; f < 3; f++) {
            snprintf(path, sizeof path, "%s/%s/%s", folder, zones[z], files[f]);
            unlink(path);
        }
        snprintf(path, sizeof path, "%s/%s", folder, zones[z]);
        rmdir(path);
    }
    CHECK(rmdir(folder) == 0);
}

TEST(packages_and_memory_are_counted_once)
{
    struct tec_energy e;
    double joules;
    make_machine();
    tec_energy_open(&e, folder);
    CHECK_INT(e.n, ==, 3);
    CHECK(tec_energy_read(&e, &joules));
    CHECK(joules == 0.0);
    put("intel-rapl:0", "energy_uj", "902500000\n");
    put("intel-rapl:0:0", "energy_uj", "999999\n");
    put("intel-rapl:0:1", "energy_uj", "5250000\n");
    put("intel-rapl:1", "energy_uj", "1000000\n");
    CHECK(tec_energy_read(&e, &joules));
    CHECK(fabs(joules - 3.75) < 1e-9);
    drop_machine();
}

TEST(a_counter_that_goes_round_is_followed)
{
    struct tec_energy e;
    double joules;
    make_machine();
    tec_energy_open(&e, folder);
    put("intel-rapl:0", "energy_uj", "50000000\n");
    CHECK(tec_energy_read(&e, &joules));
    CHECK(fabs(joules - 150.0) < 1e-9);
    put("intel-rapl:0", "energy_uj", "60000000\n");
    CHECK(tec_energy_read(&e, &joules));
    CHECK(fabs(joules - 160.0) < 1e-9);
    drop_machine();
}

TEST(what_cannot_be_read_is_said)
{
    struct tec_energy e;
    double joules;
    tec_energy_open(&e, "/nonexistent/powercap");
    CHECK_INT(e.n, ==, 0);
    CHECK(!tec_energy_read(&e, &joules));
    CHECK(joules == -1.0);
    make_machine();
    put("intel-rapl:1", "energy_uj", "no number\n");
    tec_energy_open(&e, folder);
    CHECK_INT(e.n, ==, 2);
    put("intel-rapl:0", "energy_uj", "-5\n");
    CHECK(!tec_energy_read(&e, &joules));
    put("intel-rapl:0", "energy_uj", "900000000\n");
    CHECK(!tec_energy_read(&e, &joules)); /* a gap stays a gap */
    tec_energy_open(&e, folder);
    put("intel-rapl:0", "max_energy_range_uj", "0\n");
    tec_energy_open(&e, folder);
    put("intel-rapl:0", "energy_uj", "1\n"); /* backwards, and no range to go round */
    CHECK(!tec_energy_read(&e, &joules));
    drop_machine();
}

static bool read_card(void *self, int64_t *uj)
{
    *uj = *(int64_t *)self;
    return true;
}

TEST(another_kind_of_counter_is_added)
{
    struct tec_energy e;
    double joules;
    int64_t card = 10;
    struct tec_energy_counter c = {.name = "card", .read = read_card, .self = &card};
    tec_energy_open(&e, "/nonexistent/powercap");
    CHECK(tec_energy_add(&e, &c));
    card += 2000000;
    CHECK(tec_energy_read(&e, &joules));
    CHECK(fabs(joules - 2.0) < 1e-9);
    c.read = NULL;
    CHECK(!tec_energy_add(&e, &c));
    c.read = read_card;
    while (e.n < TEC_ENERGY_COUNTERS)
        REQUIRE(tec_energy_add(&e, &c));
    CHECK(!tec_energy_add(&e, &c));
    CHECK(tec_energy_read(&e, &joules));
}

/* --- a graphics card ------------------------------------------------------------------------- */

static const char counting[] = TECTUM_BUILD "/nvml/libnvidia-ml.so.1";
static const char address[] = "0000:00:00.0";

/* The stand-in as it began; the library stays open, so that its state is the one that is used. */
static struct nvml_stand_in *stand_in(void)
{
    void *library = dlopen(counting, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        SKIP("no shared libraries in this build");
    struct nvml_stand_in *card = dlsym(library, "nvml_stand_in");
    REQUIRE(card);
    *card = (struct nvml_stand_in){.mj = 1000, .more = 0};
    return card;
}

TEST(a_card_counts_millijoules)
{
    struct tec_energy e = {.n = 0};
    struct tec_energy_card card;
    struct tec_energy_sum sum = {.joules = 0.0};
    double joules;
    struct nvml_stand_in *s = stand_in();
    REQUIRE(tec_energy_card_open(&card, &e, counting, address));
    CHECK_INT(e.n, ==, 1);
    CHECK_STR(e.counters[0].name, "card 0000:00:00.0");
    s->mj += 2500;
    tec_energy_begin(&e, &sum);
    s->mj += 250;
    tec_energy_end(&e, &sum);
    tec_energy_begin(&e, &sum);
    s->mj += 50;
    tec_energy_end(&e, &sum);
    CHECK(!sum.unknown && fabs(sum.joules - 0.3) < 1e-9);
    CHECK(tec_energy_read(&e, &joules) && fabs(joules - 2.8) < 1e-9);
    s->mj = 9223372036854775ULL; /* the last that has a number of microjoules */
    CHECK(tec_energy_read(&e, &joules));
    s->mj++;
    CHECK(!tec_energy_read(&e, &joules));
    tec_energy_card_close(&card);
    CHECK_INT(s->begun, ==, 0);
    tec_energy_card_close(&card); /* again is nothing */
}

TEST(a_card_that_begins_anew_is_lost)
{
    struct tec_energy e = {.n = 0};
    struct tec_energy_card card;
    struct tec_energy_sum sum = {.joules = 0.0};
    struct nvml_stand_in *s = stand_in();
    REQUIRE(tec_energy_card_open(&card, &e, counting, address));
    tec_energy_begin(&e, &sum);
    s->mj = 10; /* its driver was loaded again */
    tec_energy_end(&e, &sum);
    CHECK(sum.unknown);
    CHECK(!tec_energy_json(&e, &sum, "frame_j", 5, NULL, 0));
    tec_energy_card_close(&card);
}

TEST(a_card_that_answers_an_error_is_lost)
{
    struct tec_energy e = {.n = 0};
    struct tec_energy_card card;
    struct tec_energy_sum sum = {.joules = 0.0};
    struct nvml_stand_in *s = stand_in();
    REQUIRE(tec_energy_card_open(&card, &e, counting, address));
    s->answer = 15; /* NVML_ERROR_GPU_IS_LOST */
    tec_energy_begin(&e, &sum);
    s->answer = 0;
    tec_energy_end(&e, &sum);
    CHECK(sum.unknown); /* a gap stays a gap */
    tec_energy_card_close(&card);
}

TEST(without_a_card_nothing_is_counted)
{
    struct tec_energy e = {.n = 0};
    struct tec_energy_card card;
    struct nvml_stand_in *s = stand_in();
    CHECK(!tec_energy_card_open(&card, &e, "/nonexistent/libnvidia-ml.so.1", address));
    CHECK(!tec_energy_card_open(&card, &e, counting, "0000:65:00.0"));
    s->answer = 3; /* NVML_ERROR_NOT_SUPPORTED: this card has no counter */
    CHECK(!tec_energy_card_open(&card, &e, counting, address));
    s->answer = 0;
    s->init_answer = 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
    CHECK(!tec_energy_card_open(&card, &e, counting, address));
    CHECK(!card.library && e.n == 0);
    CHECK_INT(s->begun, ==, 0);
    tec_energy_card_close(&card);
}

/* Each function that is looked up may be missing; what was begun is ended. */
TEST(a_library_may_lack_any_function)
{
    static const char *const lacks[] = {"_no_init", "_no_shutdown", "_no_address", "_old"};
    for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++) {
        char path[512];
        struct tec_energy e = {.n = 0};
        struct tec_energy_card card;
        snprintf(path, sizeof path, "%s/nvml%s/libnvidia-ml.so.1", TECTUM_BUILD, lacks[i]);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            SKIP("no shared libraries in this build");
        const struct nvml_stand_in *s = dlsym(library, "nvml_stand_in");
        REQUIRE(s);
        CHECK(!tec_energy_card_open(&card, &e, path, address));
        CHECK(!card.library && !card.shutdown && e.n == 0);
        CHECK_INT(s->begun, ==, 0);
        tec_energy_card_close(&card);
        dlclose(library);
    }
}

TEST(joules_are_reported_by_what_they_were_for)
{
    struct tec_energy e = {.n = 0};
    struct tec_energy_sum sum = {.joules = 12.0};
    int64_t card = 10;
    struct tec_energy_counter c = {.name = "card", .read = read_card, .self = &card};
    REQUIRE(tec_energy_add(&e, &c));
    json_t *json = tec_energy_json(&e, &sum, "frame_j", 4, "action_j", 6);
    CHECK(json_real_value(json_object_get(json, "joules")) == 12.0);
    CHECK(json_real_value(json_object_get(json, "frame_j")) == 3.0);
    CHECK(json_real_value(json_object_get(json, "action_j")) == 2.0);
    CHECK_STR(json_string_value(json_array_get(json_object_get(json, "counters"), 0)), "card");
    json_decref(json);
    json = tec_energy_json(&e, &sum, "frame_j", 4, "action_j", 0);
    CHECK_INT(json_object_size(json), ==, 3); /* no action, no joules of one */
    json_decref(json);
    CHECK(!tec_energy_json(&e, &sum, "frame_j", 0, NULL, 0));
    sum.joules = 0.0; /* no counter has moved */
    CHECK(!tec_energy_json(&e, &sum, "frame_j", 4, NULL, 0));
    sum.joules = 12.0;
    e.n = 0;
    CHECK(!tec_energy_json(&e, &sum, "frame_j", 4, NULL, 0));
}

TAP_MAIN

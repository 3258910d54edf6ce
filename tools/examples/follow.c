/* follow.c - a robot's control loop at 100 Hz over tectum_client.h alone.
 *
 *     follow URL [SECONDS]    a server of pipelines/demo_metaworld.lua; prints what it was given */
#include "tectum_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PERIOD_NS = 10000000, EVERY = 5, SIDE = 64, SECOND = 1000000000 };

static uint8_t picture[SIDE * SIDE * 3]; /* a camera would stand here */
static float state[4] = {0.0F, 0.6F, 0.2F, 1.0F};
static const char prompt[] = "press the button";

static const struct tectum_value observation[] = {
    {"observation/image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, picture, sizeof picture},
    {"observation/wrist_image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, picture, sizeof picture},
    {"observation/state", TECTUM_TYPE_F32, 1, {4}, state, sizeof state},
    {"prompt", TECTUM_TYPE_TEXT, 0, {0}, prompt, sizeof prompt - 1}};

static void drive(struct tectum_client *client, int turns)
{
    struct tectum_client_action told;
    struct tectum_client_stats stats;
    double action[64];
    int count[TECTUM_CLIENT_STOPPED + 1] = {0};
    for (int turn = 0; turn < turns; turn++) {
        if (turn % EVERY == 0) /* a camera of 20 Hz, in a thread of its own on a robot */
            tectum_client_observe(client, observation, 4, 0, NULL, NULL);
        tectum_client_next(client, 0, action, 64, &told); /* else TECTUM_TIME: brake */
        count[told.source]++;
        nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
    }
    tectum_client_stats(client, &stats);
    printf("%d turns: %d fresh, %d held, %d without; %lld chunks, delay %.1f ms, seam %.3f\n",
           turns, count[TECTUM_CLIENT_FRESH], count[TECTUM_CLIENT_HELD], count[TECTUM_CLIENT_NONE],
           (long long)stats.replies, (double)stats.delay_p50 / 1e6, stats.seam);
}

int main(int argc, char **argv)
{
    const struct tectum_client_options options = {
        .rate_hz = 20, .horizon = 8, .merge = TECTUM_CLIENT_LINEAR, .by_motion = 1};
    struct tectum_client *client = NULL;
    struct tectum_error err;
    int turns = 100 * (argc > 2 ? atoi(argv[2]) : 2);
    if (argc < 2 || tectum_client_open(&client, argv[1], &options, &err) != TECTUM_OK) {
        fprintf(stderr, "follow: %s\n", argc < 2 ? "URL [SECONDS]" : err.message);
        return 2;
    }
    tectum_client_observe(client, observation, 4, 0, NULL, NULL);
    enum tectum_status status = tectum_client_ready(client, 20LL * SECOND, &err);
    if (status == TECTUM_OK)
        drive(client, turns);
    else
        fprintf(stderr, "follow: %s\n", err.message);
    tectum_client_close(&client);
    return status == TECTUM_OK ? 0 : 3;
}

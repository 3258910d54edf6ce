/* cmd_top.c - a running robot at a glance, again and again; or a recording, once. */
#include "base/clock.h"
#include "base/json_text.h"
#include "tools/control/client.h"
#include "tools/record/flight_source.h"
#include "tools/record/top_views.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_MS = 1000, WINDOW_S = 10 };
#define MS_NS INT64_C(1000000)

struct top_options {
    const char *control;
    int every_ms, count, window_s, show;
};

#define AT(member) offsetof(struct top_options, member)
static const struct tec_clock real = {NULL};

static const struct tec_option options[] = {
    {"control", 0, TEC_OPTION_TEXT, "PATH", "the socket of a robot: serve --control, run --control",
     AT(control), 0, 0},
    {"every-ms", 0, TEC_OPTION_INT, "MS", "between two looks; 1000", AT(every_ms), 50, 3600000},
    {"window-s", 0, TEC_OPTION_INT, "S", "figures are of the last S seconds; 10", AT(window_s), 1,
     3600},
    {"count", 'n', TEC_OPTION_INT, "N", "end after N looks", AT(count), 1, 1 << 30},
    {"show", 0, TEC_OPTION_WORD, "nodes|requests|memory|graphs|policy",
     "what the text shows first; keys change it", AT(show), 0, 0},
};

enum { N_ENDINGS = 6 };
static const int endings[N_ENDINGS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT};

/* The keyboard, where a person looks: a key is read without its line being ended. The signals that
 * end or stop the program are let in only while it waits: the terminal is then as it was found. */
struct keys {
    bool on;
    struct termios before, raw; /* raw: as it is for keys */
    sigset_t mask;              /* of the time before */
    struct sigaction was[N_ENDINGS];
};

static volatile sig_atomic_t caught; /* a handler has nowhere else to say it */

static void note(int number)
{
    caught = number;
}

static bool in_foreground(void)
{
    return tcgetpgrp(0) == getpgrp();
}

/* Who changes a terminal from the background is stopped, unless this signal is blocked. */
static void set_terminal(const struct termios *to)
{
    sigset_t one, was;
    sigemptyset(&one);
    sigaddset(&one, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &one, &was);
    tcsetattr(0, TCSANOW, to);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static void set_raw(struct keys *k)
{
    k->raw = k->before;
    k->raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    set_terminal(&k->raw);
}

/* From the background, where a signal that cannot be caught has brought the program, only what it
 * has left there itself is undone: a shell that has set the terminal for itself keeps it. */
static bool is_to_be_undone(const struct keys *k)
{
    struct termios now;
    return in_foreground() || (tcgetattr(0, &now) == 0 && now.c_lflag == k->raw.c_lflag &&
                               now.c_iflag == k->raw.c_iflag && now.c_oflag == k->raw.c_oflag);
}

/* Keys are read of a robot alone, and only in the foreground: another process group that changes
 * the terminal is stopped. */
static void open_keys(struct keys *k, const struct tec_invocation *call)
{
    const struct top_options *o = call->options;
    struct sigaction action = {.sa_handler = note};
    sigset_t set;
    k->on = o->control && call->shared.format == TEC_FORMAT_TEXT && isatty(0) && isatty(1) &&
            in_foreground() && tcgetattr(0, &k->before) == 0;
    if (!k->on)
        return;
    caught = 0;
    sigemptyset(&set);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_ENDINGS; i++)
        sigaddset(&set, endings[i]);
    pthread_sigmask(SIG_BLOCK, &set, &k->mask);
    for (int i = 0; i < N_ENDINGS; i++) {
        sigaction(endings[i], NULL, &k->was[i]);
        if (k->was[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(endings[i], &action, NULL);
    }
    set_raw(k);
}

/* As things were; a signal that waits comes then. */
static void close_keys(struct keys *k)
{
    if (!k->on)
        return;
    k->on = false;
    if (is_to_be_undone(k))
        set_terminal(&k->before);
    for (int i = 0; i < N_ENDINGS; i++)
        sigaction(endings[i], &k->was[i], NULL);
    pthread_sigmask(SIG_SETMASK, &k->mask, NULL);
}

/* Let the signal that was caught do to the program what it does: end it, or stop it until it goes
 * on. */
static void take_signal(struct keys *k, const struct tec_invocation *call)
{
    int number = caught;
    close_keys(k);
    raise(number);
    open_keys(k, call);
}

/* Wait until `until_ns`; the key that was pressed before, 0 = none. */
static char wait_for_key(struct keys *k, const struct tec_invocation *call, int64_t until_ns)
{
    enum { SECOND_NS = 1000000000 };
    for (;;) {
        if (k->on && !in_foreground()) /* to read there stops the program */
            close_keys(k);
        int64_t now = tec_clock_now(&real), left = until_ns > now ? until_ns - now : 0;
        struct timespec most = {.tv_sec = left / SECOND_NS, .tv_nsec = left % SECOND_NS};
        struct pollfd in = {.fd = k->on ? 0 : -1, .events = POLLIN};
        char key = 0;
        int n = ppoll(&in, 1, &most, k->on ? &k->mask : NULL);
        if (n < 0 && caught && k->on)
            take_signal(k, call);
        if (n > 0 && read(0, &key, 1) != 1)
            key = 'q';
        if (n >= 0)
            return key;
    }
}

/* What the screen shows, and what was said last. */
struct screen {
    struct keys keys;
    enum tec_top_view view;
    bool frozen;
    long long frame; /* the newest that was shown */
    char said[300];
};

/* The view as text; of a robot, also what it says of itself. */
static enum tec_status show(struct tec_invocation *call, struct screen *s,
                            const struct tec_flight *f, const struct tec_cadence *c,
                            struct tec_error *err)
{
    const struct top_options *o = call->options;
    json_t *status = NULL;
    bool asks = o->control && (s->view == TEC_TOP_policy || s->view == TEC_TOP_memory);
    if (asks)
        TEC_TRY(tec_control_ask(call->heap, o->control, json_pack("{s:s}", "cmd", "status"),
                                &status, err));
    if (s->keys.on)
        fputs("\033[H\033[J", call->out); /* from the top of the screen */
    tec_top_print(call->out, s->view, f, c, status);
    json_decref(status);
    if (!s->keys.on)
        return TEC_OK;
    fputs("keys: q quit  ", call->out);
    tec_top_print_keys(call->out);
    fprintf(call->out, "  f freeze  R record\n%s", s->said);
    s->said[0] = '\0';
    return TEC_OK;
}

/* Have the robot write its flight recorder into a file in the folder where this program runs. */
static void record(struct tec_invocation *call, struct screen *s)
{
    const struct top_options *o = call->options;
    struct tec_error err = {TEC_IO, "the current folder has no name"};
    char path[4096];
    json_t *answer = NULL;
    enum tec_status status = TEC_IO;
    size_t n = getcwd(path, sizeof path) ? strlen(path) : 0;
    if (n && n + 64 < sizeof path) {
        snprintf(path + n, sizeof path - n, "/recorder-frame%lld.mcap", s->frame);
        status = tec_control_ask(
            call->heap, o->control,
            json_pack("{s:s, s:s, s:f}", "cmd", "recorder", "path", path, "last_s", 0.0), &answer,
            &err);
    }
    json_decref(answer);
    snprintf(s->said, sizeof s->said, "%.280s\n", status == TEC_OK ? path : err.message);
}

static enum tec_status look(struct tec_invocation *call, struct screen *s, struct tec_error *err)
{
    const struct top_options *o = call->options;
    struct tec_flight f;
    struct tec_cadence c;
    double window = o->window_s ? o->window_s : WINDOW_S;
    if (s->frozen)
        return TEC_OK;
    TEC_TRY(tec_flight_of_call(&f, call, o->control, o->control ? window + 1.0 : 0.0, err));
    enum tec_status status = tec_cadence_of(&c, &f, o->control ? window : 0.0, err);
    s->frame = status == TEC_OK ? (long long)c.newest : s->frame;
    if (status == TEC_OK && call->shared.format == TEC_FORMAT_TEXT) {
        status = show(call, s, &f, &c, err);
    } else if (status == TEC_OK) {
        json_t *line = tec_cadence_json(&f, &c);
        status = tec_json_print(call->out, line, JSON_COMPACT | JSON_REAL_PRECISION(6),
                                "the figures", err);
        json_decref(line);
    }
    fflush(call->out);
    tec_flight_close(&f);
    return status;
}

/* What was said stands below a frozen screen at once, else below the next look. */
static void say(struct tec_invocation *call, struct screen *s)
{
    fputs(s->said, call->out);
    s->said[0] = '\0';
    fflush(call->out);
}

/* Another view is looked at as things are now, also where the screen was frozen. True if a key has
 * changed what is to be seen: else the next look waits for its time, whatever keys there are. */
static bool press(struct tec_invocation *call, struct screen *s, char key)
{
    enum tec_top_view view = tec_top_view_of(key);
    if (view < TEC_TOP_VIEWS) {
        s->view = view;
        s->frozen = false;
    }
    s->frozen ^= key == 'f';
    if (key == 'R')
        record(call, s);
    if (s->frozen)
        say(call, s);
    return view < TEC_TOP_VIEWS || key == 'f' || key == 'R';
}

/* Until the next look is due, or a key asks for one. False: a key ends it all. */
static bool rest(struct tec_invocation *call, struct screen *s)
{
    const struct top_options *o = call->options;
    int64_t until = tec_clock_now(&real) + (o->every_ms ? o->every_ms : EVERY_MS) * MS_NS;
    for (;;) {
        char key = wait_for_key(&s->keys, call, until);
        if (key == 'q')
            return false;
        if (!key || press(call, s, key))
            return true;
    }
}

/* Of a robot there is another look: where somebody watches, where each is a line of JSON, or where
 * they were asked for. What a program reads as text would not end by itself. */
static bool goes_on(const struct tec_invocation *call)
{
    const struct top_options *o = call->options;
    bool asked = o->count || o->every_ms || call->shared.format == TEC_FORMAT_JSON;
    return o->control && (asked || isatty(1));
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct top_options *o = call->options;
    struct screen s = {.view = (enum tec_top_view)o->show};
    enum tec_status status = TEC_OK;
    if (o->show && call->shared.format != TEC_FORMAT_TEXT)
        return tec_fail(err, TEC_INVALID, "--show: JSON has the same figures in every line");
    for (int i = 0; status == TEC_OK && !ferror(call->out); i++) {
        if (!s.keys.on) /* also one that has come to the foreground again */
            open_keys(&s.keys, call);
        status = look(call, &s, err);
        if (status != TEC_OK || !goes_on(call) || (o->count && i + 1 >= o->count))
            break;
        if (!rest(call, &s))
            break;
    }
    close_keys(&s.keys);
    return status;
}

const struct tec_command tec_command_top = {
    .usage = "top [options] [FILE.mcap]",
    .about =
        "Of a running robot, every second (as text that is not a terminal's once, unless --count "
        "or\n"
        "--every-ms says otherwise): rate against the pipeline's period, frames over their\n"
        "deadline, the worst second, headroom (the median of what was left until the deadline);\n"
        "each node's launches; language; the policy; misses by cause. Of a recording the same,\n"
        "once. --show, and of a robot keys on a terminal, choose what is looked at: r the newest "
        "requests, m\n"
        "operations on keys and values and the memories, g the captured variants that ran, p the\n"
        "policy, n nodes again; f freezes the screen, R has the robot write its flight recorder\n"
        "here. JSON: a line a look {pipeline, policy, frame, cadence, hz, wanted_hz, worst_hz,\n"
        "action_hz, frames, missed, left_out, causes, headroom_us, frame_us, tokens_s,\n"
        "in_flight, policy_us, seconds,\n"
        "nodes [{node, launches, hz, p50_us, p99_us, max_us, share}]}.\n",
    .example = "  tectum top --control /tmp/robot.sock\n"
               "  tectum top robot.mcap --show requests\n",
    .takes = TEC_TAKES_FORMAT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct top_options),
    .max_args = 1,
    .args = "a recording",
    .offers = "FILE.mcap",
    .run = run,
};

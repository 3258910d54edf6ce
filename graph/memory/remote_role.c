/* remote_role.c - which of a server's places is the one to ask.
 *
 * A server that outlives a node has replicas, and something that makes one of them the master when
 * the old one is lost (Sentinel, or an operator). Only the master takes strings. So each place is
 * asked what it is when it is connected, and one that says in an answer that it is no master any
 * more is left, as if it were away. */
#include "graph/memory/remote_state.h"

#include <string.h>

enum { INFO_BYTES = 8192 };

/* A section of INFO, as a text. What a server does not want to say is no fault of it. */
static enum tec_status ask_info(const struct tec_remote *r, struct tec_remote_line *line,
                                const char *section, char text[INFO_BYTES + 1],
                                struct tec_error *err)
{
    const char *words[] = {"INFO", section};
    const size_t sizes[] = {4, strlen(section)};
    struct tec_answer answer = {.into = (unsigned char *)text, .room = INFO_BYTES};
    int64_t deadline = tec_remote_deadline(r, 0);
    TEC_TRY(tec_remote_link_ask(&line->link, 2, words, sizes, deadline, err));
    TEC_TRY(tec_remote_link_answer(&line->link, &answer, deadline, err));
    bool said = answer.kind == TEC_ANSWER_STRING && answer.size <= INFO_BYTES;
    text[said ? answer.size : 0] = '\0';
    return TEC_OK;
}

enum tec_status tec_remote_role(const struct tec_remote *r, struct tec_remote_line *line,
                                struct tec_error *err)
{
    char text[INFO_BYTES + 1];
    TEC_TRY(ask_info(r, line, "cluster", text, err));
    if (strstr(text, "cluster_enabled:1"))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "it is one of a cluster, which has each string on another node: give a "
                        "master and its replicas");
    TEC_TRY(ask_info(r, line, "replication", text, err));
    if (strstr(text, "role:slave") || strstr(text, "role:replica"))
        return tec_fail(err, TEC_IO, "it is a replica, which takes no strings");
    return TEC_OK;
}

enum tec_status tec_remote_gives_up_role(const struct tec_answer *answer, struct tec_error *err)
{
    static const char *const words[] = {"READONLY", "MASTERDOWN", "LOADING", "MOVED ",
                                        "CLUSTERDOWN"};
    for (size_t i = 0; answer->kind == TEC_ANSWER_ERROR && i < sizeof words / sizeof *words; i++)
        if (strncmp(answer->text, words[i], strlen(words[i])) == 0)
            return tec_fail(err, TEC_IO, "it is no master any more: '%s'", answer->text);
    return TEC_OK;
}

enum tec_status tec_remote_refuses(struct tec_remote *r, const struct tec_answer *answer,
                                   struct tec_error *err)
{
    static const char word[] = "NOREPLICAS";
    const struct tec_clock clock = {0};
    int64_t now = tec_clock_now(&clock);
    TEC_TRY(tec_remote_gives_up_role(answer, err));
    if (answer->kind != TEC_ANSWER_ERROR || strncmp(answer->text, word, sizeof word - 1) != 0 ||
        r->n_places < 2 || now < r->refuses_until)
        return TEC_OK;
    r->refuses_until = now + r->options.rest_ns;
    r->place = (r->place + 1) % r->n_places; /* this one would still say that it is a master */
    return tec_fail(err, TEC_IO, "it takes no strings: '%s'", answer->text);
}

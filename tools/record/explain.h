/* explain.h - why a frame ran as it did, in words, from what the flight recorder kept. */
#ifndef TEC_TOOLS_RECORD_EXPLAIN_H
#define TEC_TOOLS_RECORD_EXPLAIN_H

#include "tools/record/flight.h"

#include <stdio.h>

/* Why a missed frame did. Texts are the arena's of the flight. */
struct tec_miss {
    const char *cause; /* the word of causes.def */
    const char *node;  /* whose launch it was; "" = none's */
    const char *words; /* a sentence */
    int64_t us_over;
};
enum tec_status tec_explain_miss(struct tec_miss *out, struct tec_flight *f,
                                 const struct tec_flight_frame *frame, struct tec_error *err);

/* The frame of that number, the newest where a recording has several; NULL: there is none. */
const struct tec_flight_frame *tec_flight_find(const struct tec_flight *f, int64_t number);

/* The policy that planned a frame. */
const char *tec_flight_policy(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* The notes of a frame's policy, {name: number or text}; a new reference. */
json_t *tec_flight_decisions(const struct tec_flight *f, const struct tec_flight_frame *frame);
json_t *tec_flight_notes(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* Requests for language that a frame refused, [{request, node, reason}]; a new reference. */
json_t *tec_flight_refused(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* Action nodes that the frame's policy left out, [{node, reason}]; a new reference. */
json_t *tec_flight_left_out(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* A frame whole, and a summary of all, as JSON (new references) and as text. */
enum tec_status tec_explain_frame_json(json_t **out, struct tec_flight *f,
                                       const struct tec_flight_frame *frame, struct tec_error *err);
enum tec_status tec_explain_frame_text(FILE *out, struct tec_flight *f,
                                       const struct tec_flight_frame *frame, struct tec_error *err);
enum tec_status tec_explain_all_json(json_t **out, struct tec_flight *f, struct tec_error *err);
enum tec_status tec_explain_all_text(FILE *out, struct tec_flight *f, struct tec_error *err);

#endif

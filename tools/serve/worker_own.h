/* worker_own.h - what the files of the server's engine thread share: how a job leaves. */
#ifndef TEC_TOOLS_SERVE_WORKER_OWN_H
#define TEC_TOOLS_SERVE_WORKER_OWN_H

#include "tools/serve/worker.h"

/* Run one frame, for the jobs that sessions have or without an observation. */
void tec_worker_frame(struct tec_worker *w);

/* The connection thread has answered the job at its deadline. */
bool tec_worker_expired(const struct tec_worker *w, int job);

/* Answer a job with a sentence; its connection ends. */
void tec_worker_fail(struct tec_worker *w, int job, const struct tec_error *err);

/* Answer without actions: the connection thread then decides by the connection's last command,
 * on_miss and the limits what leaves. */
void tec_worker_answer_without(struct tec_worker *w, int job);

/* Send the actions that the frame has made for the session's job, unless they wait for its text. */
void tec_worker_send(struct tec_worker *w, struct tec_worker_session *s);

/* Wait for the text of the request that this frame asked for, or report its refusal. */
void tec_worker_await_text(struct tec_worker *w, const struct tec_worker_session *s, int job);

/* Behind a frame: answer the jobs whose texts have ended, give up those that nobody wants. */
void tec_worker_tell_texts(struct tec_worker *w);

/* Whether a value of this name is an input, or its robot's picture, read or ignored. */
bool tec_worker_knows(const struct tec_worker *w, const char *name);

/* Tell on stderr which keys of the request nothing reads, each once for each connection. */
void tec_worker_tell_unread(struct tec_worker *w, int64_t client);

/* Decode the request's pictures that came as JPEG or PNG files; the moment's arena holds them. Of
 * tec_image_decode, after the name of the value; at most 2 Mi pixels each and 4 Mi together. */
enum tec_status tec_worker_pictures(struct tec_worker *w, struct tec_error *err);

/* Room for the texts of a session. False without memory. */
bool tec_worker_texts_create(struct tec_worker *w, struct tec_worker_session *s);

/* The bit set of decoders of these streams or nodes; n 0: of all. TEC_NOT_FOUND. */
enum tec_status tec_worker_texts_find(const struct tec_worker *w, unsigned *of,
                                      const char *const *names, int n, struct tec_error *err);

/* The client wants the texts of these decoders from now on. */
void tec_worker_texts_want(const struct tec_worker *w, struct tec_worker_session *s, unsigned of,
                           bool pushes);

/* Nobody wants any, and those that are kept are nobody's. */
void tec_worker_texts_forget(struct tec_worker_session *s);

/* Behind a frame: keep the texts that ended and that no job waits for. */
void tec_worker_texts_keep(struct tec_worker *w, struct tec_worker_session *s);

/* Those kept are in a reply. Then: it has left, as it was packed or `replaced` by another. */
void tec_worker_texts_pack(struct tec_worker_session *s);
void tec_worker_texts_left(struct tec_worker_session *s, bool replaced);

/* The device has failed: no waiting job gets actions any more, but each is told why. */
void tec_worker_lose(struct tec_worker *w, const struct tec_error *err);

#endif

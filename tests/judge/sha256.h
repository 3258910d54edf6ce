/* sha256.h - SHA-256 of a byte string (FIPS 180-4), for judging bytes. */
#ifndef TEC_TESTS_JUDGE_SHA256_H
#define TEC_TESTS_JUDGE_SHA256_H

#include <stddef.h>

/* 64 lower-case hexadecimal digits and a NUL. */
void tec_sha256(const void *data, size_t n, char text[65]);

#endif

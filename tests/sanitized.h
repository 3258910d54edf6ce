/* sanitized.h - whether this build has sanitizers, which gcc and clang tell in different ways.
 *
 * ADDRESS_SANITIZED: address sanitizer. SANITIZED: address, thread or memory sanitizer; code then
 * takes several times as long, and allocates through the sanitizer. Both are 0 or 1.
 */
#ifndef TECTUM_TESTS_SANITIZED_H
#define TECTUM_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZED 1
#elif defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZED 1
#elif __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef ADDRESS_SANITIZED
#define ADDRESS_SANITIZED 0
#endif
#ifndef SANITIZED
#define SANITIZED ADDRESS_SANITIZED
#endif

#endif

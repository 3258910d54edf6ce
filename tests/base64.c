/* base64.c - the published vectors of RFC 4648, every length both ways, and texts that are none. */
#include "base/text/base64.h"
#include "tests/tap.h"

#include <stdint.h>
#include <string.h>

TEST(the_published_vectors)
{
    static const struct {
        const char *bytes, *text;
    } of[] = {{"", ""},
              {"f", "Zg=="},
              {"fo", "Zm8="},
              {"foo", "Zm9v"},
              {"foob", "Zm9vYg=="},
              {"fooba", "Zm9vYmE="},
              {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        char text[16] = "", bytes[16] = "";
        size_t n = strlen(of[i].bytes), got = 99;
        CHECK_INT(tec_base64_length(n), ==, (long long)strlen(of[i].text));
        tec_base64_write(text, of[i].bytes, n);
        CHECK_STR(text, of[i].text);
        CHECK(tec_base64_read(bytes, sizeof bytes, of[i].text, strlen(of[i].text), &got));
        CHECK_INT(got, ==, (long long)n);
        CHECK_STR(bytes, of[i].bytes);
    }
}

TEST(every_byte_at_every_place)
{
    uint8_t bytes[259], back[259];
    char text[400];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        size_t length = tec_base64_length(n), got = 0;
        tec_base64_write(text, bytes, n);
        CHECK(tec_base64_read(back, n, text, length, &got));
        CHECK_INT(got, ==, (long long)n);
        CHECK(memcmp(back, bytes, n) == 0);
        while (length > 0 && text[length - 1] == '=')
            length--;
        CHECK(tec_base64_read(back, n, text, length, &got));
        CHECK(n == 0 || !tec_base64_read(back, n - 1, text, length, &got));
    }
}

TEST(what_is_no_base64)
{
    static const char *const bad[] = {
        "Z",    "Zg=",  "Zg===", "Zm9v=",    "=",          "Zm 9v", "Zm9\n",
        "Zm9-", "Zm9_", "Z===",  "Zg==Zg==", "\xc3\xa9==", "Zm9vZ"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[16];
        size_t n;
        CHECK(!tec_base64_read(bytes, sizeof bytes, bad[i], strlen(bad[i]), &n));
    }
}

TAP_MAIN

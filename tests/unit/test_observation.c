/* Events and observations: every form comes back the same, golden vectors hold, and a stream that
 * was changed, cut or made up is refused. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "golden.h"
#include "model/wire.h"
#include "observation_samples.h"

typedef struct lines {
    aq_buf jsonl, binary, canonical;
} lines;

static void free_lines(lines *l)
{
    aq_buf_free(&l->jsonl);
    aq_buf_free(&l->binary);
    aq_buf_free(&l->canonical);
}
#define auto_lines __attribute__((cleanup(free_lines))) lines

/* Through JSON and back, and through the binary form again: all must be equal. */
static void both_ways(const aq_event *e, void *arg)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *line = NULL;
    auto_lines first = {0}, second = {0};
    aq_event back, again;
    aq_err err = {0};

    aq_event_jsonl(e, &first.jsonl);
    aq_event_write(e, &first.binary);
    assert_int_equal(aq_json_parse(first.jsonl.data, first.jsonl.len, "line", &line, &err), 0);
    if (aq_event_from_json(a, line, &back, &err) < 0)
        fail_msg("%s: %s", err.text, first.jsonl.data);
    aq_event_write(&back, &second.binary);
    assert_int_equal(first.binary.len, second.binary.len);
    assert_memory_equal(first.binary.data, second.binary.data, first.binary.len);
    assert_int_equal(aq_event_read(a, first.binary.data, first.binary.len, &again, &err),
                     (int)first.binary.len);
    aq_event_jsonl(&again, &second.jsonl);
    assert_string_equal(first.jsonl.data, second.jsonl.data);
    /* Our line is what a canonicalising library would make of it. */
    aq_buf_clear(&second.jsonl);
    assert_int_equal(aq_json_canonical(line, &second.jsonl), 0);
    aq_buf_addc(&second.jsonl, '\n');
    assert_string_equal(first.jsonl.data, second.jsonl.data);
    aq_event_canonical(e, &first.canonical);
    json_object_del(line, "seq");
    json_object_del(line, "time");
    assert_int_equal(aq_json_canonical(line, &second.canonical), 0);
    aq_buf_addc(&second.canonical, '\n');
    assert_string_equal(first.canonical.data, second.canonical.data);
    (*(int *)arg)++;
}

static void samples_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_auto_buf b = {0};
        aq_observation wrote, read;
        aq_err err = {0};
        int seen = 0;

        samples[i].write(&b, &wrote);
        if (aq_observation_read(a, b.data, b.len, both_ways, &seen, &read, &err) < 0)
            fail_msg("%s: %s", samples[i].name, err.text);
        assert_int_equal(seen, (int)read.events);
        assert_int_equal(read.events, wrote.events);
        assert_int_equal(read.dropped, wrote.dropped);
        assert_true(aq_digest_equal(&read.digest, &wrote.digest));
        assert_memory_equal(read.by_kind, wrote.by_kind, sizeof read.by_kind);
    }
}

static void six_kinds_are_kept(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};
    aq_observation wrote, o;
    aq_err err = {0};

    (void)state;
    sample_six_kinds(&b, &wrote);
    assert_int_equal(aq_observation_read(a, b.data, b.len, NULL, NULL, &o, &err), 0);
    for (size_t k = 0; k < AQ_EVENT_KINDS; k++)
        assert_int_equal(o.by_kind[k], 1);
    assert_string_equal(o.backend, "container");
    assert_string_equal(o.world, "A");
    assert_int_equal(o.exit_value, 1);
    assert_int_equal(o.output_count, 2);
    assert_string_equal(o.outputs[0].stream, "stderr");
    assert_string_equal(o.outputs[1].head, "done\n");
    assert_int_equal(o.change_count, 3);
    assert_string_equal(o.changes[0].path, "/home/ada/a");
    assert_int_equal(o.changes[2].change, 'D');
    assert_int_equal(o.reached_count, 2);
    assert_string_equal(o.reached[0], "SKILL.md");
    assert_int_equal(o.cpu_ns, 123456789);
}

/* Worlds, time and host facts are not in the canonical digest; what the package did is. */
static void digest_of_twins(void **state)
{
    static const char *const worlds[] = {"A", "B"};
    aq_digest digests[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        aq_auto_buf b = {0};
        aq_recorder *r = aq_recorder_new(i == 1 ? "wasm" : "container", worlds[i % 2], &b);
        aq_event e = sample_event(AQ_EVENT_FILE, "open", "/x", i == 2 ? -2 : 3);
        aq_observation o = {.cpu_ns = i, .landlock = (uint32_t)i, .exit_value = i == 3 ? 7 : 0};

        e.time = i * 1000;
        aq_recorder_event(r, &e);
        aq_recorder_end(r, &o);
        aq_recorder_free(r);
        digests[i] = o.digest;
    }
    assert_true(aq_digest_equal(&digests[0], &digests[1]));
    assert_false(aq_digest_equal(&digests[0], &digests[2]));
    assert_false(aq_digest_equal(&digests[0], &digests[3]));
}

/* The level of Landlock is told where there was one. A stream that tells none, as streams did
 * before, is whole; one that tells level 0, or one that no kernel has, is not. */
static void landlock_is_told(void **state)
{
    static const uint32_t levels[] = {0, 7, AQ_LANDLOCK_MOST, AQ_LANDLOCK_MOST + 1};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_auto_buf b = {0};
        aq_recorder *r = aq_recorder_new("container", "A", &b);
        aq_observation o = {.landlock = levels[i]}, read;
        aq_err err = {0};

        aq_recorder_end(r, &o);
        aq_recorder_free(r);
        if (i == 3) {
            assert_int_equal(aq_observation_read(a, b.data, b.len, NULL, NULL, &read, &err),
                             -EBADMSG);
            continue;
        }
        assert_int_equal(aq_observation_read(a, b.data, b.len, NULL, NULL, &read, &err), 0);
        assert_int_equal(read.landlock, levels[i]);
        aq_auto_json json_t *j = aq_observation_json(&read);
        assert_int_equal(json_integer_value(json_object_get(j, "landlock")), levels[i]);
        assert_int_equal(json_object_get(j, "landlock") != NULL, levels[i] != 0);
    }
}

static void floods_are_counted(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};
    aq_observation wrote, o;
    aq_err err = {0};

    (void)state;
    sample_flood(&b, &wrote);
    assert_int_equal(aq_observation_read(a, b.data, b.len, NULL, NULL, &o, &err), 0);
    assert_int_equal(o.events, 3);
    assert_int_equal(o.dropped, 7);
    assert_int_equal(o.by_kind[AQ_EVENT_FILE], 5);
    assert_int_equal(o.by_kind[AQ_EVENT_CLOCK], 5);
}

static void keep_ops(const aq_event *e, void *arg)
{
    aq_buf_addf(arg, "%s ", e->op);
}

/* What sums up many acts is kept where the acts are not, and is bounded too. */
static void sums_outlive_a_flood(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0}, ops = {0};
    aq_recorder *r = aq_recorder_new("container", "A", &b);
    static const char *const sums[] = {"repeat", "exit", "counts"};
    aq_observation wrote = {0}, o;
    aq_err err = {0};

    (void)state;
    aq_recorder_limit(r, 2);
    for (int i = 0; i < 5; i++) {
        aq_event e = sample_event(AQ_EVENT_FILE, "open", "/x", 3);
        aq_recorder_event(r, &e);
    }
    for (int i = 0; i < 3; i++) {
        aq_event e = sample_event(i ? AQ_EVENT_PROCESS : AQ_EVENT_FILE, sums[i], "/x", 0);
        aq_recorder_event(r, &e);
    }
    for (int i = 0; i < AQ_OBSERVATION_SUMS; i++) {
        aq_event e = sample_event(AQ_EVENT_PROCESS, "exit", "/x", 0);
        aq_recorder_event(r, &e);
    }
    aq_recorder_end(r, &wrote);
    aq_recorder_free(r);
    assert_int_equal(aq_observation_read(a, b.data, b.len, keep_ops, &ops, &o, &err), 0);
    assert_int_equal(o.events, 2 + AQ_OBSERVATION_SUMS);
    assert_int_equal(o.dropped, 3 + 3);
    assert_memory_equal(aq_buf_str(&ops), "open open repeat exit counts exit ", 34);
}

/* Whatever a program does, its record has an end, and says that there was more. */
static void bytes_have_an_end(void **state)
{
    static char name[4001];
    aq_auto_buf b = {0};
    aq_recorder *r = aq_recorder_new("container", "A", &b);
    aq_observation o = {0};
    uint64_t total = 0, last = 0;

    (void)state;
    memset(name, 'x', sizeof name - 1);
    aq_recorder_limit(r, UINT64_MAX);
    for (int i = 0; i < AQ_OBSERVATION_BYTES / 4000 + 100; i++) {
        aq_event e = sample_event(AQ_EVENT_FILE, "open", name, 3);

        aq_recorder_event(r, &e);
        last = b.len;
        total += b.len;
        aq_buf_clear(&b);
    }
    assert_int_equal(last, 0);
    assert_true(total >= AQ_OBSERVATION_BYTES && total < AQ_OBSERVATION_BYTES + 8192);
    aq_recorder_end(r, &o);
    assert_true(o.dropped > 0);
    aq_recorder_free(r);
}

/* The recorder's buffer may be drained between events; the stream is the same. */
static void draining_changes_nothing(void **state)
{
    aq_auto_buf whole = {0}, piece = {0}, joined = {0};
    aq_observation o = {0}, p = {0};
    aq_recorder *r = aq_recorder_new("container", "A", &whole);
    aq_recorder *s = aq_recorder_new("container", "A", &piece);

    (void)state;
    for (int i = 0; i < 50; i++) {
        aq_event e = sample_event(AQ_EVENT_FILE, "read", "/x", i);
        aq_recorder_event(r, &e);
        aq_recorder_event(s, &e);
        aq_buf_add(&joined, piece.data, piece.len);
        aq_buf_clear(&piece);
    }
    aq_recorder_end(r, &o);
    aq_recorder_end(s, &p);
    aq_buf_add(&joined, piece.data, piece.len);
    assert_int_equal(joined.len, whole.len);
    assert_memory_equal(joined.data, whole.data, whole.len);
    aq_recorder_free(r);
    aq_recorder_free(s);
}

/* Every byte of every sample, each of its bits flipped, and a few other values: all refused. */
static void no_changed_byte_survives(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        aq_auto_buf b = {0};
        aq_observation o;

        samples[i].write(&b, &o);
        for (size_t at = 0; at < b.len; at++) {
            for (unsigned flip = 0; flip < (b.len > 4096 ? 1 : 9); flip++) {
                aq_auto_arena a = aq_arena_new();
                aq_err err = {0};
                char was = b.data[at];
                int r;

                b.data[at] = (char)(was ^ (flip == 8 ? 0xff : 1 << flip));
                r = aq_observation_read(a, b.data, b.len, NULL, NULL, &o, &err);
                if (r != -EBADMSG && r != -EPIPE)
                    fail_msg("%s: byte %zu flip %u gave %d", samples[i].name, at, flip, r);
                assert_true(err.text[0]);
                b.data[at] = was;
            }
        }
    }
}

static void no_cut_survives(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        aq_auto_buf b = {0};
        aq_observation o;

        samples[i].write(&b, &o);
        for (size_t len = 0; len < b.len; len++) {
            aq_auto_arena a = aq_arena_new();
            aq_err err = {0};
            /* An exact copy, so that the sanitizer sees a read past the end. */
            aq_auto_free char *copy = malloc(len ? len : 1);
            memcpy(copy, b.data, len);
            assert_int_equal(aq_observation_read(a, copy, len, NULL, NULL, &o, &err), -EPIPE);
            if (len < b.len && b.len < 2048)
                for (size_t n = 0; n < len; n++) {
                    aq_event e;
                    assert_true(aq_event_read(a, copy + n, len - n, &e, &err) <= (ssize_t)len);
                }
        }
        aq_buf_addc(&b, 'Z');
        aq_auto_arena a = aq_arena_new();
        aq_err err = {0};
        assert_int_equal(aq_observation_read(a, b.data, b.len, NULL, NULL, &o, &err), -EBADMSG);
    }
}

/* Streams that a liar makes: the digests are right, the content is not. */
static void put(aq_buf *out, char type, const char *payload, size_t len)
{
    aq_buf p = {.data = (char *)payload, .len = len};

    aq_wire_put_record(out, type, &p);
}

static int read_made_up(const char *order, uint64_t events, aq_err *err)
{
    static const char header[] = "\4wasm\0\1A", zeros[8 + 64];
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0}, end = {0};
    aq_observation o;

    aq_buf_adds(&b, "AQOBSV2\n");
    for (; *order; order++) {
        if (*order == 'H') {
            put(&b, 'H', header, sizeof header);
        } else if (*order == 'E') {
            aq_event e = sample_event(AQ_EVENT_FILE, "open", "/x", 3);
            aq_event_write(&e, &b);
        } else if (*order == 'X') {
            put(&b, 'X', "\0\0", 2);
        } else if (*order == 'R') {
            put(&b, 'R', "\0\0\0", 3);
        } else if (*order == 'Z') {
            aq_wire_put_number(&end, events);
            aq_buf_add(&end, zeros, 7 + 64);
            put(&b, 'Z', end.data, end.len);
        }
    }
    return aq_observation_read(a, b.data, b.len, NULL, NULL, &o, err);
}

static void made_up_streams(void **state)
{
    static const struct {
        const char *order, *complaint;
        uint64_t events;
        int result;
    } cases[] = {
        {"HXRZ", "digest does not match", 0, -EBADMSG}, {"HXRZ", "add up", 5, -EBADMSG},
        {"HEXRZ", "than were counted", 1, -EBADMSG},    {"HEEXRZ", "was due", 2, -EBADMSG},
        {"HXR", "end record is missing", 0, -EPIPE},    {"", "end record is missing", 0, -EPIPE},
        {"EXRZ", "out of order", 1, -EBADMSG},          {"HXEZ", "out of order", 1, -EBADMSG},
        {"HHXRZ", "out of order", 0, -EBADMSG},         {"HXXRZ", "out of order", 0, -EBADMSG},
        {"HXZ", "out of order", 0, -EBADMSG},           {"HRZ", "out of order", 0, -EBADMSG},
        {"HXRRZ", "out of order", 0, -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_err err = {0};
        int r = read_made_up(cases[i].order, cases[i].events, &err);
        if (r != cases[i].result || !strstr(err.text, cases[i].complaint))
            fail_msg("%s: %d %s", cases[i].order, r, err.text);
    }
}

static int read_event_bytes(const char *bytes, size_t len, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};
    aq_event e;

    put(&b, 'E', bytes, len);
    return (int)aq_event_read(a, b.data, b.len, &e, err);
}
#define EVENT(bytes) read_event_bytes(bytes, sizeof bytes - 1, &err)

static void malformed_events(void **state)
{
    aq_err err = {0};
    aq_auto_arena a = aq_arena_new();
    aq_event e;

    (void)state;
    assert_true(EVENT("\0\0\0\0\2\0\4open\0\0\0\0") > 0); /* the twin that is right */
    assert_int_equal(EVENT("\x80\0\0\0\0\2\0\4open\0\0\0\0"), -EBADMSG); /* padded varint */
    assert_int_equal(EVENT("\0\0\0\0\6\0\4open\0\0\0\0"), -EBADMSG);     /* seventh kind */
    assert_int_equal(EVENT("\0\0\0\0\2\2\4open\0\0\0\0"), -EBADMSG);     /* cut without object */
    assert_int_equal(EVENT("\0\0\0\0\2\x18\4open\0\0\0\0"), -EBADMSG);   /* yes and no */
    assert_int_equal(EVENT("\0\0\0\0\2\x20\4open\0\0\0\0"), -EBADMSG);   /* unknown flag */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4Open\0\0\0\0"), -EBADMSG);     /* upper case */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4o\0en\0\0\0\0"), -EBADMSG);    /* NUL in a name */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4openX\0\0\0"), -EBADMSG);      /* no terminator */
    assert_int_equal(EVENT("\0\0\0\0\2\0\0\0\0\0\0"), -EBADMSG);         /* no op */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4open\0\x09\0\0"), -EBADMSG);   /* nine arguments */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4open\0\2\1b\0\0\0\1a\0\0\0\0\0"), -EBADMSG); /* order */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4open\0\0\0\2\1a\0\1a\0"), -EBADMSG); /* doubled decoy */
    assert_int_equal(EVENT("\0\0\0\0\2\0\4open\0\0\0\0\0"), -EBADMSG);         /* left over */
    assert_int_equal(EVENT("\0\0\xff\xff\xff\xff\x1f\0\2\0\4open\0\0\0\0"), -EBADMSG);
    assert_int_equal(aq_event_read(a, "X\0", 2, &e, &err), -EBADMSG);
    assert_int_equal(aq_event_read(a, "E\xff\xff\xff\xff\x7f", 6, &e, &err), -EBADMSG);
    assert_int_equal(aq_event_read(a, "E\x85", 2, &e, &err), 0);
    assert_int_equal(aq_event_read(a, "E", 1, &e, &err), 0);
    assert_int_equal(aq_event_read(a, "", 0, &e, &err), 0);
}

static const char good_line[] =
    "{\"args\":{},\"declared\":null,\"decoys\":[],\"kind\":\"file\",\"object\":\"/x\",\"op\":"
    "\"open\",\"process\":0,\"result\":3,\"rule\":null,\"seq\":0,\"thread\":0,\"time\":0}";

/* The good line with one part replaced. */
static int read_line(const char *from, const char *to, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *line = NULL;
    aq_auto_buf b = {0};
    const char *at = strstr(good_line, from);
    aq_event e;

    assert_non_null(at);
    aq_buf_add(&b, good_line, (size_t)(at - good_line));
    aq_buf_adds(&b, to);
    aq_buf_adds(&b, at + strlen(from));
    assert_int_equal(aq_json_parse(b.data, b.len, "line", &line, err), 0);
    return aq_event_from_json(a, line, &e, err);
}

static void malformed_lines(void **state)
{
    static const char *const wrong[][2] = {
        {"\"seq\":0,", ""},
        {"\"seq\":0", "\"seq\":-1"},
        {"\"seq\":0", "\"seq\":9007199254740992"},
        {"\"seq\":0", "\"seq\":\"0\""},
        {"\"process\":0", "\"process\":4294967296"},
        {"\"op\":\"open\"", "\"op\":\"Open\""},
        {"\"op\":\"open\"", "\"op\":\"\""},
        {"\"op\":\"open\"", "\"op\":null"},
        {"\"kind\":\"file\"", "\"kind\":\"thought\""},
        {"\"object\":\"/x\"", "\"object\":\"\\\\q\""},
        {"\"object\":\"/x\"", "\"object\":\"\\\\x41\""},
        {"\"object\":\"/x\"", "\"object\":\"\\u001b\""},
        {"\"object\":\"/x\"", "\"object\":{\"cut\":false,\"text\":\"a\"}"},
        {"\"object\":\"/x\"", "\"object\":7"},
        {"\"args\":{}", "\"args\":{\"a b\":1}"},
        {"\"args\":{}", "\"args\":{\"a\":1.5}"},
        {"\"args\":{}", "\"args\":{\"a\":{\"number\":\"7\"}}"},
        {"\"args\":{}", "\"args\":{\"a\":{\"number\":\"99999999999999999999\"}}"},
        {"\"args\":{}", "\"args\":{\"a\":9007199254740992}"},
        {"\"args\":{}", "\"args\":{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,"
                        "\"h\":1,\"i\":1}"},
        {"\"decoys\":[]", "\"decoys\":[\"b\",\"a\"]"},
        {"\"decoys\":[]", "\"decoys\":[\"a\",\"a\"]"},
        {"\"decoys\":[]", "\"decoys\":\"a\""},
        {"\"rule\":null", "\"rule\":\"a b\""},
        {"\"rule\":null", "\"rule\":null,\"extra\":1"},
        {"\"declared\":null", "\"declared\":1"},
        {"\"result\":3", "\"result\":null"},
    };
    aq_err err = {0};

    (void)state;
    assert_int_equal(read_line("seq", "seq", &err), 0); /* the twin that is right */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (read_line(wrong[i][0], wrong[i][1], &err) != -EBADMSG)
            fail_msg("was taken: %s", wrong[i][1]);
}

static void golden_vectors(void **state)
{
    aq_auto_fd int dir = golden_folder("observation");

    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        aq_auto_buf bin = {0}, jsonl = {0}, digest = {0};
        char hex[AQ_SHA256_HEX];
        aq_observation o;
        aq_err err = {0};

        samples[i].write(&bin, &o);
        assert_int_equal(aq_observation_jsonl(bin.data, bin.len, &jsonl, &err), 0);
        aq_buf_addf(&digest, "%s\n", aq_digest_hex(&o.digest, hex));
        golden_equal(dir, samples[i].name, "bin", &bin);
        golden_equal(dir, samples[i].name, "jsonl", &jsonl);
        golden_equal(dir, samples[i].name, "digest", &digest);
    }
}

/* A place that was not read stays one, has no digest, and keeps the record from being whole. */
static void unread_places(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_file_change changes[] = {{"/tmp/a", 'A', 1, aq_sha256("x", 1), {{0}}},
                                {"/tmp/deep/", 'U', 0, aq_sha256("x", 1), {{0}}}};
    aq_err err = {0};

    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        aq_auto_buf stream = {0};
        aq_observation o = {.changes = changes, .change_count = count}, back;
        aq_recorder *r = aq_recorder_new("container", "A", &stream);

        aq_recorder_end(r, &o);
        aq_recorder_free(r);
        if (aq_observation_read(a, stream.data, stream.len, NULL, NULL, &back, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(back.change_count, count);
        assert_int_equal(aq_observation_whole(&back), count == 1);
        if (count == 2) {
            aq_auto_json json_t *j = aq_observation_json(&back);
            json_t *row = json_array_get(json_object_get(j, "changes"), 1);

            assert_int_equal(back.changes[1].change, 'U');
            assert_true(json_is_null(json_object_get(row, "digest")));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_back),
        cmocka_unit_test(six_kinds_are_kept),
        cmocka_unit_test(digest_of_twins),
        cmocka_unit_test(floods_are_counted),
        cmocka_unit_test(landlock_is_told),
        cmocka_unit_test(sums_outlive_a_flood),
        cmocka_unit_test(bytes_have_an_end),
        cmocka_unit_test(draining_changes_nothing),
        cmocka_unit_test(no_changed_byte_survives),
        cmocka_unit_test(no_cut_survives),
        cmocka_unit_test(made_up_streams),
        cmocka_unit_test(malformed_events),
        cmocka_unit_test(malformed_lines),
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(unread_places),
    };

    return cmocka_run_group_tests_name("observation", tests, NULL, NULL);
}

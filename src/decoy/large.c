/* What the large files of a home hold: the frame of its kind, so that tools know what it is, and in
 * it bytes that look packed. Any part can be made without the rest but the sum of an archive, so a
 * file is made from its begin on, in pieces of any size. */
#include <stdio.h>
#include <string.h>

#include "decoy/internal.h"

enum { FRAME = 1024, MP3_FRAME = 417, ID3 = 2058, PAGE_SIDES = 2 };

typedef enum kind { OTHER, JPEG, PDF, ZIP, MP4, MP3 } kind;

static const struct {
    const char *ending;
    kind kind;
} kinds[] = {{".jpg", JPEG}, {".pdf", PDF}, {".zip", ZIP}, {".mp4", MP4}, {".mp3", MP3}};

/* Begin and end of a file. */
typedef struct frame {
    uint8_t head[FRAME], tail[FRAME];
    size_t head_len, tail_len;
} frame;

static void put(uint8_t *to, size_t *at, const void *data, size_t len)
{
    memcpy(to + *at, data, len);
    *at += len;
}

static void put_le(uint8_t *to, size_t *at, uint64_t n, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[(*at)++] = i < sizeof n ? (uint8_t)(n >> 8 * i) : 0;
}

static void put_be(uint8_t *to, size_t *at, uint64_t n, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;)
        to[(*at)++] = i < sizeof n ? (uint8_t)(n >> 8 * i) : 0;
}

/* A photograph of twelve million points. */
static void frame_jpeg(frame *f)
{
    static const uint8_t app[] = {0xff, 0xd8, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F',
                                  0,    1,    1,    1,    0, 72, 0,   72,  0,   0};
    static const uint8_t size[] = {0xff, 0xc0, 0, 17, 8,    0x0b, 0xd0, 0x0f, 0xc0, 3,
                                   1,    0x22, 0, 2,  0x11, 0,    3,    0x11, 0};
    static const uint8_t scan[] = {0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0};

    put(f->head, &f->head_len, app, sizeof app);
    put(f->head, &f->head_len, "\xff\xdb\0\x43\0", 5);
    for (uint8_t i = 0; i < 64; i++)
        f->head[f->head_len++] = (uint8_t)(2 + i / 3);
    put(f->head, &f->head_len, size, sizeof size);
    put(f->head, &f->head_len, scan, sizeof scan);
    put(f->tail, &f->tail_len, "\xff\xd9", 2);
}

static void frame_pdf(frame *f, uint64_t len)
{
    enum { OBJECTS = 4 };
    static const char *const objects[OBJECTS] = {
        "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /XObject << /Im0 4 0 R "
        ">> >> >>",
        NULL};
    char *head = (char *)f->head, *tail = (char *)f->tail;
    size_t at[OBJECTS], n = 0, t = 0;

    n += (size_t)snprintf(head, FRAME, "%%PDF-1.5\n%%\xe2\xe3\xcf\xd3\n");
    for (size_t i = 0; i < OBJECTS; i++) {
        at[i] = n;
        n += (size_t)snprintf(head + n, FRAME - n, "%zu 0 obj\n%s%s", i + 1,
                              objects[i] ? objects[i] : "", objects[i] ? "\nendobj\n" : "");
    }
    /* Twice, since the length stands before what it counts; its digits are always as many. */
    for (int twice = 0; twice < 2; twice++) {
        uint64_t body = t ? len - f->head_len - t : 0,
                 table = len - t + strlen("\nendstream\nendobj\n");

        f->head_len = n + (size_t)snprintf(head + n, FRAME - n,
                                           "<< /Type /XObject /Subtype /Image /Width 1654 /Height "
                                           "2339 /ColorSpace /DeviceRGB /BitsPerComponent 8 "
                                           "/Length %010llu >>\nstream\n",
                                           (unsigned long long)body);
        t = (size_t)snprintf(tail, FRAME, "\nendstream\nendobj\nxref\n0 5\n0000000000 65535 f \n");
        for (size_t i = 0; i < OBJECTS; i++)
            t += (size_t)snprintf(tail + t, FRAME - t, "%010zu 00000 n \n", at[i]);
        t += (size_t)snprintf(tail + t, FRAME - t,
                              "trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%010llu\n%%%%EOF\n",
                              (unsigned long long)table);
    }
    f->tail_len = t;
}

/* One thing in it, stored as it is. */
static void frame_zip(frame *f, uint64_t len, uint32_t crc)
{
    static const char name[] = "export.bin";
    const size_t n = sizeof name - 1, fixed = 30 + n + 16 + 46 + n + 22;
    uint64_t body = len > fixed ? len - fixed : 0;

    put(f->head, &f->head_len, "PK\3\4\x14\0\x08\0\0\0\0\x58\x6b\x58", 14);
    put_le(f->head, &f->head_len, 0, 12);
    put_le(f->head, &f->head_len, n, 4);
    put(f->head, &f->head_len, name, n);
    put(f->tail, &f->tail_len, "PK\7\x08", 4);
    put_le(f->tail, &f->tail_len, crc, 4);
    put_le(f->tail, &f->tail_len, body, 4);
    put_le(f->tail, &f->tail_len, body, 4);
    put(f->tail, &f->tail_len, "PK\1\2\x14\3\x14\0\x08\0\0\0\0\x58\x6b\x58", 16);
    put_le(f->tail, &f->tail_len, crc, 4);
    put_le(f->tail, &f->tail_len, body, 4);
    put_le(f->tail, &f->tail_len, body, 4);
    put_le(f->tail, &f->tail_len, n, 4);
    put_le(f->tail, &f->tail_len, 0, 6);
    put_le(f->tail, &f->tail_len, UINT64_C(0100644) << 16, 4);
    put_le(f->tail, &f->tail_len, 0, 4);
    put(f->tail, &f->tail_len, name, n);
    put(f->tail, &f->tail_len, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    put_le(f->tail, &f->tail_len, 46 + n, 4);
    put_le(f->tail, &f->tail_len, 30 + n + body + 16, 4);
    put_le(f->tail, &f->tail_len, 0, 2);
}

static void frame_mp4(frame *f, uint64_t len)
{
    put(f->head, &f->head_len,
        "\0\0\0\x18"
        "ftypmp42\0\0\0\0mp42isom",
        24);
    put_be(f->head, &f->head_len, len - 24, 4);
    put(f->head, &f->head_len, "mdat", 4);
}

static void frame_mp3(frame *f)
{
    /* 2048 bytes of tags, which nobody filled in; the size has seven bits in each byte. */
    put(f->head, &f->head_len, "ID3\3\0\0\0\0\x10\0", 10);
}

static void make_frame(frame *f, const aq_large *l)
{
    f->head_len = f->tail_len = 0;
    if (l->kind == JPEG)
        frame_jpeg(f);
    else if (l->kind == PDF)
        frame_pdf(f, l->len);
    else if (l->kind == ZIP)
        frame_zip(f, l->len, l->crc);
    else if (l->kind == MP4)
        frame_mp4(f, l->len);
    else if (l->kind == MP3)
        frame_mp3(f);
}

void aq_large_begin(aq_large *l, const char *path, const uint8_t key[static 32], uint64_t len)
{
    size_t n = strlen(path);

    *l = (aq_large){.len = len};
    memcpy(l->state, key, sizeof l->state);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && len > 2 * FRAME; i++)
        if (n > 4 && strcmp(path + n - 4, kinds[i].ending) == 0)
            l->kind = (int)kinds[i].kind;
}

/* Eight bytes of what is packed, by their number. */
static uint64_t mixed(const aq_large *l, uint64_t i)
{
    uint64_t z = l->state[i & 3] + i * 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint8_t sound(const aq_large *l, uint64_t at, uint8_t byte)
{
    static const uint8_t head[4] = {0xff, 0xfb, 0x90, 0x64};

    if (at < ID3)
        return 0;
    at = (at - ID3) % MP3_FRAME;
    (void)l;
    return at < sizeof head ? head[at] : byte == 0xff ? 0xfe : byte;
}

static void fill(const aq_large *l, uint8_t *to, uint64_t at, size_t len)
{
    for (size_t done = 0; done < len;) {
        uint64_t word = mixed(l, (at + done) / 8);
        size_t skip = (at + done) % 8, n = 8 - skip < len - done ? 8 - skip : len - done;

        word >>= 8 * skip;
        memcpy(to + done, &word, n);
        done += n;
    }
    for (size_t i = 0; l->kind == JPEG && i < len; i++)
        to[i] = to[i] == 0xff ? 0xfe : to[i]; /* else it would be a mark */
    for (size_t i = 0; l->kind == MP3 && i < len; i++)
        to[i] = sound(l, at + i, to[i]);
}

/* The part of `data`, which lies at `from` of the file, that is in the piece [at, at + len). */
static void overlay(uint8_t *to, uint64_t at, size_t len, const uint8_t *data, uint64_t from,
                    size_t size)
{
    uint64_t begin = at > from ? at : from;
    uint64_t end = at + len < from + size ? at + len : from + size;

    if (begin < end)
        memcpy(to + (begin - at), data + (begin - from), end - begin);
}

void aq_large_more(aq_large *l, void *to, size_t len)
{
    uint64_t first, last;
    frame f;

    fill(l, to, l->at, len);
    make_frame(&f, l);
    first = f.head_len;
    last = l->len - f.tail_len;
    if (l->kind == ZIP) { /* its end has the sum of all before */
        uint64_t a = l->at > first ? l->at : first;
        uint64_t b = l->at + len < last ? l->at + len : last;

        if (a < b)
            l->crc = aq_crc32(l->crc, (uint8_t *)to + (a - l->at), b - a);
        f = (frame){0};
        make_frame(&f, l);
    }
    overlay(to, l->at, len, f.head, 0, f.head_len);
    overlay(to, l->at, len, f.tail, last, f.tail_len);
    l->at += len;
}

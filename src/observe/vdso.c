/* The library, made table by table; see vdso.h. Every address in it is relative to its start. */
#include "observe/vdso.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/digest.h"

enum {
    FUNCTION_BYTES = 8,
    FUNCTION_STEP = 32,
    SEGMENTS = 4,
    TEXT_SECTION = 12, /* as in the kernel's own; what counts is that it is not 0 */
    VERSIONS = 2,
    BUILD_ID = 20,
    FDE_START = 24, /* of the first row after the one that all share */
};

/* One function under two names. The order is that of the code. */
static const struct function {
    const char *name, *plain;
    uint32_t number;
} functions[] = {
    {"__vdso_gettimeofday", "gettimeofday", SYS_gettimeofday},
    {"__vdso_time", "time", SYS_time},
    {"__vdso_clock_gettime", "clock_gettime", SYS_clock_gettime},
    {"__vdso_clock_getres", "clock_getres", SYS_clock_getres},
    {"__vdso_getcpu", "getcpu", SYS_getcpu},
};
enum {
    FUNCTIONS = sizeof functions / sizeof *functions,
    SYMBOLS = 1 + 2 * FUNCTIONS + 1, /* an empty one before, the version's own after */
    TEXT_BYTES = FUNCTIONS * FUNCTION_STEP,
};

static const char soname[] = "linux-vdso.so.1", version_name[] = "LINUX_2.6";

/* What is being written: `at` is where the next table goes. */
typedef struct sheet {
    uint8_t *image;
    size_t at;
    uint64_t hash, gnu_hash, symbols, strings, string_bytes, versyms, verdefs, dynamic, note,
        note_bytes, frame_head;
    size_t dynamic_bytes;
} sheet;

static uint64_t put(sheet *s, const void *data, size_t len)
{
    size_t at = s->at;

    memcpy(s->image + at, data, len);
    s->at += len;
    return at;
}

static void align(sheet *s, size_t to)
{
    s->at = (s->at + to - 1) / to * to;
}

static uint32_t string(sheet *s, const char *text)
{
    return (uint32_t)(put(s, text, strlen(text) + 1) - s->strings);
}

/* ---- names ---- */

static uint32_t hash_old(const char *name)
{
    uint32_t h = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        h = (h << 4) + *c;
        h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
    }
    return h;
}

static uint32_t hash_gnu(const char *name)
{
    uint32_t h = 5381;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        h = h * 33 + *c;
    return h;
}

static const char *symbol_name(int i)
{
    if (i == SYMBOLS - 1)
        return version_name;
    return i % 2 ? functions[(i - 1) / 2].name : functions[(i - 1) / 2].plain;
}

static void put_symbols(sheet *s)
{
    Elf64_Sym all[SYMBOLS] = {0};

    s->strings = s->at;
    put(s, "", 1);
    for (int i = 1; i < SYMBOLS; i++) {
        bool is_version = i == SYMBOLS - 1, weak = i % 2 == 0;

        all[i] = (Elf64_Sym){
            .st_name = string(s, symbol_name(i)),
            .st_info =
                (unsigned char)(is_version ? ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)
                                           : ELF64_ST_INFO(weak ? STB_WEAK : STB_GLOBAL, STT_FUNC)),
            .st_shndx = is_version ? SHN_ABS : TEXT_SECTION,
            .st_value = is_version ? 0 : (uint64_t)(AQ_VDSO_TEXT + (i - 1) / 2 * FUNCTION_STEP),
            .st_size = is_version ? 0 : FUNCTION_BYTES,
        };
    }
    string(s, soname);
    s->string_bytes = s->at - s->strings;
    align(s, 8);
    s->symbols = put(s, all, sizeof all);
}

/* Tables with one bucket: a dozen names are searched as fast as they are hashed. */
static void put_hashes(sheet *s)
{
    uint32_t old[2 + 1 + SYMBOLS] = {1, SYMBOLS, 1};
    uint32_t gnu[4 + 2 + 1 + SYMBOLS - 1] = {1, 1, 1, 0, ~0u, ~0u, 1};

    for (uint32_t i = 1; i < SYMBOLS; i++) {
        old[3 + i] = i + 1 < SYMBOLS ? i + 1 : 0;
        gnu[7 + i - 1] = (hash_gnu(symbol_name((int)i)) & ~1u) | (i + 1 == SYMBOLS);
    }
    s->hash = put(s, old, sizeof old);
    align(s, 8);
    s->gnu_hash = put(s, gnu, sizeof gnu);
}

static void put_versions(sheet *s)
{
    uint16_t of[SYMBOLS];
    uint32_t name = (uint32_t)(s->string_bytes - sizeof soname), own = 0;
    struct {
        Elf64_Verdef def;
        Elf64_Verdaux aux;
    } row[VERSIONS];
    const char *first = (const char *)s->image + s->strings;

    while (strcmp(first + own, version_name) != 0)
        own += (uint32_t)strlen(first + own) + 1;
    for (int i = 0; i < SYMBOLS; i++)
        of[i] = i ? 2 : 0;
    s->versyms = put(s, of, sizeof of);
    align(s, 8);
    for (int i = 0; i < VERSIONS; i++) {
        row[i].def = (Elf64_Verdef){.vd_version = 1,
                                    .vd_flags = i ? 0 : VER_FLG_BASE,
                                    .vd_ndx = (Elf64_Half)(i + 1),
                                    .vd_cnt = 1,
                                    .vd_hash = hash_old(i ? version_name : soname),
                                    .vd_aux = sizeof(Elf64_Verdef),
                                    .vd_next = i + 1 < VERSIONS ? sizeof *row : 0};
        row[i].aux = (Elf64_Verdaux){.vda_name = i ? own : name};
    }
    s->verdefs = put(s, row, sizeof row);
}

/* ---- the rest ---- */

static void put_dynamic(sheet *s)
{
    const Elf64_Dyn all[] = {
        {DT_SONAME, {s->string_bytes - sizeof soname}},
        {DT_SYMBOLIC, {0}},
        {DT_HASH, {s->hash}},
        {DT_GNU_HASH, {s->gnu_hash}},
        {DT_STRTAB, {s->strings}},
        {DT_SYMTAB, {s->symbols}},
        {DT_STRSZ, {s->string_bytes}},
        {DT_SYMENT, {sizeof(Elf64_Sym)}},
        {DT_VERDEF, {s->verdefs}},
        {DT_VERDEFNUM, {VERSIONS}},
        {DT_VERSYM, {s->versyms}},
        {DT_NULL, {0}},
    };

    align(s, 16);
    s->dynamic = put(s, all, sizeof all);
    s->dynamic_bytes = sizeof all;
}

/* The kernel's version, and what it was built from. Loaders that find no version ask by a call. */
static void put_notes(sheet *s, uint32_t version)
{
    const Elf64_Nhdr linux_note = {6, sizeof version, 0};
    const Elf64_Nhdr build_note = {4, BUILD_ID, NT_GNU_BUILD_ID};
    aq_digest build = aq_sha256(&version, sizeof version);

    s->note = s->at;
    if (version) {
        put(s, &linux_note, sizeof linux_note);
        put(s, "Linux\0\0", 8);
        put(s, &version, sizeof version);
    }
    put(s, &build_note, sizeof build_note);
    put(s, "GNU", 4);
    put(s, build.b, BUILD_ID);
    s->note_bytes = s->at - s->note;
}

/* How to walk up the stack from inside of a function: none of them touches it. */
static void put_frames(sheet *s)
{
    static const uint8_t common[FDE_START] = {
        20,   0,   0,   0, 0, 0,    0,  0,       /* length, "this is shared" */
        1,    'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, /* addresses: signed, 32 bits, relative */
        0x0c, 7,   8, /* the frame begins 8 bytes above the stack pointer */
        0x90, 1,      /* the return address lies right below that */
        0,    0,
    };
    struct {
        int32_t head[5]; /* length, distance to the shared row, start, bytes, augmentation */
        int32_t end;
    } one = {{16, FDE_START + 4, 0, TEXT_BYTES, 0}, 0};
    struct {
        uint8_t kinds[4];
        int32_t frames, count, start, row;
    } head = {{1, 0x1b, 0x03, 0x3b}, 0, 1, 0, 0};
    int32_t frames;

    align(s, 8);
    s->frame_head = s->at;
    frames = (int32_t)(s->at + sizeof head + 4);
    head.frames = frames - (int32_t)(s->at + 4);
    head.start = AQ_VDSO_TEXT - (int32_t)s->at;
    head.row = frames + FDE_START - (int32_t)s->at;
    put(s, &head, sizeof head);
    s->at += 4;
    put(s, common, sizeof common);
    one.head[2] = AQ_VDSO_TEXT - (int32_t)(s->at + 8);
    put(s, &one, sizeof one);
}

static void put_text(sheet *s)
{
    s->at = AQ_VDSO_TEXT;
    memset(s->image + s->at, 0x90, TEXT_BYTES);
    for (int i = 0; i < FUNCTIONS; i++) {
        uint8_t code[FUNCTION_BYTES] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3};

        memcpy(code + 1, &functions[i].number, sizeof functions[i].number);
        s->at = (size_t)(AQ_VDSO_TEXT + i * FUNCTION_STEP);
        put(s, code, sizeof code);
    }
}

static void put_head(const sheet *s)
{
    const Elf64_Ehdr head = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = AQ_VDSO_TEXT,
        .e_phoff = sizeof head,
        .e_ehsize = sizeof head,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = SEGMENTS,
        .e_shentsize = sizeof(Elf64_Shdr),
    };
    const uint64_t all = AQ_VDSO_TEXT + TEXT_BYTES, frames = 20;
    const Elf64_Phdr segments[SEGMENTS] = {
        {PT_LOAD, PF_R | PF_X, 0, 0, 0, all, all, 0x1000},
        {PT_DYNAMIC, PF_R, s->dynamic, s->dynamic, s->dynamic, s->dynamic_bytes, s->dynamic_bytes,
         8},
        {PT_NOTE, PF_R, s->note, s->note, s->note, s->note_bytes, s->note_bytes, 4},
        {PT_GNU_EH_FRAME, PF_R, s->frame_head, s->frame_head, s->frame_head, frames, frames, 4},
    };

    memcpy(s->image, &head, sizeof head);
    memcpy(s->image + sizeof head, segments, sizeof segments);
}

void aq_vdso_make(uint32_t version, uint8_t ret[static AQ_VDSO_BYTES])
{
    sheet s = {.image = ret, .at = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr)};

    memset(ret, 0, AQ_VDSO_BYTES);
    put_symbols(&s);
    put_hashes(&s);
    put_versions(&s);
    put_dynamic(&s);
    put_notes(&s, version);
    put_frames(&s);
    put_text(&s);
    put_head(&s);
}

/* Three numbers with points between them; the first two such are often others' ("#1 SMP"). */
uint32_t aq_vdso_version(const char *text)
{
    for (; *text; text++) {
        unsigned long n[3];
        char *end;
        int i = 0;

        if (*text < '0' || *text > '9')
            continue;
        n[0] = strtoul(text, &end, 10);
        for (i = 1; i < 3 && *end == '.' && end[1] >= '0' && end[1] <= '9'; i++)
            n[i] = strtoul(end + 1, &end, 10);
        if (i == 3)
            return (uint32_t)((n[0] & 0xff) << 16 | (n[1] & 0xff) << 8 | (n[2] < 255 ? n[2] : 255));
        text = end - 1;
    }
    return 0;
}

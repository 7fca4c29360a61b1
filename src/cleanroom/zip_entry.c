/* Names, kinds and extra data of zip entries; see zip_entry.h. */
#include "cleanroom/zip_entry.h"

#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum {
    LINK_MAX = 4096,
    USUAL_MAX = 128,  /* bytes of usual extra data in one header */
    DOS_LABEL = 0x08, /* of a disk: skipped by some */
    DOS_FOLDER = 0x10,
    EXTRA_WIDE = 0x0001,
    EXTRA_PKWARE_UNIX = 0x000d,
    EXTRA_LIBARCHIVE = 0x6c78,
    EXTRA_NAME = 0x7075,
    EXTRA_ASI = 0x756e,
};

/* Looks for one field in extra data; NULL when it is not there or the data is malformed. */
static const uint8_t *extra_field(const uint8_t *p, size_t len, uint16_t id, size_t *ret)
{
    while (len >= 4) {
        size_t n = u16(p + 2);
        if (n > len - 4)
            return NULL;
        if (u16(p) == id) {
            *ret = n;
            return p + 4;
        }
        p += 4 + n;
        len -= 4 + n;
    }
    return NULL;
}

/* Extra data must be read alike by all: whole fields, nothing twice that counts, and no field that
 * some programs take the kind, the link target or the attributes of the entry from. Up to three
 * zeros at the end are an aligner's padding. */
bool zip_extras_good(const uint8_t *p, size_t len)
{
    bool wide = false, named = false;

    while (len >= 4) {
        uint16_t id = u16(p);
        size_t n = u16(p + 2);
        if (n > len - 4 || id == EXTRA_ASI || id == EXTRA_PKWARE_UNIX || id == EXTRA_LIBARCHIVE ||
            (id == EXTRA_WIDE && wide) || (id == EXTRA_NAME && named))
            return false;
        wide = wide || id == EXTRA_WIDE;
        named = named || id == EXTRA_NAME;
        p += 4 + n;
        len -= 4 + n;
    }
    for (; len > 0; len--)
        if (*p++ != 0)
            return false;
    return true;
}

size_t zip_extras_spare(const uint8_t *p, size_t len)
{
    /* 64-bit sizes; times of NTFS and Unix; owners, old and new; a name, which is checked; the mark
     * of a jar */
    static const uint16_t usual[] = {EXTRA_WIDE, 0x000a, 0x5455, 0x5855, 0x7855, 0x7875, 0xcafe};
    size_t spare = 0, fine = 0;

    while (len >= 4 && u16(p + 2) <= len - 4) {
        size_t n = 4 + (size_t)u16(p + 2);
        bool known = u16(p) == EXTRA_NAME;
        for (size_t i = 0; i < sizeof usual / sizeof *usual && !known; i++)
            known = u16(p) == usual[i] && (fine += n) <= USUAL_MAX;
        spare += known ? 0 : n;
        p += n;
        len -= n;
    }
    return spare;
}

static bool take64(const uint8_t **p, size_t *len, uint64_t *field)
{
    if (*field != UINT32_MAX)
        return true;
    if (*len < 8)
        return false;
    *field = u64(*p);
    *p += 8;
    *len -= 8;
    return true;
}

bool zip_wide_fields(const uint8_t *extra, size_t len, uint64_t *size, uint64_t *packed,
                     uint64_t *local)
{
    size_t n = 0;
    const uint8_t *p = extra_field(extra, len, EXTRA_WIDE, &n);

    if (!p) /* exactly 4 GiB - 1 without the field is possible and absurd: refuse */
        return *size != UINT32_MAX && *packed != UINT32_MAX && (!local || *local != UINT32_MAX);
    return take64(&p, &n, size) && take64(&p, &n, packed) && (!local || take64(&p, &n, local));
}

bool zip_same_extra_name(const zip_entry *e, const uint8_t *extra, size_t len)
{
    size_t n = 0, m = 0;
    const uint8_t *here = extra_field(extra, len, EXTRA_NAME, &n);
    const uint8_t *there =
        extra_field(e->central + CENTRAL_LEN + e->name_len, u16(e->central + 30), EXTRA_NAME, &m);

    if (!here || there)
        return !here || (n == m && memcmp(here, there, n) == 0);
    return n == 5 + (size_t)e->name_len && memcmp(here + 5, e->name, e->name_len) == 0;
}

void zip_classify(const zip_entry *e, aq_entry *out)
{
    uint32_t type = e->unix_mode ? e->mode & S_IFMT : 0;
    bool folder = e->name_len > 0 && e->name[e->name_len - 1] == '/';

    *out = (aq_entry){.kind = folder ? AQ_ENTRY_FOLDER : AQ_ENTRY_FILE,
                      .name = e->name,
                      .name_len = e->name_len,
                      .size = e->size,
                      .mode = e->unix_mode ? e->mode & 07777 : 0,
                      .rule = AQ_RULE_INTAKE_UNSUPPORTED};
    if (type == S_IFLNK) {
        out->kind = AQ_ENTRY_SYMLINK;
    } else if (type != 0 && type != S_IFREG && type != S_IFDIR) {
        out->kind = AQ_ENTRY_SPECIAL;
        out->reason = "a device, FIFO or socket";
    }
    if (e->flags & (FLAG_ENCRYPTED | FLAG_STRONG)) {
        out->kind = AQ_ENTRY_UNREAD;
        out->reason = "encrypted";
        out->rule = AQ_RULE_INTAKE_ENCRYPTED;
    } else if (e->method != METHOD_STORED && e->method != METHOD_DEFLATED) {
        out->kind = AQ_ENTRY_UNREAD;
        out->reason = "unknown compression method";
    } else if (out->kind == AQ_ENTRY_SYMLINK && e->size > LINK_MAX) {
        out->kind = AQ_ENTRY_UNREAD;
        out->reason = "link with an oversized target";
    }
}

bool zip_plain_ascii(const zip_entry *e)
{
    for (size_t i = 0; i < e->name_len; i++)
        if ((uint8_t)e->name[i] >= 0x80)
            return false;
    return true;
}

/* Old rules say in which code page a name from DOS, OS/2 or an early NT is. One program keeps to
 * them even where the name is marked as UTF-8, but not where the entry has extra data. */
bool zip_encoding_clear(const zip_entry *e)
{
    uint8_t version = e->central[4], host = e->central[5];
    bool old = host == 0 || host == 6 || (host == 11 && version == 50);

    if (zip_plain_ascii(e))
        return true;
    return (e->flags & FLAG_UTF8) && (!old || (e->local_extra && u16(e->central + 30) > 0));
}

/* An extra field may carry the name once more, in UTF-8, with a checksum of the name that it is
 * for. It may replace a name in an old code page; a name that all programs read alike it must
 * repeat. */
bool zip_unicode_name(const zip_entry *e, aq_entry *out)
{
    size_t n = 0;
    const uint8_t *p =
        extra_field(e->central + CENTRAL_LEN + e->name_len, u16(e->central + 30), EXTRA_NAME, &n);

    if (!p || (n == 5 + (size_t)e->name_len && memcmp(p + 5, e->name, e->name_len) == 0))
        return true;
    if (n < 6 || p[0] != 1 || (e->flags & FLAG_UTF8) || zip_plain_ascii(e) ||
        u32(p + 1) != crc32(0, (const Bytef *)e->name, e->name_len))
        return false;
    out->name = (const char *)p + 5;
    out->name_len = n - 5;
    return true;
}

/* Programs tell folders by the name, by the Unix mode or by the DOS attribute; one of them removes
 * what looks like a version number of VMS, and a dot at the end means a folder to some. */
bool zip_kind_clear(const zip_entry *e)
{
    uint32_t type = e->mode & S_IFMT;
    bool folder = e->name_len > 0 && e->name[e->name_len - 1] == '/';
    bool says_folder = (e->unix_mode || type == S_IFDIR || type == S_IFLNK)
                           ? type == S_IFDIR
                           : (u32(e->central + 38) & DOS_FOLDER) != 0;
    size_t i = e->name_len;

    if ((!e->unix_mode && type == S_IFLNK) || (says_folder && !folder) ||
        (u32(e->central + 38) & DOS_LABEL))
        return false;
    if (folder && e->unix_mode && type != 0 && type != S_IFDIR)
        return false;
    if (e->name_len > 1 && memcmp(e->name + e->name_len - 2, "/.", 2) == 0)
        return false;
    while (i > 0 && e->name[i - 1] >= '0' && e->name[i - 1] <= '9')
        i--;
    return i == 0 || e->name[i - 1] != ';';
}

void zip_slashes(uint8_t *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (name[i] == '\\')
            name[i] = '/';
}

bool zip_same_name(const uint8_t *name, const zip_entry *e, bool dos)
{
    for (size_t i = 0; i < e->name_len; i++)
        if ((char)name[i] != e->name[i] && !(dos && name[i] == '\\' && e->name[i] == '/'))
            return false;
    return true;
}

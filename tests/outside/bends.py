"""Archives made field by field, most of them plain, some bent where readers are known to differ.

Every choice comes from the random numbers that the caller gives, so a round can be made again.
"""
import gzip
import struct
import zlib


def sometimes(rng, chance, usual, *others):
    return rng.choice(others) if rng.random() < chance else usual


# ---- tar ----

def tar_number(rng, value, length, bend):
    octal = b"%0*o\0" % (length - 1, value)
    if rng.random() >= bend:
        return octal
    big = value.to_bytes(length - 1, "big")
    return rng.choice([
        b"%*o\0" % (length - 1, value), b"%0*o " % (length - 1, value), b"%0*o" % (length, value),
        b"\x80" + big, b"\xff" + big, b"\x81" + big, b"\0" * length, b" " * length, b"-" + octal[1:],
        b"+" + octal[1:], b"\0" + octal[1:], b"%o\0%o" % (value, value), b"%o 7\0" % value,
        b"%o\0 " % value, b"0x%x\0" % value, b"%d9\0" % value, b"\t%o\0" % value, b"%oX" % value,
    ])[:length].ljust(length, b"\0")


def tar_header(rng, name, size, kind=b"0", link=b"", bend=0.0, magic=b"ustar\00000", prefix=b""):
    magic = sometimes(rng, bend, magic, b"ustar  \0", b"ustar\00000", b"\0" * 8, b"ustar\0  ",
                      b"ustar\0000\0", b"ustar  0", b"USTAR\00000", b"ustar\00001")
    block = bytearray(512)
    block[0:100] = name[:100].ljust(100, b"\0")
    block[100:108] = tar_number(rng, 0o644, 8, bend / 2)
    block[108:116] = tar_number(rng, 1000, 8, bend / 4)
    block[116:124] = tar_number(rng, 1000, 8, bend / 4)
    block[124:136] = tar_number(rng, size, 12, bend)
    block[136:148] = tar_number(rng, 1700000000, 12, bend / 2)
    block[156:157] = kind
    block[157:257] = link[:100].ljust(100, b"\0")
    block[257:265] = magic
    block[265:297] = sometimes(rng, bend, b"user", b"", b"\xff\xfe", b"a\0b", b"x" * 32).ljust(32, b"\0")
    block[329:345] = sometimes(rng, bend, b"0000000\0" * 2, b"\0" * 16, b" " * 16, b"7777777\0" * 2)
    block[345:500] = prefix[:155].ljust(155, b"\0")
    if rng.random() < bend / 4:
        block[500:512] = rng.choice([b"\0" * 8 + b"tar\0", b"x" * 12, b" " * 12])
    total = sum(block[:148]) + 256 + sum(block[156:])
    signed = total - 256 * sum(b > 127 for b in bytes(block[:148] + block[156:]))
    block[148:156] = sometimes(rng, bend / 2, b"%06o\0 " % total, b"%06o\0 " % abs(signed), b"%07o\0" % total,
                               b"%7o " % total, b"%06o \0" % total, b"\x80" + total.to_bytes(7, "big"),
                               b"%o\0" % total).ljust(8, b"\0")[:8]
    return bytes(block)


def padded(data):
    return data + b"\0" * (-len(data) % 512)


def record(rng, key, value, bend):
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest) + 1
    while length != len(rest) + len(str(length)):
        length += 1
    if rng.random() >= bend:
        return b"%d" % length + rest
    return rng.choice([b"0%d" % (length + 1) + rest, b" %d" % (length + 1) + rest, b"%d" % (length - 1) + rest,
                       b"%d" % (length + 1) + rest, b"%d" % length + rest[:-1] + b"\0",
                       b"%d" % length + rest, b"%d" % length + rest + b"\n"])


def pax_records(rng, name, size, link, bend):
    values = {b"path": [name, b"other", b"", name + b"/", b"./" + name, name + b"\0x", b"a\nb", b"/" + name,
                        name + b"\n11 path=x\n"],
              b"size": [b"%d" % size, b"%d" % (size + 512), b"", b"0", b"-1", b"0%d" % size, b" %d" % size,
                        b"%d.5" % size, b"%d\0" % size, b"18446744073709551616"],
              b"linkpath": [link, b"", b"SKILL.md", b"../x"],
              b"mtime": [b"1700000000.5", b"", b"x", b"-5", b"99999999999999999999"],
              b"uid": [b"1000", b"", b"-1", b"x"], b"uname": [b"user", b"", b"\xff"],
              b"hdrcharset": [b"BINARY", b"ISO-IR 10646 2000 UTF-8", b"ISO-IR 8859 1 1998", b"", b"UTF-16"],
              b"charset": [b"BINARY", b"UTF-8"], b"comment": [b"hello", b"", b"30 path=smuggled\n"],
              b"GNU.sparse.major": [b"1", b"0"], b"GNU.sparse.minor": [b"0", b"1"],
              b"GNU.sparse.name": [b"sparse"], b"GNU.sparse.realsize": [b"5"], b"GNU.sparse.size": [b"5"],
              b"GNU.sparse.map": [b"0,5"], b"SCHILY.realsize": [b"5", b"%d" % size], b"SCHILY.filetype": [b"dir"],
              b"SUN.holesdata": [b" 0 5"], b"SCHILY.xattr.user.a": [b"b", b"\0\xff"], b"SCHILY.acl.access": [b"u::rw"],
              b"LIBARCHIVE.symlinktype": [b"dir"], b"LIBARCHIVE.creationtime": [b"1"], b"GNU.volume.label": [b"v"],
              b"GNU.volume.offset": [b"5"], b"GNU.volume.size": [b"5"], b"GNU.volume.filename": [b"v"],
              b"GNU.dumpdir": [b"Yx\0"], b"VENDOR.x": [b"y"], b"path\0x": [b"other"], b"PATH": [b"other"],
              b" path": [b"other"], b"path ": [b"other"], b"size\0": [b"0"], b"SCHILY.fflags": [b"uchg"],
              b"atime": [b"1"], b"ctime": [b"1"], b"gid": [b"5"], b"gname": [b"g"],
              b"LIBARCHIVE.xattr.user.a": [b"Yg"], b"SCHILY.dev": [b"5"], b"SCHILY.nlink": [b"2"]}
    keys = [b"path"] if rng.random() < 0.7 else []
    while rng.random() < 0.5:
        keys.append(rng.choice(list(values)) if rng.random() < bend * 2 else
                    rng.choice([b"mtime", b"uid", b"comment", b"SCHILY.xattr.user.a"]))
    return b"".join(record(rng, k, sometimes(rng, bend, values[k][0], *values[k]), bend / 3) for k in keys)


def tar_extension(rng, name, size, link, bend):
    kind = sometimes(rng, bend, rng.choice([b"x", b"L"]), b"g", b"K", b"X", b"N", b"V", b"A", b"D", b"M", b"x")
    if kind in (b"x", b"g", b"X"):
        records = [pax_records(rng, name, size, link, bend) if kind == b"x" else
                   record(rng, rng.choice([b"comment", b"mtime", b"hdrcharset", b"path", b"uname"]), b"1", bend)]
        body = records[0] + sometimes(rng, bend / 2, b"", b"\0", b"\0" * 20, b"\n", b"0", b"x")
    else:
        body = sometimes(rng, bend, name + b"\0", name, name + b"/\0", b"other\0", name + b"\0\0\0", b"", b"\0",
                         name + b"\0junk", b"./" + name + b"\0")
    gnu = kind in (b"L", b"K")
    head = tar_header(rng, b"././@LongLink" if gnu else b"./PaxHeaders/x", len(body), kind, bend=bend / 3,
                      magic=b"ustar  \0" if gnu else b"ustar\00000")
    return head + padded(body)


NAMES = [b"a", b"b/c", b"SKILL.md", b"d/e/f", "\u00e4/\u00f6".encode(), b"./k", b"long/" * 30 + b"z", b"x" * 100, b"m/n"]


def tar_entry(rng, i, bend):
    name = rng.choice(NAMES) + (b"%d" % i if rng.random() < 0.95 else b"")
    name = sometimes(rng, bend / 2, name, name + b"/", b"/" + name, b"q//" + name, b"q/./" + name, b"", b".", b"./",
                     name + b"//", b"q/../" + name, name + b"\\x", b"C:" + name, name + b" ", name + b"\n", b"\xff" + name,
                     name + b"/.", b".//" + name)
    data = rng.randbytes(rng.choice([0, 1, 511, 512, 513, 1500]))
    kind = sometimes(rng, bend / 2, b"0", b"\0", b"7", b"5", b"1", b"2", b"8", b"9", b"A", b"S", b"D", b"V", b"Z", b" ")
    link = sometimes(rng, bend / 2, b"", b"SKILL.md", b"a0", b"/etc/passwd")
    out, prefix, short = b"", b"", name
    if rng.random() < 0.35 or len(name) > 100:
        for _ in range(sometimes(rng, bend / 2, 1, 2, 3)):
            out += tar_extension(rng, name, len(data), link, bend)
    if len(name) > 100 or rng.random() < 0.2:
        cut = name.rfind(b"/", 0, 155)
        if cut > 0 and len(name) - cut - 1 <= 100:
            prefix, short = name[:cut], name[cut + 1:]
    prefix = sometimes(rng, bend / 3, prefix, b"p", b"p/", b"/", b"p\0q", b"p" * 155)
    short = sometimes(rng, bend / 4, short, short[:90] + b"\0junk", b"other", b"")
    head = tar_header(rng, short, len(data), kind, link, bend / 2, prefix=prefix)
    pad = padded(data)
    if rng.random() < bend / 8:
        pad = data + b"P" * (len(pad) - len(data))
    return out + head + pad


def tar(rng):
    bend = rng.choice([0, 0.05, 0.1, 0.2, 0.4])
    body = b"".join(tar_entry(rng, i, bend) for i in range(rng.randrange(1, 5)))
    end = sometimes(rng, bend, b"\0" * 1024, b"\0" * 512, b"", b"\0" * 10240, b"\0" * 700, b"\0" * 512 + body,
                    b"\0" * 1024 + body, b"\0" * 1024 + b"x")
    data = body + end
    return gz(rng, data, bend) if rng.random() < 0.2 else data


def gz_member(rng, data, bend):
    flags, middle = 0, b""
    if rng.random() < 0.3:
        extra = rng.randbytes(5)
        flags, middle = flags | 4, middle + struct.pack("<H", len(extra)) + extra
    if rng.random() < 0.3:
        flags, middle = flags | 8, middle + b"name.tar\0"
    if rng.random() < 0.3:
        flags, middle = flags | 16, middle + b"comment\0"
    flags |= sometimes(rng, bend / 2, 0, 1, 32, 64, 128)
    head = b"\x1f\x8b" + bytes([sometimes(rng, bend / 4, 8, 7), flags]) + b"\0\0\0\0\0\3" + middle
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xffff)
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(data) + packer.flush()
    crc, size = zlib.crc32(data), len(data)
    return head + body + struct.pack("<II", sometimes(rng, bend / 4, crc, 0), sometimes(rng, bend / 4, size, 0))


def gz(rng, data, bend):
    if rng.random() < 0.5:
        return gzip.compress(data)
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(3)))
    parts = [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)])]
    joint = sometimes(rng, bend / 2, b"", b"\0", b"\0" * 512, b"x")
    return joint.join(gz_member(rng, p, bend) for p in parts) + sometimes(rng, bend / 2, b"", b"\0" * 9, b"junk")


# ---- zip ----

def extra_field(kind, data):
    return struct.pack("<HH", kind, len(data)) + data


def extras(rng, name, size, packed, offset, bend, local):
    out = b""
    if rng.random() < 0.3:
        out += extra_field(0x5455, b"\3" + struct.pack("<I", 1700000000) * (2 if local else 1))
    while rng.random() < bend:
        other = rng.choice([name, b"other", name + b"/", b"", b"../x"])
        crc = rng.choice([zlib.crc32(name), zlib.crc32(name), 0, zlib.crc32(other)])
        wide = struct.pack("<QQQ", *rng.choice([(size, packed, offset), (size + 1, packed, offset), (0, 0, 0)]))
        out += rng.choice([
            extra_field(0x7075, bytes([rng.choice([1, 1, 0, 2])]) + struct.pack("<I", crc) + other),
            extra_field(0x6375, b"\1" + struct.pack("<I", crc) + other),
            extra_field(1, wide[:rng.choice([0, 8, 16, 24])]), extra_field(0x7875, b"\1\4\0\0\0\0\4\0\0\0\0"),
            extra_field(0x756e, struct.pack("<IHIHH", 0, 0o120777, 4, 0, 0) + b"link"),
            extra_field(0x000d, struct.pack("<IIHH", 0, 0, 0, 0) + b"link"), extra_field(0x000a, b"\0" * 32),
            extra_field(0x6c78, b"\7" + struct.pack("<HHI", 0x0314, 0, 0o120777 << 16)), extra_field(0xcafe, b""),
            extra_field(0x9901, struct.pack("<H2sBH", 2, b"AE", 3, 8)), b"\0", b"\0\0\0", b"x",
            struct.pack("<HH", 0x7075, 500), struct.pack("<HH", 0x5455, 9) + b"\1",
        ])
    return out


class ZipEntry:
    def __init__(self, rng, i, bend):
        name = rng.choice(NAMES) + (b"%d" % i if rng.random() < 0.95 else b"")
        self.name = sometimes(rng, bend / 2, name, name + b"/", b"/" + name, b"q//" + name, b"q/./" + name, b"", b".",
                              b"./", name + b"//", b"q/../" + name, name + b"\\x", b"C:" + name, name + b"\0x",
                              b"\xff" + name, b"\x81\x82", name + b"/.", b"q\\" + name, name + b"\\", b"~" + name,
                              name + b";1", b"[a]" + name)
        data = rng.randbytes(rng.choice([0, 1, 100, 3000]))
        if self.name.endswith(b"/") and rng.random() < 0.8:
            data = b""
        self.size, self.crc = len(data), zlib.crc32(data)
        self.method = sometimes(rng, bend / 3, rng.choice([0, 8]), 9, 12, 99)
        packer = zlib.compressobj(wbits=-15)
        self.body = data if self.method == 0 else packer.compress(data) + packer.flush()
        if rng.random() < bend / 4:
            self.body += rng.choice([b"\0", b"junk"])
        self.flags = (0x800 if any(b > 127 for b in self.name) else 0) ^ sometimes(
            rng, bend / 2, 0, 1, 2, 4, 6, 16, 32, 64, 128, 0x800, 0x1000, 0x2000, 0x4000, 0x8000, 0x100, 0x400)
        self.streamed = rng.random() < 0.3
        self.flags |= 8 if self.streamed else 0
        self.host = sometimes(rng, bend, 3, 0, 10, 19, 2, 7, 14, 255)
        self.version = sometimes(rng, bend / 2, 20, 0, 10, 45, 63, 64, 255)
        usual = 0o100644 << 16
        self.attributes = sometimes(rng, bend, usual, 0, 0x10, usual | 0x10, 0o040755 << 16, 0o120777 << 16,
                                    0o644 << 16, 1, 0o010644 << 16, 0x20, 8, 0o104755 << 16)
        self.offset = self.local_extra = 0

    def fields(self, rng, bend, flags, crc, packed, size):
        return [self.version, flags, self.method, sometimes(rng, bend / 3, 0, 0xffff), 0x5821,
                sometimes(rng, bend / 4, crc, 0, 1), sometimes(rng, bend / 4, packed, 0, packed ^ 1, 0xffffffff),
                sometimes(rng, bend / 4, size, 0, size ^ 1, 0xffffffff)]

    def local(self, rng, bend, offset):
        self.offset = offset
        extra = extras(rng, self.name, self.size, len(self.body), offset, bend / 3, True)
        hide = self.streamed and rng.random() < 0.9
        numbers = (0, 0, 0) if hide else (self.crc, len(self.body), self.size)
        name = sometimes(rng, bend / 4, self.name, b"other", self.name + b"x", self.name.upper())
        head = struct.pack("<4s5H3I2H", b"PK\3\4", *self.fields(rng, bend / 2, self.flags, *numbers), len(name),
                           len(extra))
        tail = b""
        if self.streamed:
            mark = sometimes(rng, bend, b"PK\7\x08", b"")
            form = sometimes(rng, bend, "<III", "<IQQ")
            tail = sometimes(rng, bend, mark + struct.pack(form, self.crc, len(self.body), self.size), b"",
                             b"PK\7\x08" + b"\0" * 12)
        return head + name + extra + self.body + tail

    def central(self, rng, bend):
        extra = extras(rng, self.name, self.size, len(self.body), self.offset, bend / 3, False)
        comment = sometimes(rng, bend / 4, b"", b"comment", b"PK\1\2", b"\xff")
        fields = self.fields(rng, bend / 2, self.flags, self.crc, len(self.body), self.size)
        return struct.pack("<4s2B5H3I5H2I", b"PK\1\2", self.version, self.host, *fields[:1], *fields[1:],
                           len(self.name), len(extra), len(comment), sometimes(rng, bend / 4, 0, 1, 0xffff),
                           sometimes(rng, bend / 4, 0, 1), self.attributes,
                           sometimes(rng, bend / 8, self.offset, 0, self.offset + 1, 0xffffffff)
                           ) + self.name + extra + comment


def zip_end(rng, bend, count, size, start):
    out = b""
    if rng.random() < bend:
        far = sometimes(rng, bend, (count, size, start), (count ^ 1, size, start), (count, size, start ^ 1), (0, 0, start))
        out += struct.pack("<4sQ2H2I4Q", b"PK\6\6", sometimes(rng, bend / 2, 44, 45, 0), 45, 45, 0, 0, far[0], *far)
        out += struct.pack("<4sIQI", b"PK\6\7", 0, sometimes(rng, bend, start + size, start, 0), sometimes(
            rng, bend, 1, 0, 2))
        if rng.random() < 0.5:
            count, size, start = 0xffff, 0xffffffff, 0xffffffff
    comment = sometimes(rng, bend / 2, b"", b"0" * 40, b"PK\5\6" + b"\0" * 18, b"PK\5\6", b"text")
    count = sometimes(rng, bend / 4, count, count ^ 1, 0, 0xffff)
    return out + struct.pack("<4s4H2IH", b"PK\5\6", sometimes(rng, bend / 8, 0, 1), sometimes(rng, bend / 8, 0, 1), count,
                             sometimes(rng, bend / 8, count, 0, count ^ 1), sometimes(rng, bend / 8, size, size ^ 1, 0),
                             sometimes(rng, bend / 8, start, start ^ 1, 0, 0xffffffff),
                             sometimes(rng, bend / 8, len(comment), 0, 9)) + comment


def zip_archive(rng):
    bend = rng.choice([0, 0.05, 0.1, 0.2, 0.4])
    entries = [ZipEntry(rng, i, bend) for i in range(rng.randrange(1, 5))]
    out = sometimes(rng, bend / 4, b"", b"#!/bin/sh\n", b"PK\3\4", b"\0")
    shift = sometimes(rng, 0.5, 0, len(out))
    for e in entries:
        out += e.local(rng, bend, len(out) - shift)
        out += sometimes(rng, bend / 8, b"", b"gap", b"PK\3\4")
    if rng.random() < bend / 4:
        entries.pop(rng.randrange(len(entries)))
    if rng.random() < bend / 4:
        rng.shuffle(entries)
    directory = b"".join(e.central(rng, bend) for e in entries)
    out_gap = sometimes(rng, bend / 8, b"", b"gap", b"PK\5\5\4\0sign")
    return out + directory + out_gap + zip_end(rng, bend, len(entries), len(directory), len(out) - shift)

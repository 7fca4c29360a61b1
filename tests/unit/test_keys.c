/* Keys: the file and its guards, derivation against answers that the openssl program gave, and two
 * processes that make the keys at the same moment. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "trust/keys.h"

typedef struct place {
    char path[64];
    int fd;
} place;

static int setup(void **state)
{
    place *p = calloc(1, sizeof *p);

    strcpy(p->path, "/tmp/aq-keys-XXXXXX");
    if (!mkdtemp(p->path))
        return -1;
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = p;
    return p->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    place *p = *state;

    unlinkat(p->fd, "keys/instance.key", 0);
    unlinkat(p->fd, "keys/other", 0);
    unlinkat(p->fd, "keys", AT_REMOVEDIR);
    close(p->fd);
    if (rmdir(p->path) < 0) /* nothing else may be left */
        return -1;
    free(p);
    return 0;
}

/* The instance key 00 01 … 1f. */
static void put_known(const place *p, mode_t mode, size_t len)
{
    uint8_t secret[64];
    aq_err err;

    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)i;
    mkdirat(p->fd, "keys", 0700);
    assert_int_equal(aq_write_file(p->fd, "keys/instance.key", secret, len, 0600, &err), 0);
    assert_int_equal(fchmodat(p->fd, "keys/instance.key", mode, 0), 0);
}

static void makes_and_finds_again(void **state)
{
    const place *p = *state;
    aq_keys *a = NULL, *b = NULL;
    char ida[AQ_KEY_ID], idb[AQ_KEY_ID];
    struct stat st;
    aq_err err;

    assert_int_equal(aq_keys_open(p->fd, &a, &err), 0);
    assert_int_equal(fstatat(p->fd, "keys/instance.key", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, AQ_KEY_LEN);
    assert_int_equal(fstatat(p->fd, "keys", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(aq_keys_open(p->fd, &b, &err), 0);
    for (int i = 0; i < AQ_KEY_COUNT; i++) {
        assert_string_equal(aq_key_id(a, (aq_key_use)i, ida), aq_key_id(b, (aq_key_use)i, idb));
        assert_int_equal(strlen(ida), AQ_KEY_ID - 1);
        for (int j = 0; j < i; j++) /* no two uses share a key */
            assert_string_not_equal(ida, aq_key_id(a, (aq_key_use)j, idb));
    }
    aq_keys_free(a);
    aq_keys_free(b);
    aq_keys_free(NULL);
}

static void known_answers(void **state)
{
    static const uint8_t sig_start[] = {0x99, 0x72, 0x77, 0xd9, 0x88, 0x92, 0x92, 0xb2};
    static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
                              "MCowBQYDK2VwAyEAX/3Q3/R5d5CYCT8SGX3gU4DtDFSRP1J/5DqaNXH/AFY=\n"
                              "-----END PUBLIC KEY-----\n";
    const place *p = *state;
    uint8_t sig[AQ_ED25519_SIG], public_key[AQ_KEY_LEN], from_pem[AQ_KEY_LEN];
    char id[AQ_KEY_ID], hex[AQ_SHA256_HEX];
    aq_auto_buf text = {0};
    aq_keys *k = NULL;
    aq_digest d;
    aq_err err;

    put_known(p, 0600, AQ_KEY_LEN);
    assert_int_equal(aq_keys_open(p->fd, &k, &err), 0);
    aq_key_pem(k, AQ_KEY_EVIDENCE, &text);
    assert_string_equal(text.data, pem);
    assert_string_equal(aq_key_id(k, AQ_KEY_EVIDENCE, id), "72f09f81bb677d89");
    aq_key_public(k, AQ_KEY_EVIDENCE, public_key);
    assert_string_equal(aq_public_id(public_key, id), "72f09f81bb677d89");
    assert_int_equal(aq_public_from_pem(pem, strlen(pem), from_pem, &err), 0);
    assert_memory_equal(from_pem, public_key, AQ_KEY_LEN);
    aq_key_sign(k, AQ_KEY_EVIDENCE, "hello", 5, sig);
    assert_memory_equal(sig, sig_start, sizeof sig_start);
    assert_int_equal(aq_ed25519_verify(public_key, "hello", 5, sig), 0);
    assert_int_equal(aq_ed25519_verify(public_key, "hellp", 5, sig), -EBADMSG);
    sig[63] ^= 1;
    assert_int_equal(aq_ed25519_verify(public_key, "hello", 5, sig), -EBADMSG);
    d = aq_key_hmac(k, AQ_KEY_EVIDENCE_MAC, "hello", 5);
    assert_string_equal(aq_digest_hex(&d, hex),
                        "8a31438a0663b07901f1667d3300456a1c89164d3e3b2ef29c9da63d32808077");
    assert_string_equal(aq_key_id(k, AQ_KEY_EVIDENCE_MAC, id), "148b12796d2c4cdc");
    d = aq_key_world_seed(k, "sub-1", "run-1");
    assert_string_equal(aq_digest_hex(&d, hex),
                        "7ade9b9e7a325a929a9c8a9bedf9cec67bf5776b408bfeea1298be06cc2bcb1f");
    aq_keys_free(k);
}

static void refuses_bad_files(void **state)
{
    static const struct {
        mode_t mode;
        size_t len;
        int code;
    } cases[] = {
        {0640, 32, -EPERM},  {0604, 32, -EPERM},  {0620, 32, -EPERM},
        {0600, 31, -EINVAL}, {0600, 33, -EINVAL}, {0600, 0, -EINVAL},
    };
    const place *p = *state;
    static const uint8_t zeros[AQ_KEY_LEN];
    aq_keys *k = NULL;
    aq_err err;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_known(p, cases[i].mode, cases[i].len);
        assert_int_equal(aq_keys_open(p->fd, &k, &err), cases[i].code);
        assert_non_null(strstr(err.text, "keys/instance.key"));
        assert_null(k);
    }
    assert_int_equal(aq_write_file(p->fd, "keys/instance.key", zeros, sizeof zeros, 0600, &err), 0);
    assert_int_equal(aq_keys_open(p->fd, &k, &err), -EINVAL);
    put_known(p, 0600, AQ_KEY_LEN);
    assert_int_equal(renameat(p->fd, "keys/instance.key", p->fd, "keys/other"), 0);
    assert_int_equal(symlinkat("other", p->fd, "keys/instance.key"), 0);
    assert_int_equal(aq_keys_open(p->fd, &k, &err), -ELOOP);
    assert_int_equal(unlinkat(p->fd, "keys/instance.key", 0), 0);
    assert_int_equal(mkfifoat(p->fd, "keys/instance.key", 0600),
                     0); /* must not wait for a writer */
    assert_int_equal(aq_keys_open(p->fd, &k, &err), -EINVAL);
    assert_int_equal(unlinkat(p->fd, "keys/instance.key", 0), 0);
    put_known(p, 0600, AQ_KEY_LEN);
    if (geteuid() == 0) { /* only root can give a file away */
        assert_int_equal(fchownat(p->fd, "keys/instance.key", 1234, 1234, 0), 0);
        assert_int_equal(aq_keys_open(p->fd, &k, &err), -EPERM);
        assert_non_null(strstr(err.text, "another user"));
        assert_int_equal(fchownat(p->fd, "keys/instance.key", 0, 0, 0), 0);
    }
    assert_int_equal(fchmodat(p->fd, "keys", 0770, 0), 0);
    assert_int_equal(aq_keys_open(p->fd, &k, &err), -EPERM);
    assert_int_equal(fchmodat(p->fd, "keys", 0700, 0), 0);
    assert_int_equal(aq_keys_open(p->fd, &k, &err), 0); /* the benign twin of all of these */
    aq_keys_free(k);
}

static void refuses_other_public_keys(void **state)
{
    static const char *const bad[] = {
        "",
        "-----BEGIN PUBLIC KEY-----\n",
        "MCowBQYDK2VwAyEA",
        /* X25519, which is no signing key */
        "-----BEGIN PUBLIC KEY-----\n"
        "MCowBQYDK2VuAyEAX/3Q3/R5d5CYCT8SGX3gU4DtDFSRP1J/5DqaNXH/AFY=\n"
        "-----END PUBLIC KEY-----\n",
    };
    uint8_t out[AQ_KEY_LEN];
    aq_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(aq_public_from_pem(bad[i], strlen(bad[i]), out, &err), -EBADMSG);
}

enum { MAKERS = 8 };

/* A child waits for the starting shot (end of file), opens the keys, and says its key id. */
static void maker(const place *p, int shot, int answer)
{
    char id[AQ_KEY_ID] = "", c;
    aq_keys *k = NULL;
    aq_err err;

    if (read(shot, &c, 1) == 0 && aq_keys_open(p->fd, &k, &err) == 0)
        aq_key_id(k, AQ_KEY_LEDGER, id);
    aq_keys_free(k);
    _exit(write(answer, id, sizeof id) == sizeof id ? 0 : 1);
}

static void many_makers_one_key(void **state)
{
    const place *p = *state;

    for (int round = 0; round < 20; round++) {
        char ids[MAKERS][AQ_KEY_ID];
        int shot[2], answer[2];
        assert_int_equal(pipe(shot) + pipe(answer), 0);
        for (int i = 0; i < MAKERS; i++) {
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                close(shot[1]);
                maker(p, shot[0], answer[1]);
            }
        }
        close(shot[1]);
        assert_int_equal(aq_read_full(answer[0], ids, sizeof ids), sizeof ids);
        for (int i = 0; i < MAKERS; i++) {
            assert_int_equal(strlen(ids[i]), AQ_KEY_ID - 1);
            assert_string_equal(ids[i], ids[0]);
        }
        while (wait(NULL) > 0)
            ;
        close(shot[0]);
        close(answer[0]);
        close(answer[1]);
        assert_int_equal(unlinkat(p->fd, "keys/instance.key", 0), 0);
        assert_int_equal(unlinkat(p->fd, "keys", AT_REMOVEDIR), 0); /* no temporary file stays */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_and_finds_again, setup, teardown),
        cmocka_unit_test_setup_teardown(known_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_bad_files, setup, teardown),
        cmocka_unit_test(refuses_other_public_keys),
        cmocka_unit_test_setup_teardown(many_makers_one_key, setup, teardown),
    };

    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}

// An independent reader of the ledger: Go's own sumdb packages for notes, trees and tiles, and
// nothing of ours. It opens the checkpoint with the verifier key, checks every tile against the
// signed root and every entry against its leaf, follows the chain, and checks an inclusion and
// a consistency proof that the ledger gave out.
//
//	reader VKEY LEDGER [PROOF.json CONSISTENCY.json]
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

type ledger struct {
	root string
	tree tlog.Tree
}

func die(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, "reader: "+format+"\n", args...)
	os.Exit(1)
}

func try(err error, what string) {
	if err != nil {
		die("%s: %v", what, err)
	}
}

// openCheckpoint checks the signature and reads the three lines.
func openCheckpoint(vkey string, text []byte) tlog.Tree {
	verifier, err := note.NewVerifier(vkey)
	try(err, "verifier key")
	n, err := note.Open(text, note.VerifierList(verifier))
	try(err, "checkpoint")
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != verifier.Name() {
		die("checkpoint is not origin, size, root: %q", n.Text)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	try(err, "size")
	raw, err := base64.StdEncoding.DecodeString(lines[2])
	try(err, "root")
	var tree tlog.Tree
	tree.N = size
	if copy(tree.Hash[:], raw) != tlog.HashSize || len(raw) != tlog.HashSize {
		die("root has %d bytes", len(raw))
	}
	return tree
}

// tilePath is the tlog-tiles spelling; sumdb has the tile height in the path.
func tilePath(level string, n int64, width int) string {
	path := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		path = fmt.Sprintf("x%03d/%s", n%1000, path)
	}
	path = "tile/" + level + "/" + path
	if width != 1<<height {
		path += fmt.Sprintf(".p/%d", width)
	}
	return path
}

func (l *ledger) Height() int { return height }

func (l *ledger) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, t := range tiles {
		data, err := os.ReadFile(filepath.Join(l.root, tilePath(strconv.Itoa(t.L), t.N, t.W)))
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

func (l *ledger) SaveTiles([]tlog.Tile, [][]byte) {}

// bundle gives the entries of one bundle.
func (l *ledger) bundle(n int64, width int) [][]byte {
	path := tilePath("entries", n, width)
	data, err := os.ReadFile(filepath.Join(l.root, path))
	try(err, "bundle")
	var entries [][]byte
	for len(data) > 0 {
		if len(data) < 2 || len(data) < 2+int(binary.BigEndian.Uint16(data)) {
			die("%s is cut short", path)
		}
		size := int(binary.BigEndian.Uint16(data))
		entries = append(entries, data[2:2+size])
		data = data[2+size:]
	}
	if len(entries) != width {
		die("%s has %d entries, not %d", path, len(entries), width)
	}
	return entries
}

// checkEntries reads everything; the hash reader proves each leaf against the signed root.
func (l *ledger) checkEntries() {
	reader := tlog.TileHashReader(l.tree, l)
	prev := strings.Repeat("0", 64)
	for n := int64(0); n<<height < l.tree.N; n++ {
		width := 1 << height
		if rest := l.tree.N - n<<height; rest < int64(width) {
			width = int(rest)
		}
		entries := l.bundle(n, width)
		var indexes []int64
		for i := range entries {
			indexes = append(indexes, tlog.StoredHashIndex(0, n<<height+int64(i)))
		}
		leaves, err := reader.ReadHashes(indexes)
		try(err, "tiles")
		for i, entry := range entries {
			if leaves[i] != tlog.RecordHash(entry) {
				die("entry %d does not belong to its leaf", n<<height+int64(i))
			}
			prev = l.checkChain(entry, n<<height+int64(i), prev)
		}
	}
	root, err := tlog.TreeHash(l.tree.N, reader)
	try(err, "tree")
	if l.tree.N > 0 && root != l.tree.Hash {
		die("root differs")
	}
}

func (l *ledger) checkChain(entry []byte, index int64, prev string) string {
	var e struct {
		Schema, Prev, Kind, Time string
		Index                    int64
	}
	try(json.Unmarshal(entry, &e), "entry")
	if e.Schema != "aquarium/ledger/v1" || e.Index != index || e.Prev != prev || e.Kind == "" {
		die("entry %d breaks the chain: %s", index, entry)
	}
	leaf := sha256.Sum256(append([]byte{0}, entry...))
	return hex.EncodeToString(leaf[:])
}

func parseHash(text string) (h tlog.Hash) {
	raw, err := hex.DecodeString(text)
	try(err, "hash")
	if len(raw) != tlog.HashSize {
		die("hash has %d bytes", len(raw))
	}
	copy(h[:], raw)
	return h
}

func parseHashes(texts []string) (out []tlog.Hash) {
	for _, text := range texts {
		out = append(out, parseHash(text))
	}
	return out
}

func readJSON(path string, into interface{}) {
	data, err := os.ReadFile(path)
	try(err, "proof")
	try(json.Unmarshal(data, into), path)
}

func checkInclusion(vkey, path string) {
	var p struct {
		Index            int64
		Leaf, Checkpoint string
		Hashes           []string
	}
	readJSON(path, &p)
	tree := openCheckpoint(vkey, []byte(p.Checkpoint))
	try(tlog.CheckRecord(parseHashes(p.Hashes), tree.N, tree.Hash, p.Index, parseHash(p.Leaf)), path)
}

func checkConsistency(path string) {
	var p struct {
		From, To int64
		FromRoot string `json:"from_root"`
		ToRoot   string `json:"to_root"`
		Hashes   []string
	}
	readJSON(path, &p)
	try(tlog.CheckTree(parseHashes(p.Hashes), p.To, parseHash(p.ToRoot), p.From,
		parseHash(p.FromRoot)), path)
}

func main() {
	if len(os.Args) != 3 && len(os.Args) != 5 {
		die("usage: reader VKEY LEDGER [PROOF.json CONSISTENCY.json]")
	}
	text, err := os.ReadFile(filepath.Join(os.Args[2], "checkpoint"))
	try(err, "checkpoint")
	l := &ledger{root: os.Args[2], tree: openCheckpoint(os.Args[1], text)}
	l.checkEntries()
	if len(os.Args) == 5 {
		checkInclusion(os.Args[1], os.Args[3])
		checkConsistency(os.Args[4])
	}
	fmt.Printf("%d entries, root %x\n", l.tree.N, l.tree.Hash[:])
}

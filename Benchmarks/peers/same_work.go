// The peer in Go that does the worker's work: it claims due grants in SQLite, refreshes them with golang.org/x/oauth2,
// 64 at a time, seals the new tokens and commits them durably, up to 100 in a transaction. same_work_store.py writes
// its database and checks it afterwards.
//
//	same_work [-once] -database FILE -key FILE -url URL -ca-file FILE -version h1|h2
package main

import (
	"bufio"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	mathrand "math/rand"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"golang.org/x/oauth2"
)

const (
	workers     = 64
	batchSize   = 100
	leaseSpan   = 30 * time.Second
	deadline    = 15 * time.Second
	margin      = 10 * time.Minute // A token is replaced this long before it expires.
	collectSpan = 2 * time.Millisecond
	pollSpan    = time.Second
)

type grant struct {
	id, dueAt, attempts int64
	lease               int64 // The end of the lease, which also names the claim.
	refreshToken        []byte
}

type result struct {
	grant
	outcome, detail           string
	accessToken, refreshToken []byte // Sealed; the refresh token only if it was rotated.
	scope                     string
	expiresAt                 int64
	latency                   time.Duration
}

type vault struct{ aead cipher.AEAD }

func openVault(path string) (vault, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return vault{}, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return vault{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return vault{}, err
	}
	aead, err := cipher.NewGCM(block)
	return vault{aead}, err
}

// A sealed token opens only for its row and column.
func place(column string, id int64) []byte { return []byte(fmt.Sprintf("%s:%d", column, id)) }

func (v vault) seal(token, column string, id int64) ([]byte, error) {
	size := v.aead.NonceSize()
	nonce := make([]byte, size, size+len(token)+v.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return v.aead.Seal(nonce, nonce, []byte(token), place(column, id)), nil
}

func (v vault) open(sealed []byte, column string, id int64) (string, error) {
	size := v.aead.NonceSize()
	if len(sealed) < size {
		return "", errors.New("the sealed token is too short")
	}
	token, err := v.aead.Open(nil, sealed[:size], sealed[size:], place(column, id))
	return string(token), err
}

type store struct {
	database               *sql.DB
	claims, success, other *sql.Stmt
}

func openStore(path string) (*store, error) {
	database, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	database.SetMaxOpenConns(1)
	s := &store{database: database}
	for statement, text := range map[**sql.Stmt]string{
		&s.claims: `UPDATE grants SET lease_until = ?1 WHERE id IN (
				SELECT id FROM grants WHERE due_at <= ?2 AND lease_until <= ?2 ORDER BY due_at LIMIT ?3)
			RETURNING id, due_at, attempts, refresh_token`,
		&s.success: `UPDATE grants SET state = 'active', access_token = ?, refresh_token = coalesce(?, refresh_token),
				scope = ?, expires_at = ?, due_at = ?, refreshed_at = ?, attempts = 0, error = NULL, lease_until = 0
			WHERE id = ? AND lease_until = ?`,
		&s.other: `UPDATE grants SET state = ?, error = ?, due_at = ?, attempts = attempts + 1, lease_until = 0
			WHERE id = ? AND lease_until = ?`,
	} {
		if *statement, err = database.Prepare(text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Writes leases on the grants that are due first, and returns these grants.
func (s *store) claim(now time.Time) ([]grant, error) {
	lease := now.Add(leaseSpan).UnixMilli()
	rows, err := s.claims.Query(lease, now.UnixMilli(), batchSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	claimed := make([]grant, 0, batchSize)
	for rows.Next() {
		g := grant{lease: lease}
		if err := rows.Scan(&g.id, &g.dueAt, &g.attempts, &g.refreshToken); err != nil {
			return nil, err
		}
		claimed = append(claimed, g)
	}
	return claimed, rows.Err()
}

// Stores a batch durably. A result counts only while the lease of its claim is stored.
func (s *store) commit(batch []result, now time.Time) error {
	transaction, err := s.database.Begin()
	if err != nil {
		return err
	}
	defer transaction.Rollback()
	success, other := transaction.Stmt(s.success), transaction.Stmt(s.other)
	for at := range batch {
		r := &batch[at]
		var done sql.Result
		switch r.outcome {
		case "refreshed":
			done, err = success.Exec(r.accessToken, r.refreshToken, r.scope, r.expiresAt, nextDue(r.expiresAt), now.UnixMilli(), r.id, r.lease)
		case "disconnected":
			done, err = other.Exec("disconnected", r.detail, nil, r.id, r.lease)
		default:
			done, err = other.Exec("retrying", r.detail, nextTry(now, r.attempts), r.id, r.lease)
		}
		if err != nil {
			return err
		}
		if changed, err := done.RowsAffected(); err != nil {
			return err
		} else if changed == 0 {
			r.outcome = "lost_lease"
		}
	}
	return transaction.Commit()
}

// Spreads the refreshes over a minute, so that grants that were connected together do not stay together.
func nextDue(expiresAt int64) int64 {
	return expiresAt - margin.Milliseconds() - mathrand.Int63n(60_000)
}

func nextTry(now time.Time, attempts int64) int64 {
	if attempts > 7 {
		attempts = 7
	}
	wait := 30 * time.Second << uint(attempts)
	return now.Add(wait/2 + time.Duration(mathrand.Int63n(int64(wait/2)))).UnixMilli()
}

type refresher struct {
	context context.Context
	config  oauth2.Config
	vault   vault
}

func (f *refresher) refresh(g grant) result {
	r := result{grant: g, outcome: "retrying"}
	refreshToken, err := f.vault.open(g.refreshToken, "refresh_token", g.id)
	if err != nil {
		r.detail = err.Error()
		return r
	}
	start := time.Now()
	token, err := f.config.TokenSource(f.context, &oauth2.Token{RefreshToken: refreshToken}).Token()
	r.latency = time.Since(start)
	var refusal *oauth2.RetrieveError
	switch {
	case errors.As(err, &refusal) && strings.Contains(string(refusal.Body), `"invalid_grant"`):
		r.outcome, r.detail = "disconnected", "invalid_grant"
		return r
	case err != nil:
		r.detail = err.Error()
		return r
	}
	if r.accessToken, err = f.vault.seal(token.AccessToken, "access_token", g.id); err == nil && token.RefreshToken != refreshToken {
		r.refreshToken, err = f.vault.seal(token.RefreshToken, "refresh_token", g.id)
	}
	if err != nil {
		r.detail = err.Error()
		return r
	}
	r.scope, _ = token.Extra("scope").(string)
	r.expiresAt = token.Expiry.UnixMilli()
	r.outcome = "refreshed"
	return r
}

// Returns the next result with those that arrive within a moment: a transaction costs as much for one as for many.
func collect(results <-chan result, most int) []result {
	batch := append(make([]result, 0, batchSize), <-results)
	timer := time.NewTimer(collectSpan)
	defer timer.Stop()
	for len(batch) < most {
		select {
		case r := <-results:
			batch = append(batch, r)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

type line struct {
	Time      time.Time `json:"time"`
	Event     string    `json:"event"`
	Grant     int64     `json:"grant"`
	Outcome   string    `json:"outcome"`
	Detail    string    `json:"detail,omitempty"`
	Attempt   int64     `json:"attempt"`
	Lateness  int64     `json:"lateness_ms"`
	Latency   int64     `json:"latency_ms"`
	Rotated   bool      `json:"rotated"`
	ExpiresAt int64     `json:"expires_at"`
}

func report(output *bufio.Writer, batch []result, now time.Time) error {
	encoder := json.NewEncoder(output)
	for _, r := range batch {
		lateness := now.UnixMilli() - r.dueAt - r.latency.Milliseconds()
		if err := encoder.Encode(line{now, "refresh", r.id, r.outcome, r.detail, r.attempts + 1, lateness,
			r.latency.Milliseconds(), r.refreshToken != nil, r.expiresAt}); err != nil {
			return err
		}
	}
	return output.Flush()
}

func run(ctx context.Context, s *store, f *refresher, once bool) error {
	claimed := make(chan grant, 2*batchSize)
	results := make(chan result, 2*batchSize)
	defer close(claimed)
	for worker := 0; worker < workers; worker++ {
		go func() {
			for g := range claimed {
				results <- f.refresh(g)
			}
		}()
	}
	output := bufio.NewWriterSize(os.Stdout, 64*1024)
	for inFlight := 0; ; {
		// With more, a lease might end while its grant waits.
		if ctx.Err() == nil && inFlight <= batchSize {
			due, err := s.claim(time.Now())
			if err != nil {
				return err
			}
			for _, g := range due {
				claimed <- g
			}
			inFlight += len(due)
		}
		if inFlight == 0 {
			if once || ctx.Err() != nil {
				return nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollSpan):
			}
			continue
		}
		batch := collect(results, min(inFlight, batchSize))
		now := time.Now()
		if err := s.commit(batch, now); err != nil {
			return err
		}
		inFlight -= len(batch)
		if err := report(output, batch, now); err != nil {
			return err
		}
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func client(caFile, version string) (*http.Client, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s does not contain a certificate", caFile)
	}
	return &http.Client{Timeout: deadline, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		MaxIdleConnsPerHost: workers,
		ForceAttemptHTTP2:   version == "h2",
	}}, nil
}

func main() {
	once := flag.Bool("once", false, "end when no grant is due")
	path := flag.String("database", "", "the SQLite file")
	keyFile := flag.String("key", "", "the file with the key, as hexadecimal digits")
	url := flag.String("url", "", "the token endpoint")
	caFile := flag.String("ca-file", "", "the certificate authority of the endpoint")
	version := flag.String("version", "h2", "h1 or h2")
	flag.Parse()
	mathrand.Seed(time.Now().UnixNano())
	s, err := openStore(*path)
	if err != nil {
		log.Fatal(err)
	}
	v, err := openVault(*keyFile)
	if err != nil {
		log.Fatal(err)
	}
	c, err := client(*caFile, *version)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := &refresher{
		context: context.WithValue(context.Background(), oauth2.HTTPClient, c),
		config: oauth2.Config{
			ClientID: "bench",
			// Like the worker's requests: the client's id is in the form. Otherwise the first requests send it in a header.
			Endpoint: oauth2.Endpoint{TokenURL: *url, AuthStyle: oauth2.AuthStyleInParams},
		},
		vault: v,
	}
	if err := run(ctx, s, f, *once); err != nil {
		log.Fatal(err)
	}
	if err := s.database.Close(); err != nil {
		log.Fatal(err)
	}
}

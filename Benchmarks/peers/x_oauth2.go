// The peer in Go: refreshes grants with golang.org/x/oauth2, 64 at a time, and stores nothing.
//
//	x_oauth2 URL CA-FILE COUNT h1|h2
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/oauth2"
)

const workers = 64

func main() {
	url, caFile, version := os.Args[1], os.Args[2], os.Args[4]
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		log.Fatalf("%s does not contain a certificate", caFile)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		MaxIdleConnsPerHost: workers,
		ForceAttemptHTTP2:   version == "h2",
	}
	client := &http.Client{Transport: transport}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, client)
	config := oauth2.Config{
		ClientID: "bench",
		// Like the worker's requests: the client's id is in the form. Otherwise the first requests send it in a header.
		Endpoint: oauth2.Endpoint{TokenURL: url, AuthStyle: oauth2.AuthStyleInParams},
	}
	numbers := make(chan int)
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := range numbers {
				refreshToken := fmt.Sprintf("1//0%010d-%s", number, strings.Repeat("x", 88))
				token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: refreshToken}).Token()
				if err != nil {
					log.Fatal(err)
				}
				if !strings.HasPrefix(token.AccessToken, "ya29.a0") {
					log.Fatalf("the answer to grant %d does not contain a token", number)
				}
			}
		}()
	}
	for number := 0; number < count; number++ {
		numbers <- number
	}
	close(numbers)
	group.Wait()
}
